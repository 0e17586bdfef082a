//! The options of a policy that is judged, and of countermeasures beside padding.

use clap::Args;
use sizeleak_audit::padding::{Countermeasures, PaddingPolicy, ReplyForm, Sending};
use sizeleak_platform::storage::RunFiles;

use super::quantity;
use crate::command::failure::Failure;
use crate::command::padding_option::PaddingOption;

/// The longest delay: a day, in seconds.
const MAX_DELAY: f64 = 86_400.0;

/// A policy, and what is done beside padding.
#[derive(Debug, Args)]
#[group(id = "judged", conflicts_with = "table")]
pub(super) struct CountermeasureOptions {
    /// Judge padding: none, multiple:BYTES, powers-of-two, padme, tls13:BYTES, random:BYTES, keyed-random:BYTES,
    /// constant:BYTES, or a JSON file
    #[arg(long, value_name = "NAME|FILE")]
    policy: Option<PaddingOption>,

    /// Compare batches, delay, dummy commands and forms of replies by what they give away and cost, with `--policy` or
    /// without
    #[arg(long, conflicts_with_all = ["batch", "dummies", "delay", "replies"])]
    countermeasures: bool,

    /// Judge batches: so many commands share a record, as soon as they have come
    #[arg(long, value_name = "COMMANDS", hide_short_help = true, value_parser = clap::value_parser!(u32).range(2..=16))]
    batch: Option<u32>,

    /// Judge dummy commands: this share of all commands sent, 30% for example
    #[arg(long, value_name = "SHARE", hide_short_help = true, value_parser = dummies)]
    dummies: Option<f64>,

    /// Judge delay: messages are sent so many seconds apart, and commands between two share a record
    #[arg(long, value_name = "SECONDS", hide_short_help = true, value_parser = delay, conflicts_with = "batch")]
    delay: Option<f64>,

    /// Judge what replies look like
    #[arg(long, value_enum, value_name = "FORM", hide_short_help = true)]
    replies: Option<ReplyForm>,
}

impl CountermeasureOptions {
    /// Adds the file with the policy.
    pub(super) fn add_to(&self, files: &mut RunFiles) {
        let file = self.policy.as_ref().and_then(PaddingOption::file);
        if let Some(path) = file {
            files.reads("`--policy`", path);
        }
    }

    /// The policy that is named.
    pub(super) fn policy(&self) -> Result<Option<PaddingPolicy>, Failure> {
        self.policy.as_ref().map(|policy| policy.policy().map_err(Failure::usage)).transpose()
    }

    /// Whether all are to be compared.
    pub(super) fn are_compared(&self) -> bool {
        self.countermeasures
    }

    /// What is done beside a policy; `None` if nothing is.
    pub(super) fn named(&self, policy: PaddingPolicy) -> Option<Countermeasures> {
        let sending = match (self.batch, self.delay) {
            (Some(commands), _) => Sending::Batches(commands),
            (None, Some(seconds)) => Sending::Every(seconds),
            (None, None) => Sending::AtOnce,
        };
        let is_named = sending != Sending::AtOnce || self.dummies.is_some() || self.replies.is_some();
        let (dummies, replies) = (self.dummies.unwrap_or(0.0), self.replies.unwrap_or(ReplyForm::AsTheyAre));
        is_named.then_some(Countermeasures { policy, sending, dummies, replies })
    }
}

/// All that are compared, with a policy: the policy alone first.
pub(super) fn compared(policy: &PaddingPolicy) -> Vec<Countermeasures> {
    let alone = Countermeasures { policy: policy.clone(), ..Countermeasures::NONE };
    let mut compared = vec![alone.clone()];
    let batches = [2, 3].map(Sending::Batches);
    let delays = [1.0, 10.0, 60.0].map(Sending::Every);
    compared.extend(batches.into_iter().chain(delays).map(|sending| Countermeasures { sending, ..alone.clone() }));
    compared.extend([0.1, 0.3, 0.5].map(|dummies| Countermeasures { dummies, ..alone.clone() }));
    let forms = [ReplyForm::OneSize, ReplyForm::OneReply, ReplyForm::NoReply];
    compared.extend(forms.map(|replies| Countermeasures { replies, ..alone.clone() }));
    compared.push(Countermeasures {
        sending: Sending::Every(60.0),
        dummies: 0.3,
        replies: ReplyForm::OneReply,
        ..alone
    });
    compared
}

/// A share of dummies: some, but not all.
fn dummies(text: &str) -> Result<f64, String> {
    let share = quantity::share(text).ok().filter(|share| *share <= 0.99);
    share.ok_or_else(|| "it must be above 0 and at most 0.99, or 99%".to_owned())
}

fn delay(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && *seconds <= MAX_DELAY);
    seconds.ok_or_else(|| format!("it must be a number of seconds above 0, at most {MAX_DELAY}"))
}
