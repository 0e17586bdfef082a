//! The options of `command-segmenter`: its flags and its keys in `pipeline.toml`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_model::Model;
use sizeleak_runtime::{ConfigureError, Node, Runnable, StageOptions};

use crate::CommandSegmenter;
use crate::noise_model::NoiseModel;

/// A tiny record this soon after a command's, in nanoseconds, is its last piece: both were in one packet.
pub(crate) const SAME_PACKET: i64 = 500_000;

/// How commands are told from other records, and how long their replies may take.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// How records become commands [default: `learned` with a model that holds `[noise]`, else `gap`]
    #[arg(long, value_enum)]
    pub algorithm: Option<Algorithm>,

    /// The model of the gateway, made by `sizeleak learn` (algorithm `learned`)
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,

    /// Records of one command follow each other within this time (pieces of one alone where the algorithm is `adaptive` or `learned`)
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().gap))]
    pub gap: SignedDuration,

    /// Records that hold fewer plaintext bytes than this are keep-alives or acknowledgements
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().min_size)]
    pub min_size: u64,

    /// A record this soon after one of the gateway's is the answer to it, not a command
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().answer_within))]
    pub answer_within: SignedDuration,

    /// Replies to a command have ended when the gateway is silent for this long
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().reply_gap))]
    pub reply_gap: SignedDuration,

    /// Replies to a command come within this time
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().reply_within))]
    pub reply_within: SignedDuration,

    /// Records of one flow may come this much later than those of others, as behind bytes the capture does not hold
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().hole_wait))]
    pub hole_wait: SignedDuration,

    /// Learn from records this far ahead before deciding (algorithm `adaptive`): as much later commands are told
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().look_ahead))]
    pub look_ahead: SignedDuration,
}

/// How records become commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Records that follow each other within `gap` are one command, whatever it was split into
    Gap,
    /// Every record is a command of its own
    Record,
    /// Learned from the records themselves: which lengths answer which, come at steady times, or are pieces of one message
    Adaptive,
    /// Learned from labelled captures, and so without looking ahead: by which sizes are answers, keep-alives on their beat,
    /// or what no actions make up; a size that may be both is a command unless its beat and missing replies say otherwise
    Learned,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            algorithm: None,
            model: None,
            gap: SignedDuration::from_millis(40),
            min_size: 16,
            answer_within: SignedDuration::from_millis(120),
            reply_gap: SignedDuration::from_millis(800),
            reply_within: SignedDuration::from_secs(3),
            hole_wait: SignedDuration::from_secs(3),
            look_ahead: SignedDuration::from_mins(10),
        }
    }
}

impl Options {
    /// How records become commands, and the model where that needs one.
    pub(crate) fn method(&self) -> Result<Method, ConfigureError> {
        match (self.algorithm, &self.model) {
            (Some(Algorithm::Gap), _) | (None, None) => Ok(Method::Gap),
            (Some(Algorithm::Record), _) => Ok(Method::Record),
            (Some(Algorithm::Adaptive), _) => Ok(Method::Adaptive),
            (Some(Algorithm::Learned), None) => Err(ConfigureError::Usage(
                "`--model FILE` is missing, which the algorithm `learned` needs: `sizeleak learn` makes one".into(),
            )),
            (None | Some(Algorithm::Learned), Some(file)) => {
                let model = Model::read(file).map_err(|error| ConfigureError::Input(error.to_string()))?;
                match NoiseModel::of(&model) {
                    Some(knowledge) => Ok(Method::Learned(knowledge.into())),
                    None if self.algorithm.is_none() => Ok(Method::Gap),
                    None => Err(ConfigureError::Input(format!(
                        "{}: it has no [noise], which the algorithm `learned` needs: learn it again, or use another \
                         algorithm",
                        file.display()
                    ))),
                }
            }
        }
    }

    /// The options that are times, checked and in nanoseconds.
    pub(crate) fn times(&self) -> Result<TimeLimits, ConfigureError> {
        Ok(TimeLimits {
            gap: nanoseconds("gap", self.gap)?,
            answer_within: nanoseconds("answer-within", self.answer_within)?,
            reply_gap: nanoseconds("reply-gap", self.reply_gap)?,
            reply_within: nanoseconds("reply-within", self.reply_within)?,
            hole_wait: nanoseconds("hole-wait", self.hole_wait)?,
            look_ahead: nanoseconds("look-ahead", self.look_ahead)?,
        })
    }
}

/// How records become commands, with what that takes.
pub(crate) enum Method {
    Gap,
    Record,
    Adaptive,
    Learned(Box<NoiseModel>),
}

/// The times of [`Options`] in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimits {
    pub(crate) gap: i64,
    pub(crate) answer_within: i64,
    pub(crate) reply_gap: i64,
    pub(crate) reply_within: i64,
    pub(crate) hole_wait: i64,
    pub(crate) look_ahead: i64,
}

impl TimeLimits {
    /// Records that follow each other within this time were written at once.
    pub(crate) fn at_once(&self) -> i64 {
        self.gap / 4
    }
}

fn nanoseconds(name: &str, time: SignedDuration) -> Result<i64, ConfigureError> {
    let limit = Duration::from_hours(24);
    Duration::try_from(time)
        .ok()
        .filter(|time| *time <= limit)
        .map(|time| time.as_nanos() as i64)
        .ok_or_else(|| ConfigureError::Usage(format!("`{name}` is {time}: it must be between 0 s and 24 h")))
}

impl StageOptions for Options {
    const NAME: &'static str = "command-segmenter";
    const ABOUT: &'static str = "Commands to a gateway, out of the TLS records around them";
    const EXAMPLES: &'static [&'static str] = &[
        "command-segmenter --gap 80ms < records.frames | sizeleak frames --kind command",
        "command-segmenter --algorithm adaptive < records.frames > commands.frames",
    ];

    fn resolve_paths(&mut self, folder: &Path) {
        self.model = self.model.take().map(|model| folder.join(model));
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        Ok(Box::new(Node::new(CommandSegmenter::new(self)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_pipeline_file() {
        let text = "algorithm = \"learned\"\nmodel = \"m.toml\"\ngap = \"80ms\"";
        let mut options: Options = toml::from_str(text).unwrap();
        options.resolve_paths(Path::new("there"));
        assert_eq!((options.algorithm, options.model), (Some(Algorithm::Learned), Some("there/m.toml".into())));
        assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
        assert!(toml::from_str::<Options>("algorithm = \"best\"").is_err());
    }
}
