//! The options of `command-segmenter`: its flags and its keys in `pipeline.toml`.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;
use sizeleak_model::{MAX_REPLY_WITHIN_MS, Model, ModelSet, ReplyWindows};
use sizeleak_platform::runtime::{ConfigureError, StageOptions};
use toml::{Table, Value};

use crate::noise_model::NoiseModels;

/// A tiny record this soon after one of a command, in nanoseconds, is its last part: both were in one packet.
pub(crate) const SAME_PACKET_NS: i64 = 500_000;

/// What the options are where neither they nor a model say otherwise.
const GAP: SignedDuration = SignedDuration::from_millis(40);
const ANSWER_WITHIN: SignedDuration = SignedDuration::from_millis(120);

/// The frames of HTTP/2 that carry nothing have at most 17 bytes, as those of PING have.
const MIN_SIZE: u64 = 18;

/// How long replies take where nothing else is known.
pub(crate) const USUAL_REPLY_WINDOWS: ReplyWindows = ReplyWindows { within_ms: 3_000, gap_ms: 800, mostly_ms: 1_000 };

/// How records become commands, and how long replies may take.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// How records become commands [default: `learned` with a model that has `[noise]`, else `adaptive`]
    #[arg(long, value_enum)]
    pub algorithm: Option<Algorithm>,

    /// The model of the gateway, made by `sizeleak learn` (algorithm `learned`); several files for several services or
    /// gateways
    #[arg(long, value_name = "FILE")]
    #[serde(with = "sizeleak_flow_models::model_files", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<sizeleak_flow_models::model_files::OneOrSeveral>")]
    pub model: Vec<PathBuf>,

    /// Whose messages are commands [default: what the model says, else `to`]
    ///
    /// Those to the gateway, those from it, which report what devices did, or both. With `both`, what the gateway sends
    /// in reply to a command belongs to that command.
    #[arg(long, value_enum)]
    pub direction: Option<CommandDirection>,

    /// Records that follow each other within this time are one command [default: the model's, else 40ms]
    ///
    /// With `adaptive` and `learned` only the records of one message.
    #[arg(long, value_name = "TIME")]
    pub gap: Option<SignedDuration>,

    /// Records of fewer plaintext bytes are keep-alives or acknowledgements [default: the model's, else 18]
    #[arg(long, value_name = "BYTES")]
    pub min_size: Option<u64>,

    /// A record this soon after one of the gateway is the answer to it [default: the model's, else 120ms]
    #[arg(long, value_name = "TIME")]
    pub answer_within: Option<SignedDuration>,

    /// The replies to a command end when the gateway is silent for this long [default: what the model says, else 800ms]
    #[arg(long, value_name = "TIME")]
    pub reply_gap: Option<SignedDuration>,

    /// Replies come within this time after a command [default: what the model says, else 3s]
    #[arg(long, value_name = "TIME")]
    pub reply_within: Option<SignedDuration>,

    /// Records of one flow may be this much later than those of others, for example where the capture misses bytes
    #[arg(
        long,
        value_name = "TIME",
        default_value = format!("{:#}", Options::default().hole_wait),
        hide_short_help = true
    )]
    pub hole_wait: SignedDuration,

    /// How far to look ahead before classifying a record (algorithm `adaptive`); commands are delayed by as much
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().look_ahead))]
    pub look_ahead: SignedDuration,
}

/// How records become commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Records that follow each other within `gap` are one command
    Gap,
    /// Every record is a command of its own
    Record,
    /// Learns from the records themselves which lengths are answers, are periodic, or are parts of one message
    Adaptive,
    /// Knows from labelled captures which sizes are answers, keep-alives or no combination of actions, and needs no
    /// look-ahead. If a size may be noise or a command, its time and the replies to it decide
    Learned,
}

/// Whose messages are commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandDirection {
    /// The service's: they make devices act
    #[default]
    To,
    /// The gateway's, which nothing prompted: they report what devices did. The replies are the service's
    From,
    /// Both: a command with its replies, and a report that is no reply to a command
    Both,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            algorithm: None,
            model: Vec::new(),
            direction: None,
            gap: None,
            min_size: None,
            answer_within: None,
            reply_gap: None,
            reply_within: None,
            hole_wait: SignedDuration::from_secs(3),
            look_ahead: SignedDuration::from_mins(3),
        }
    }
}

impl Options {
    /// The options that decide which commands there are, besides the direction and the windows of replies, which models
    /// have names of their own for. How far to look ahead is a matter of delay.
    pub const DECIDING: [&str; 4] = ["algorithm", "gap", "min-size", "answer-within"];

