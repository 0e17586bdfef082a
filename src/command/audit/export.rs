//! What an observer sees, for other programs: probabilities, or samples.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use sizeleak_leakage::{CommandSpace, EpsilonKnowledge, Joint, Observer, Output, Secret};
use sizeleak_model::Model;

use crate::command::failure::Failure;
use crate::command::help::OUTPUT;

/// What is exported.
#[derive(Debug, Args)]
pub(super) struct ExportOptions {
    /// Write what is seen of every secret, instead of figures
    #[arg(long, value_enum, hide_short_help = true, help_heading = OUTPUT, conflicts_with_all = ["format", "json", "padding"])]
    pub(super) export: Option<Export>,

    /// The secret that is exported
    #[arg(long, value_enum, default_value_t, requires = "export", hide_short_help = true, help_heading = OUTPUT)]
    pub(super) secret: ExportedSecret,

    /// What the observer sees in the export
    #[arg(long, value_enum, default_value_t, requires = "export", hide_short_help = true, help_heading = OUTPUT)]
    pub(super) observer: ExportedObserver,

    /// How many samples `--export samples` draws
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
    /// What is exported, as text.
    pub(super) fn text(
        &self,
        export: Export,
        space: &CommandSpace,
        model: &Model,
        knowledge: EpsilonKnowledge,
    ) -> Result<Vec<u8>, Failure> {
        let secret = self.secret.into();
        let observer = match self.observer {
            ExportedObserver::Sizes => Observer::Sizes,
            ExportedObserver::ReplyCount => Observer::ReplyCount,
            ExportedObserver::Replies => Observer::Replies,
        };
        let joint = Joint::new(space, model, secret, observer, knowledge)?.ok_or_else(|| {
            Failure::usage(anyhow!(
                "there is nothing to export: the replies of this model say nothing, or it has no inventory"
            ))
        })?;
        match export {
            Export::Csv => joint_csv(&joint),
            Export::Samples => Ok(self.samples_csv(&joint)),
        }
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
