//! The options of countermeasures beside padding.

use clap::{Args, ValueEnum};
use sizeleak_audit::padding::{Countermeasures, PaddingPolicy, ReplyForm, Sending};

use super::quantity;
use crate::command::help::PADDING;

/// The longest delay, in seconds.
const MOST_DELAY: f64 = 86_400.0;

/// Options of the search for a table and of the curve, which padding and countermeasures that are given do not go with.
/// clap would not say that these options need others which are excluded.
pub(super) const OF_SEARCHES: [&str; 14] = [
    "best",
    "random",
    "with_floor",
    "curve",
    "budget",
    "target",
    "objective",
    "most_posterior",
    "least_set",
    "without_floor",
    "table_json",
    "table_c",
    "table_rust",
    "csv",
];

/// What is done beside padding.
#[derive(Debug, Args)]
pub(super) struct CountermeasureOptions {
    /// Compare batches, delay, dummy commands and forms of replies by what they give away and cost, alone or with
    /// `--policy`
    #[arg(long, help_heading = PADDING, group = "padding", hide_short_help = true,
        conflicts_with_all = OF_SEARCHES, conflicts_with_all = ["batch", "dummies", "delay", "replies"])]
    countermeasures: bool,

    /// Audit batches: so many commands share a record, as soon as they have come
    #[arg(long, value_name = "COMMANDS", help_heading = PADDING, group = "padding", hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(2..=16), conflicts_with_all = OF_SEARCHES)]
    batch: Option<u32>,

    /// Audit dummy commands: this share of all commands sent, 30% for example
    #[arg(long, value_name = "SHARE", help_heading = PADDING, group = "padding", hide_short_help = true,
        value_parser = dummies, conflicts_with_all = OF_SEARCHES)]
    dummies: Option<f64>,

    /// Audit delay: messages are sent at fixed times, so many seconds apart, and commands between two share a record
    #[arg(long, value_name = "SECONDS", help_heading = PADDING, group = "padding", hide_short_help = true,
        value_parser = delay, conflicts_with = "batch", conflicts_with_all = OF_SEARCHES)]
    delay: Option<f64>,

    /// Audit what replies look like
    #[arg(long, value_enum, value_name = "FORM", help_heading = PADDING, group = "padding", hide_short_help = true,
        conflicts_with_all = OF_SEARCHES)]
    replies: Option<ReplyFormName>,
}

/// What replies look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReplyFormName {
    /// All are as long as the greatest one
    OneSize,
    /// One of that size to each message
    OneReply,
    /// There are none
    None,
}

impl From<ReplyFormName> for ReplyForm {
    fn from(form: ReplyFormName) -> Self {
        match form {
            ReplyFormName::OneSize => Self::OneSize,
            ReplyFormName::OneReply => Self::OneReply,
            ReplyFormName::None => Self::NoReply,
        }
    }
}

impl CountermeasureOptions {
    /// Whether all are to be compared.
    pub(super) fn are_compared(&self) -> bool {
        self.countermeasures
    }

    /// What is named, with a policy; `None` if nothing is.
    pub(super) fn named(&self, policy: PaddingPolicy) -> Option<Countermeasures> {
        let sending = match (self.batch, self.delay) {
            (Some(commands), _) => Sending::Batches(commands),
            (None, Some(seconds)) => Sending::Every(seconds),
            (None, None) => Sending::AtOnce,
        };
        let is_named = sending != Sending::AtOnce || self.dummies.is_some() || self.replies.is_some();
        let replies = self.replies.map_or(ReplyForm::AsTheyAre, ReplyForm::from);
        is_named.then(|| Countermeasures { policy, sending, dummies: self.dummies.unwrap_or(0.0), replies })
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
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0 && *seconds <= MOST_DELAY);
    seconds.ok_or_else(|| format!("it must be a number of seconds above 0, at most {MOST_DELAY}"))
}