    /// These options and, where they say nothing, those by which the commands of the models were found. Also those of the
    /// models, as TOML lines, that others are given for.
    pub(crate) fn as_learned(&self, models: &ModelSet) -> Result<(Self, Vec<String>), ConfigureError> {
        let fault =
            |fault: &dyn Display| ConfigureError::Input(format!("[learned.found_with.{}]: {fault}", Self::NAME));
        let usual =
            Self { gap: Some(GAP), min_size: Some(MIN_SIZE), answer_within: Some(ANSWER_WITHIN), ..Self::default() };
        let usual = Table::try_from(usual).map_err(|error| fault(&error))?;
        let of_section = |model: &Model| -> Result<Table, ConfigureError> {
            let Some(options) = model.learned.found_with.get(Self::NAME) else { return Ok(usual.clone()) };
            // Read and written once, so that equal times are equal texts.
            let read = Self::deserialize(Value::Table(options.clone())).map_err(|error| fault(&error.message()))?;
            let written = Table::try_from(read).map_err(|error| fault(&error))?;
            Ok(usual.iter().chain(&written).map(|(key, value)| (key.clone(), value.clone())).collect())
        };
        let sections = models.sections().iter().map(of_section).collect::<Result<Vec<_>, _>>()?;
        let mut own = Table::try_from(self).map_err(|error| fault(&error))?;
        let mut differing = Vec::new();
        for key in Self::DECIDING {
            let mut learned: Vec<Option<&Value>> = sections.iter().map(|section| section.get(key)).collect();
            learned.dedup();
            match (own.get(key), &learned[..]) {
                (None, [Some(value)]) => drop(own.insert(key.to_owned(), (*value).clone())),
                (None, [_, _, ..]) => {
                    return Err(ConfigureError::Usage(format!(
                        "the models were learned with different values of `{key}`: name the one to use with `--{key}`"
                    )));
                }
                (Some(own), learned) => {
                    let other = learned.iter().find_map(|value| value.filter(|value| *value != own));
                    differing.extend(other.map(|value| format!("{key} = {value}")));
                }
                (None, _) => {}
            }
        }
        Ok((Self::deserialize(Value::Table(own)).map_err(|error| fault(&error.message()))?, differing))
    }

    pub fn min_size(&self) -> u64 {
        self.min_size.unwrap_or(MIN_SIZE)
    }

    /// Whose messages are commands: as the option says, or as the models have sections for.
    pub(crate) fn direction(&self, models: Option<&ModelSet>) -> CommandDirection {
        let scopes = || models.iter().flat_map(|models| models.sections()).map(|model| model.scope.reports);
        let learned = match (scopes().any(|reports| !reports), scopes().any(|reports| reports)) {
            (true, true) => CommandDirection::Both,
            (false, true) => CommandDirection::From,
            (_, false) => CommandDirection::To,
        };
        self.direction.unwrap_or(learned)
    }

    /// What the models know about noise, if the algorithm is `learned`, which is the default with such a model.
    pub(crate) fn noise_models(
        &self,
        models: Option<&ModelSet>,
        direction: CommandDirection,
    ) -> Result<Option<NoiseModels>, ConfigureError> {
        let (models, first) = match (self.algorithm, models.zip(self.model.first())) {
            (Some(Algorithm::Gap | Algorithm::Record | Algorithm::Adaptive), _) | (None, None) => return Ok(None),
            (Some(Algorithm::Learned), None) => {
                return Err(ConfigureError::Usage(
                    "the algorithm `learned` needs a model: add `--model FILE`; `sizeleak learn` makes one".into(),
                ));
            }
            (None | Some(Algorithm::Learned), Some(given)) => given,
        };
        let sender = match direction {
            CommandDirection::From => Direction::FromGateway,
            CommandDirection::To | CommandDirection::Both => Direction::ToGateway,
        };
        match NoiseModels::new(models, sender) {
            None if self.algorithm.is_some() => Err(ConfigureError::Input(format!(
                "{}: it has no [noise], which the algorithm `learned` needs: learn it again or use another algorithm",
                first.display()
            ))),
            noise_models => Ok(noise_models),
        }
    }

    /// The windows of replies, if one of them is given: with it, the other is the usual one.
    pub fn reply_windows(&self) -> Option<ReplyWindows> {
        let milliseconds = |time: SignedDuration| u64::try_from(time.as_millis()).unwrap_or_default();
        let (gap, within) = (self.reply_gap.map(milliseconds), self.reply_within.map(milliseconds));
        (gap.is_some() || within.is_some()).then(|| {
            let within_ms = within.unwrap_or(USUAL_REPLY_WINDOWS.within_ms).clamp(1, MAX_REPLY_WITHIN_MS);
            let gap_ms = gap.unwrap_or(USUAL_REPLY_WINDOWS.gap_ms).clamp(1, within_ms);
            ReplyWindows { within_ms, gap_ms, ..USUAL_REPLY_WINDOWS }
        })
    }

