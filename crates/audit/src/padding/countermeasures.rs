//! What a vendor can do about commands and replies, beside padding, and what that costs: send commands together or late,
//! send dummies, and give replies one form.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Model, ReplyClass};
use thiserror::Error;

use sizeleak_inference::channel::{Observation, Observer};

#[derive(Debug, Clone, PartialEq)]
pub struct Countermeasures {
    /// How messages to the gateway are padded: all commands of a record together.
    pub policy: PaddingPolicy,
    /// When commands are sent, and which of them share a record.
    pub sending: Sending,
    /// The share of all commands sent that are dummies, from 0 to below 1. Each command is one with this probability,
    /// whatever the others are; dummies are drawn like real commands, sent and answered like them, and do nothing.
    pub dummies: f64,
    pub replies: ReplyForm,
}

/// When commands are sent, and which of them share a record. A record has the bytes of all its commands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sending {
    /// Each at once, in a record of its own.
    AtOnce,
    /// So many together, as soon as they are.
    Batches(u32),
    /// At fixed times, so many seconds apart: all commands since the last time together, nothing if there are none.
    /// Commands are taken to come as a Poisson process.
    Every(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum ReplyForm {
    #[cfg_attr(feature = "clap", value(skip))]
    AsTheyAre,
    /// All are as long as the greatest one; their number stays
    OneSize,
    /// One of that size to each message to the gateway, whatever it holds
    OneReply,
    /// There are none
    #[cfg_attr(feature = "clap", value(name = "none"))]
    NoReply,
}

impl Countermeasures {
    pub const NONE: Self =
        Self { policy: PaddingPolicy::None, sending: Sending::AtOnce, dummies: 0.0, replies: ReplyForm::AsTheyAre };
}

impl Display for Countermeasures {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.policy != PaddingPolicy::None {
            parts.push(self.policy.to_string());
        }
        match self.sending {
            Sending::AtOnce => {}
            Sending::Batches(commands) => parts.push(format!("batches of {commands}")),
            Sending::Every(seconds) => parts.push(format!("delay of {seconds} s")),
        }
        if self.dummies > 0.0 {
            parts.push(format!("{} % dummies", (self.dummies * 1000.0).round() / 10.0));
        }
        match self.replies {
            ReplyForm::AsTheyAre => {}
            ReplyForm::OneSize => parts.push("replies of one size".to_owned()),
            ReplyForm::OneReply => parts.push("one reply".to_owned()),
            ReplyForm::NoReply => parts.push("no replies".to_owned()),
        }
        if parts.is_empty() { formatter.write_str("none") } else { formatter.write_str(&parts.join(", ")) }
    }
}

#[derive(Debug, Error, Clone, Copy, PartialEq)]
pub enum CountermeasureError {
    #[error(
        "about {0:.0} commands would share a record, too many to sum over: take a shorter delay, or fewer commands a day"
    )]
    Crowded(f64),
    #[error(
        "commands that share a record have too many sizes to sum over: take smaller batches, a shorter delay or a smaller \
         inventory"
    )]
    TooManySizes,
}

/// The replies to a command, as far as a model knows them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReplyTraffic {
    /// How many there are, as is expected.
    pub replies: Option<f64>,
    /// Their bytes together, as is expected.
    pub bytes: Option<f64>,
    /// The bytes of the greatest one that was seen.
    pub greatest: Option<f64>,
}

impl ReplyTraffic {
    /// What a model says of the replies that its observer sees.
    pub(crate) fn new(model: &Model, observer: Observer, observation: &Observation) -> Self {
        let classes = expected_replies(observation);
        let known = model.single_replies.as_ref().filter(|_| observer == Observer::Replies);
        let known = known.map(|single| single.classes.as_slice());
        let sizes = known.into_iter().flatten().flat_map(|class| class.sizes.iter().map(|(size, _)| *size));
        let bytes =
            |known: &[ReplyClass]| known.iter().zip(&classes).map(|(class, times)| mean_bytes(class) * times).sum();
        Self {
            replies: Some(classes.iter().sum()),
            bytes: known.map(bytes),
            greatest: sizes.max().map(|size| size as f64),
        }
    }
}

