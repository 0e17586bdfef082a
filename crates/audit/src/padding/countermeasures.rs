//! What a vendor can do about commands and replies, beside padding: send commands together or late, send dummies, and
//! give replies one form.

use std::fmt::{self, Display, Formatter};

use sizeleak_model::policies::PaddingPolicy;

/// What is done so that messages give away less.
#[derive(Debug, Clone, PartialEq)]
pub struct Countermeasures {
    /// How messages to the gateway are padded: all commands of a record together.
    pub policy: PaddingPolicy,
    /// When commands are sent, and which of them share a record.
    pub sending: Sending,
    /// The share of all commands sent that are dummies, from 0 to below 1. Each command is one with this probability,
    /// whatever the others are; dummies are drawn like real commands, sent and answered like them, and do nothing.
    pub dummies: f64,
    /// What replies look like.
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

/// What replies look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyForm {
    /// As the gateway sends them.
    AsTheyAre,
    /// All of the size of the greatest one. Their number stays.
    OneSize,
    /// One of that size to each message to the gateway, whatever it holds.
    OneReply,
    /// None at all.
    NoReply,
}

impl Countermeasures {
    /// Nothing is done.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_all_that_is_done() {
        let all = Countermeasures {
            policy: PaddingPolicy::Padme,
            sending: Sending::Every(0.5),
            dummies: 0.125,
            replies: ReplyForm::OneSize,
        };
        assert_eq!(all.to_string(), "padme, delay of 0.5 s, 12.5 % dummies, replies of one size");
        assert_eq!(Countermeasures::NONE.to_string(), "none");
    }
}