    /// The options that are times, in nanoseconds; `learned` are those of the model.
    pub(crate) fn time_limits(&self, learned: Option<ReplyWindows>) -> Result<TimeLimits, ConfigureError> {
        let windows = learned.unwrap_or(USUAL_REPLY_WINDOWS);
        let milliseconds = |ms: u64| SignedDuration::from_millis(ms.try_into().unwrap_or(i64::MAX));
        let reply_gap = self.reply_gap.unwrap_or_else(|| milliseconds(windows.gap_ms));
        let reply_within = self.reply_within.unwrap_or_else(|| milliseconds(windows.within_ms));
        Ok(TimeLimits {
            gap_ns: nanoseconds("gap", self.gap.unwrap_or(GAP))?,
            answer_within_ns: nanoseconds("answer-within", self.answer_within.unwrap_or(ANSWER_WITHIN))?,
            reply_gap_ns: nanoseconds("reply-gap", reply_gap)?,
            reply_within_ns: nanoseconds("reply-within", reply_within)?,
            reply_mostly_within_ns: nanoseconds("reply-within", milliseconds(windows.mostly_ms).min(reply_within))?,
            hole_wait_ns: nanoseconds("hole-wait", self.hole_wait)?,
            look_ahead_ns: nanoseconds("look-ahead", self.look_ahead)?,
        })
    }
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct TimeLimits {
    pub(crate) gap_ns: i64,
    pub(crate) answer_within_ns: i64,
    pub(crate) reply_gap_ns: i64,
    pub(crate) reply_within_ns: i64,
    pub(crate) reply_mostly_within_ns: i64,
    pub(crate) hole_wait_ns: i64,
    pub(crate) look_ahead_ns: i64,
}

impl TimeLimits {
    pub(crate) fn same_write_ns(&self) -> i64 {
        self.gap_ns / 4
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

#[cfg(test)]
mod tests {
    use sizeleak_model::NoiseStatistics;

    use super::*;

    #[test]
    fn options_are_read_from_their_keys_and_have_defaults() {
        let options: Options = toml::from_str("algorithm = \"learned\"\nmodel = \"m.toml\"\ngap = \"80ms\"").unwrap();
        let gap = Some(SignedDuration::from_millis(80));
        let (algorithm, model) = (Some(Algorithm::Learned), vec!["m.toml".into()]);
        assert_eq!(options, Options { algorithm, model, gap, ..Options::default() });
        assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
        assert!(toml::from_str::<Options>("algorithm = \"best\"").is_err());
    }

    /// Sections of different services, each learned with some options.
    fn models(sections: &[&str]) -> ModelSet {
        let section = |(at, options): (usize, &&str)| {
            let mut model = crate::testing::model(NoiseStatistics::default());
            model.scope.services = vec![format!("service-{at}.example").parse().unwrap()];
            model.learned.found_with = [(Options::NAME.to_owned(), options.parse().unwrap())].into();
            model
        };
        ModelSet::new(sections.iter().enumerate().map(section).collect()).unwrap()
    }

    #[test]
    fn commands_are_found_as_those_that_models_were_learned_from() {
        let small = models(&["min-size = 4\ngap = \"0.08s\"", "gap = \"80ms\"\nmin-size = 4"]);
        let (used, differing) = Options::default().as_learned(&small).unwrap();
        assert_eq!((used.min_size(), used.gap), (4, Some(SignedDuration::from_millis(80))));
        assert!(differing.is_empty());
        let given = Options { min_size: Some(16), ..Options::default() };
        let (used, differing) = given.as_learned(&small).unwrap();
        assert_eq!((used.min_size(), differing), (16, vec!["min-size = 4".to_owned()]));
        let (_, differing) = Options { min_size: Some(5), ..given }.as_learned(&models(&[""])).unwrap();
        assert_eq!(differing, ["min-size = 18"]);
    }

    #[test]
    fn models_of_different_options_need_a_choice() {
        let models = models(&["min-size = 4", ""]);
        let error = Options::default().as_learned(&models).unwrap_err().to_string();
        assert!(error.contains("`--min-size`"), "{error}");
        let chosen = Options { min_size: Some(16), ..Options::default() };
        assert_eq!(chosen.as_learned(&models).unwrap().1, ["min-size = 4"]);
    }

    #[test]
    fn unknown_options_of_a_model_are_refused() {
        let error = Options::default().as_learned(&models(&["loudness = 4"])).unwrap_err().to_string();
        assert!(error.contains("found_with.command-segmenter") && error.contains("loudness"), "{error}");
    }
}
