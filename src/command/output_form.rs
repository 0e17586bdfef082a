//! The form of an output: by `--format`, or by the name of the file that is written.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sizeleak_pipeline::recording::Compression;

use super::failure::usage;

/// The formats that the endings of names stand for. `text` is any format of text.
const ENDINGS: [(&str, &str); 12] = [
    ("html", "html"),
    ("htm", "html"),
    ("parquet", "parquet"),
    ("csv", "csv"),
    ("ndjson", "ndjson"),
    ("jsonl", "ndjson"),
    ("json", "json"),
    ("frames", "frames"),
    ("md", "markdown"),
    ("markdown", "markdown"),
    ("txt", "text"),
    ("text", "text"),
];

/// Pictures, which are drawn from what other commands write.
const PICTURES: [&str; 4] = ["svg", "pdf", "png", "jpg"];

/// Parses the name of one of these formats.
pub(super) fn one_of<F: ValueEnum + Send + Sync + 'static>(formats: &'static [F]) -> impl TypedValueParser<Value = F> {
    let values: Vec<PossibleValue> = formats.iter().filter_map(F::to_possible_value).collect();
    PossibleValuesParser::new(values).try_map(|name| F::from_str(&name, false))
}

/// The one of these formats that an output has; `None` if neither `--format` nor the name of the file says one. `command`
/// writes it.
pub(super) fn chosen<F: ValueEnum>(
    named: Option<F>,
    formats: &[F],
    output: Option<&Path>,
    command: &str,
) -> Result<Option<F>> {
    let Some(output) = output else { return Ok(named) };
    let (file, is_compressed) = plain_name(output);
    let format = match extension(&file) {
        None => named,
        Some(ending) => by_ending(named, formats, output, &ending, command)?,
    };
    if is_compressed && format.as_ref().is_some_and(|format| name_of(format) == "parquet") {
        let (output, file) = (output.display(), file.display());
        return Err(usage!("Parquet is compressed inside, so {output} cannot be: write `-o {file}`"));
    }
    Ok(format)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PictureForm {
    Svg,
    #[cfg(feature = "figures")]
    Png,
    #[cfg(feature = "figures")]
    Pdf,
}

impl PictureForm {
    /// The form of a picture, by the name of its file; SVG if that has no ending.
    pub(super) fn of(output: Option<&Path>) -> Result<Self> {
        let Some((file, ending)) = output.and_then(|file| Some((file, extension(file)?))) else { return Ok(Self::Svg) };
        match ending.as_str() {
            "svg" => Ok(Self::Svg),
            #[cfg(feature = "figures")]
            "png" => Ok(Self::Png),
            #[cfg(feature = "figures")]
            "pdf" => Ok(Self::Pdf),
            #[cfg(not(feature = "figures"))]
            "png" | "pdf" => Err(only_svg(file, &ending)),
            _ => {
                let file = file.display();
                Err(usage!("`sizeleak plot` draws .svg, .png and .pdf, and {file} is not named so"))
            }
        }
    }
}

fn by_ending<F: ValueEnum>(
    named: Option<F>,
    formats: &[F],
    output: &Path,
    ending: &str,
    command: &str,
) -> Result<Option<F>> {
    let shown = output.display();
    if PICTURES.contains(&ending) {
        return Err(no_picture(output, command));
    }
    let Some(wanted) = ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format) else {
        // The user knows what the name means.
        return if named.is_some() { Ok(named) } else { Err(unknown(formats, output, ending, command)) };
    };
    if wanted == "text" && named.is_some() {
        return Ok(named);
    }
    let by_name = formats.iter().find(|format| has_name(*format, wanted)).cloned();
    match (named, by_name) {
        (None, Some(by_name)) => Ok(Some(by_name)),
        (None, None) => Err(unknown(formats, output, ending, command)),
        (Some(named), by_name) if by_name.as_ref().map(name_of) == Some(name_of(&named)) => Ok(Some(named)),
        (Some(named), _) => Err(usage!(
            "`--format {}` contradicts the name {shown}: leave out `--format`, or name the file otherwise",
            name_of(&named)
        )),
    }
}

/// The name without the ending of a compressed file, and whether it had one.
fn plain_name(output: &Path) -> (PathBuf, bool) {
    if Compression::of_name(output) == Compression::None {
        (output.to_owned(), false)
    } else {
        (output.with_extension(""), true)
    }
}

fn extension(file: &Path) -> Option<String> {
    Some(file.extension()?.to_str()?.to_ascii_lowercase())
}

fn has_name<F: ValueEnum>(format: &F, name: &str) -> bool {
    format.to_possible_value().is_some_and(|value| value.matches(name, false))
}

