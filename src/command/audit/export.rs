//! What an observer sees, for other programs: probabilities, or samples.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use sizeleak_audit::leakage::{Joint, Secret};
use sizeleak_audit::padding::{PaddingPolicy, TraceDirection, TraceRecord, TraceSource};
use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer, Output};
use sizeleak_inference::space::{CommandSpace, SpaceError};
use sizeleak_model::Model;
use sizeleak_platform::telemetry::log::say;

use crate::command::failure::Failure;
use crate::command::help::OUTPUT;

/// A trace of more commands would be too large.
const MOST_TRACED: u32 = 1_000_000;

/// A trace of more days would be of no use.
const MOST_DAYS: f64 = 36_500.0;

/// Whether notes are said on the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notes {
    Said,
    Quiet,
}

/// What is exported.
#[derive(Debug, Args)]
pub(super) struct ExportOptions {
    /// Write what is seen of every secret, instead of figures
    #[arg(long, value_enum, hide_short_help = true, help_heading = OUTPUT,
        conflicts_with_all = ["format", "json", "best", "curve", "countermeasures", "batch", "dummies", "delay", "replies"])]
    pub(super) export: Option<Export>,

    /// The secret that is exported [default: command]
    #[arg(long, value_enum, requires = "export", hide_short_help = true, help_heading = OUTPUT)]
    pub(super) secret: Option<ExportedSecret>,

    /// What the observer sees in the export [default: sizes]
    #[arg(long, value_enum, requires = "export", hide_short_help = true, help_heading = OUTPUT)]
    pub(super) observer: Option<ExportedObserver>,

    /// How many samples `--export samples` draws, or commands `--export maybenot`
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, hide_short_help = true, help_heading = OUTPUT,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,

    /// The seed of samples, permutations and bootstraps
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_short_help = true, help_heading = OUTPUT)]
    pub(super) seed: u64,
}

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Export {
    /// A row for each secret and observable, with the probability of both
    Csv,
    /// Random rows without a header, the secret's number first: what fbleau reads
    Samples,
    /// A random trace of commands and replies, `time,direction,size` in nanoseconds and bytes without a header: what
    /// Maybenot's simulator reads, which leaves sizes aside
    Maybenot,
}

/// What `--export` is taken from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exported<'a> {
    pub(super) space: &'a CommandSpace,
    pub(super) model: &'a Model,
    pub(super) knowledge: EpsilonKnowledge,
    /// How commands are padded; `None` if they are not.
    pub(super) policy: Option<&'a PaddingPolicy>,
    pub(super) commands_per_day: f64,
}

/// The secret that is exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportedSecret {
    /// Which actions, and how often each
    #[default]
    Command,
    /// How many actions
    Number,
    /// Which kinds of device
    Devices,
}

impl From<ExportedSecret> for Secret {
    fn from(secret: ExportedSecret) -> Self {
        match secret {
            ExportedSecret::Command => Self::Command,
            ExportedSecret::Number => Self::Number,
            ExportedSecret::Devices => Self::Kinds,
        }
    }
}

/// What the observer sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportedObserver {
    /// The size
    #[default]
    Sizes,
    /// The size and the number of replies
    ReplyCount,
    /// The size and each reply; of labelled captures, the bytes of replies
    Replies,
}

impl ExportOptions {
    /// What is exported, as text. `notes` says whether notes go to the terminal.
    pub(super) fn text(&self, export: Export, exported: &Exported<'_>, notes: Notes) -> Result<Vec<u8>, Failure> {
        match export {
            Export::Csv => joint_csv(&self.joint(exported)?),
            Export::Samples => Ok(self.samples_csv(&self.joint(exported)?)),
            Export::Maybenot => self.trace(exported, notes),
        }
    }

    fn joint(&self, exported: &Exported<'_>) -> Result<Joint, Failure> {
        let Exported { space, model, knowledge, policy, .. } = *exported;
        if policy.is_some() {
            return Err(Failure::usage(anyhow!("of the exports, only `--export maybenot` takes a `--policy`")));
        }
        let secret = self.secret.unwrap_or_default().into();
        let observer = match self.observer.unwrap_or_default() {
            ExportedObserver::Sizes => Observer::Sizes,
            ExportedObserver::ReplyCount => Observer::ReplyCount,
            ExportedObserver::Replies => Observer::Replies,
        };
        Joint::new(space, model, secret, observer, knowledge)?.ok_or_else(|| {
            Failure::usage(anyhow!(
                "there is nothing to export: the replies of this model say nothing, or it has no inventory"
            ))
        })
    }

    /// A trace as Maybenot's simulator reads it. The gateway is its client, which sends replies and receives commands.
    fn trace(&self, exported: &Exported<'_>, notes: Notes) -> Result<Vec<u8>, Failure> {
        let Exported { space, model, knowledge, policy, commands_per_day } = *exported;
        if self.secret.is_some() || self.observer.is_some() {
            let fault = "`--export maybenot` writes all messages: leave out `--secret` and `--observer`";
            return Err(Failure::usage(anyhow!(fault)));
        }
        if self.samples > MOST_TRACED || f64::from(self.samples) / commands_per_day > MOST_DAYS {
            let fault = "has at most 1000000 commands and lasts at most 100 years: lower `--samples`, or raise \
                         `--commands-per-day`";
            return Err(Failure::usage(anyhow!("a trace {fault}")));
        }
        let observer = if model.single_replies.is_some() { Observer::Replies } else { Observer::Sizes };
        if observer == Observer::Sizes && notes == Notes::Said {
            say("note", "the model does not know single replies: the trace has commands alone");
        }
        let observation = Observation::new(space, model, observer, knowledge)?.ok_or(SpaceError::TooMany)?;
        let policy = policy.unwrap_or(&PaddingPolicy::None);
        let source = TraceSource { observation: &observation, model, policy, commands_per_day };
        let line = |record: TraceRecord| {
            let direction = match record.direction {
                TraceDirection::ToGateway => 'r',
                TraceDirection::FromGateway => 's',
            };
            format!("{},{direction},{}\n", record.time_ns, record.bytes)
        };
        let lines: String = source.draw(self.samples, self.seed).into_iter().map(line).collect();
        Ok(lines.into_bytes())
    }

    fn samples_csv(&self, joint: &Joint) -> Vec<u8> {
        let mut text = String::new();
        for (secret, Output { size, replies }) in joint.samples(self.samples, self.seed) {
            let numbers = [u64::from(secret), *size].into_iter().chain(replies.iter().copied().map(u64::from));
            let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
            text += &numbers.join(",");
            text.push('\n');
        }
        text.into_bytes()
    }
}

fn joint_csv(joint: &Joint) -> Result<Vec<u8>, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["secret", "observable", "probability"])?;
    for (secret, Output { size, replies }, probability) in &joint.entries {
        let numbers = std::iter::once(size.to_string()).chain(replies.iter().map(u32::to_string));
        let observable = numbers.collect::<Vec<_>>().join(" ");
        let name = joint.secrets.get(*secret as usize).map_or("", String::as_str);
        writer.write_record([name, &observable, &format!("{probability:e}")])?;
    }
    writer.into_inner().map_err(|error| Failure::from(anyhow!("the export cannot be written: {error}")))
}
