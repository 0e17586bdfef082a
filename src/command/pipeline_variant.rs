//! A pipeline to compare with others over the same captures.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;

/// The name of the pipeline without any change.
pub(super) const STANDARD: &str = "standard";

/// How a pipeline differs from the usual one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PipelineVariant {
    /// By options of stages, `stage.key=value` each; without any, not at all.
    Options(Vec<String>),
    /// It is another pipeline file.
    File(PathBuf),
}

impl std::str::FromStr for PipelineVariant {
    type Err = String;

    /// Reads options separated by commas, the word `standard`, or the path of a pipeline file. A value may contain
    /// commas: a part without `=` belongs to the option before it.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == STANDARD {
            return Ok(Self::Options(Vec::new()));
        }
        let mut options: Vec<String> = Vec::new();
        for part in text.split(',') {
            match options.last_mut() {
                _ if part.contains('=') => options.push(part.to_owned()),
                Some(last) => last.extend([",", part]),
                None if text.is_empty() => return Err("it is empty: name options or a pipeline file".to_owned()),
                None => return Ok(Self::File(PathBuf::from(text))),
            }
        }
        Ok(Self::Options(options))
    }
}

impl Display for PipelineVariant {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Options(options) if options.is_empty() => formatter.write_str(STANDARD),
            Self::Options(options) => formatter.write_str(&options.join(",")),
            Self::File(file) => write!(formatter, "{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(options: &[&str]) -> PipelineVariant {
        PipelineVariant::Options(options.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn variants_are_options_or_a_file() {
        let variant = |text: &str| text.parse::<PipelineVariant>().unwrap();
        assert_eq!(variant("pruner.mode=paper"), options(&["pruner.mode=paper"]));
        assert_eq!(variant("a.gap=1s,b.keep=0.9"), options(&["a.gap=1s", "b.keep=0.9"]));
        let with_commas = options(&["f.gateway=10.0.0.1,10.0.0.2", "b.keep=1"]);
        assert_eq!(variant("f.gateway=10.0.0.1,10.0.0.2,b.keep=1"), with_commas);
        assert_eq!(variant("own/pipeline.toml"), PipelineVariant::File("own/pipeline.toml".into()));
        assert_eq!(variant("standard"), options(&[]));
        assert_eq!(variant("./standard"), PipelineVariant::File("./standard".into()));
        assert!("".parse::<PipelineVariant>().is_err());
    }

    #[test]
    fn variants_are_shown_as_they_were_given() {
        for text in ["standard", "a.gap=1s,b.keep=0.9", "own/pipeline.toml"] {
            assert_eq!(text.parse::<PipelineVariant>().unwrap().to_string(), text);
        }
    }
}