fn name_of<F: ValueEnum>(format: &F) -> String {
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Refuses a name that says nothing that the command writes, with the list of those that do.
fn unknown<F: ValueEnum>(formats: &[F], output: &Path, ending: &str, command: &str) -> anyhow::Error {
    let can_be = |name: &str| formats.iter().any(|format| has_name(format, name));
    let known = ENDINGS.iter().filter(|(_, format)| can_be(format)).map(|(ending, _)| format!(".{ending}"));
    let formats: Vec<String> = formats.iter().map(name_of).collect();
    usage!(
        "`{command}` does not know what to write into {}: name it with {}, or say `--format {}` ({} is none of them)",
        output.display(),
        known.collect::<Vec<_>>().join(", "),
        formats.join("|"),
        format_args!(".{ending}")
    )
}

fn no_picture(output: &Path, command: &str) -> anyhow::Error {
    let source = if command == "sizeleak run" { "frames" } else { "json" };
    let source = output.with_extension(source);
    let (source, shown) = (source.display(), output.display());
    usage!("`{command}` draws no pictures: write `-o {source}`, then `sizeleak plot {source} -o {shown}`")
}

/// Refuses a picture that this program cannot make, with what makes it.
#[cfg(any(test, not(feature = "figures")))]
fn only_svg(output: &Path, ending: &str) -> anyhow::Error {
    let (picture, source) = (output.display(), output.with_extension("svg"));
    let source = source.display();
    let other = if ending == "pdf" { "print it from a browser" } else { "open it in a browser" };
    usage!(
        "this program was built without PNG and PDF: write `-o {source}`, then {other} or run `rsvg-convert -f {ending} \
         {source} -o {picture}`; or build the program with `--features figures`"
    )
}

#[cfg(test)]
mod tests {
    use sizeleak_output::OutputFormat;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
    enum Figures {
        Text,
        Json,
    }

    fn of_run(named: Option<OutputFormat>, file: &str) -> Result<Option<OutputFormat>, String> {
        chosen(named, OutputFormat::value_variants(), Some(Path::new(file)), "sizeleak run")
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_name_of_a_file_chooses_its_form() {
        for (file, format) in [
            ("x.parquet", Some(OutputFormat::Parquet)),
            ("a.b/x.CSV", Some(OutputFormat::Csv)),
            ("x.csv.gz", Some(OutputFormat::Csv)),
            ("x.ndjson.zst", Some(OutputFormat::Ndjson)),
            ("x.json", Some(OutputFormat::Json)),
            ("x.frames", Some(OutputFormat::Frames)),
            ("x.txt", Some(OutputFormat::Table)),
            ("x.gz", None),
            ("csv", None),
            ("/dev/fd/63", None),
        ] {
            assert_eq!(of_run(None, file), Ok(format), "{file}");
        }
        let figures =
            |file: &str| chosen(None, Figures::value_variants(), Some(Path::new(file)), "sizeleak evaluate").ok();
        assert_eq!(figures("x.json"), Some(Some(Figures::Json)));
        assert_eq!(figures("x.csv"), None, "it would hold a table");
        assert_eq!(chosen(Some(Figures::Text), &[], None, "").ok(), Some(Some(Figures::Text)));
    }

    #[test]
    fn a_format_that_contradicts_the_name_is_refused() {
        assert_eq!(of_run(Some(OutputFormat::Csv), "x.csv"), Ok(Some(OutputFormat::Csv)));
        assert_eq!(of_run(Some(OutputFormat::Csv), "x.txt"), Ok(Some(OutputFormat::Csv)));
        assert_eq!(of_run(Some(OutputFormat::Zeek), "x.log"), Ok(Some(OutputFormat::Zeek)));
        let fault = of_run(Some(OutputFormat::Csv), "x.parquet").unwrap_err();
        assert!(fault.contains("`--format csv` contradicts the name x.parquet"), "{fault}");
    }

    #[test]
    fn a_picture_that_cannot_be_made_is_refused_with_what_makes_it() {
        for (file, words) in [
            (
                "a/x.png",
                "write `-o a/x.svg`, then open it in a browser or run `rsvg-convert -f png a/x.svg -o a/x.png`",
            ),
            ("x.pdf", "then print it from a browser or run `rsvg-convert -f pdf x.svg -o x.pdf`"),
            ("x.pdf", "`--features figures`"),
        ] {
            let fault = only_svg(Path::new(file), &extension(Path::new(file)).unwrap()).to_string();
            assert!(fault.contains(words), "{fault}");
        }
    }

    #[test]
    fn names_that_say_no_form_are_refused_with_what_to_do() {
        for (file, words) in [
            ("x.svg", "write `-o x.frames`, then `sizeleak plot x.frames -o x.svg`"),
            ("x.png", "then `sizeleak plot x.frames -o x.png`"),
            ("x.html", "name it with .parquet, .csv, .ndjson"),
            ("x.log", "or say `--format table|"),
            ("x.parquet.gz", "write `-o x.parquet`"),
        ] {
            assert!(of_run(None, file).unwrap_err().contains(words), "{file}: {:?}", of_run(None, file));
        }
    }
}