/// The expected number of replies of each class, or of all as the only entry.
fn expected_replies(observation: &Observation) -> Vec<f64> {
    let mut expected: Vec<f64> = Vec::new();
    for row in &observation.command.rows {
        for (output, probability) in &row.outputs {
            let seen = observation.output(*output).replies;
            expected.resize(expected.len().max(seen.len()), 0.0);
            for (sum, times) in expected.iter_mut().zip(seen) {
                *sum += row.secrets.weight * probability * f64::from(times);
            }
        }
    }
    expected
}

fn mean_bytes(class: &ReplyClass) -> f64 {
    let all: f64 = class.sizes.iter().map(|(_, times)| *times as f64).sum();
    let bytes: f64 = class.sizes.iter().map(|(size, times)| *size as f64 * *times as f64).sum();
    if all > 0.0 { bytes / all } else { 0.0 }
}

pub(crate) const DAY: f64 = 86_400.0;

/// What countermeasures cost for each command that a user sends, as is expected, compared with none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CountermeasureCost {
    /// Bytes more to the gateway: padding and dummies.
    pub added_bytes: f64,
    /// These as a share of a command's bytes.
    pub added_share: f64,
    /// Bytes more of replies, negative if there are fewer; `None` if the model does not know it.
    pub added_reply_bytes: Option<f64>,
    /// Megabytes (10⁶ bytes) more a day, both ways; `None` if the model does not know those of replies.
    pub megabytes_a_day: Option<f64>,
    /// Messages more to the gateway a day, negative if there are fewer.
    pub added_messages_a_day: f64,
    /// Replies more a day, negative if there are fewer; `None` if the model does not know it.
    pub added_replies_a_day: Option<f64>,
    /// How many seconds later a command is sent, on average.
    pub mean_delay_seconds: f64,
    /// How many seconds later at most; `None` if there is no limit.
    pub most_delay_seconds: Option<f64>,
}

/// Commands without countermeasures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandTraffic {
    /// The expected bytes of one.
    pub(crate) bytes: f64,
    pub(crate) a_day: f64,
    pub(crate) replies: ReplyTraffic,
}

impl CountermeasureCost {
    /// Commands, dummies among them, are sent in so many `records` each, with so many expected bytes of `padding`.
    pub(crate) fn new(
        countermeasures: &Countermeasures,
        commands: &CommandTraffic,
        records: f64,
        padding: f64,
    ) -> Self {
        // With dummies, there are so many commands for each real one.
        let sent = 1.0 / (1.0 - countermeasures.dummies);
        let messages = sent * records;
        let added_bytes = sent * (commands.bytes + padding) - commands.bytes;
        let ReplyTraffic { replies, bytes, greatest } = commands.replies;
        let (replies_then, bytes_then) = match countermeasures.replies {
            ReplyForm::AsTheyAre => (replies.map(|replies| sent * replies), bytes.map(|bytes| sent * bytes)),
            ReplyForm::OneSize => {
                let replies = replies.map(|replies| sent * replies);
                (replies, replies.zip(greatest).map(|(replies, greatest)| replies * greatest))
            }
            ReplyForm::OneReply => (Some(messages), greatest.map(|greatest| messages * greatest)),
            ReplyForm::NoReply => (Some(0.0), Some(0.0)),
        };
        let is_same = countermeasures.replies == ReplyForm::AsTheyAre && countermeasures.dummies <= 0.0;
        let added = |before: Option<f64>, then: Option<f64>| {
            if is_same { Some(0.0) } else { before.zip(then).map(|(before, then)| then - before) }
        };
        let added_reply_bytes = added(bytes, bytes_then);
        let seconds_apart = DAY / (commands.a_day * sent);
        let (mean_delay_seconds, most_delay_seconds) = match countermeasures.sending {
            Sending::AtOnce => (0.0, Some(0.0)),
            // The first waits for all others, the last for none.
            Sending::Batches(commands) => (f64::from(commands.saturating_sub(1)) / 2.0 * seconds_apart, None),
            Sending::Every(seconds) => (seconds / 2.0, Some(seconds)),
        };
        Self {
            added_bytes,
            added_share: if commands.bytes > 0.0 { added_bytes / commands.bytes } else { 0.0 },
            added_reply_bytes,
            megabytes_a_day: added_reply_bytes.map(|of_replies| (added_bytes + of_replies) * commands.a_day / 1e6),
            added_messages_a_day: (messages - 1.0) * commands.a_day,
            added_replies_a_day: added(replies, replies_then).map(|replies| replies * commands.a_day),
            mean_delay_seconds,
            most_delay_seconds,
        }
    }
}
