//! Sizes of actions from commands without labels.
//!
//! A command has the size |s| = |ac| + ε + Σ |aᵢ|·nbᵢ and what length fields add to it. [`learn`] estimates all of it
//! from sizes and single replies alone, by blind deconvolution: each action sends one reply of its own size, or none,
//! so the replies tell how many actions of each class a command has, and the sizes of commands tell how large they
//! are. Labels are welcome, however few: they give actions their names, and count as evidence with everything else.
//! Here stands what is known of commands beforehand, and what a fit finds in them, or why there is none.

mod learning;
mod lost_replies;
mod naming;
mod rows;
mod search;
mod sparsity;

use std::fmt;

use thiserror::Error;

pub use learning::learn;

/// How the length of the body shows in the size of a command beyond itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LengthFields {
    /// No length field, or one of fixed width.
    None,
    /// WebSocket's extended payload length (RFC 6455): two more bytes from a payload of 126 on, eight from 65,536.
    WebSocket,
    /// The remaining length of MQTT: one more byte from 128, 16,384 and 2,097,152 bytes on.
    Mqtt,
    /// The decimal digits of HTTP's Content-Length.
    Http {
        /// Bytes of a message with a Content-Length of two digits, without its body.
        head: i64,
    },
    /// The Huffman-coded digits of Content-Length in HTTP/2 (RFC 7541), and a frame header for each 16,384 bytes.
    Http2 {
        /// Bytes of a message with a Content-Length of two digits, without its body.
        head: i64,
    },
}

impl fmt::Display for LengthFields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "messages without a length field, or with one of fixed width",
            Self::WebSocket => "WebSocket",
            Self::Mqtt => "MQTT",
            Self::Http { .. } => "HTTP/1.1",
            Self::Http2 { .. } => "HTTP/2",
        })
    }
}

impl LengthFields {
    /// The bytes that length fields add to a command of this size, in bytes, relative to short messages.
    pub fn grown(self, size: i64) -> i64 {
        match self {
            Self::None => 0,
            // A header of two bytes before a payload of at most 125.
            Self::WebSocket => match size {
                ..=127 => 0,
                128..=65_539 => 2,
                _ => 8,
            },
            // A type and a length of one byte before at most 127.
            Self::Mqtt => match size {
                ..=129 => 0,
                130..=16_386 => 1,
                16_387..=2_097_155 => 2,
                _ => 3,
            },
            Self::Http { head } => {
                let rest = size.saturating_sub(head);
                // A body of 10ⁿ bytes or more has n + 1 digits, which are n − 1 more than two.
                match rest {
                    ..=8 => -1,
                    9..=100 => 0,
                    101..=1000 => 1,
                    1001..=10_001 => 2,
                    10_002..=100_002 => 3,
                    _ => 4,
                }
            }
            Self::Http2 { head } => http2_growth(size.saturating_sub(head)),
        }
    }
}

/// The growth of a message of `rest` bytes beyond its head: of the shortest body that explains it.
fn http2_growth(rest: i64) -> i64 {
    let explains = |growth: &i64| {
        let body = rest.saturating_sub(*growth);
        body >= 0 && content_length_bytes(body) - 2 + 9 * (body / 16_384) == *growth
    };
    let frames = 9 * (rest.max(0) / 16_384);
    (-1..=3).rev().map(|digits| digits + frames).find(explains).unwrap_or(frames)
}

/// Bytes of the decimal number in HPACK's Huffman code: 0, 1 and 2 take five bits, other digits six.
fn content_length_bytes(body: i64) -> i64 {
    let bits: i64 = body.to_string().bytes().map(|digit| if digit <= b'2' { 5 } else { 6 }).sum();
    (bits + 7) / 8
}

#[derive(Debug, Clone, PartialEq)]
pub struct BlindAction {
    /// Its name, if labels give it one.
    pub name: Option<String>,
    /// Its most probable size in bytes, at least 1.
    pub size: i64,
    /// The smallest and the largest size in bytes that the commands leave open.
    pub interval: [i64; 2],
    /// The size of its reply in bytes; `None` if it sends none, or if replies were not observed.
    pub reply: Option<i64>,
    /// Its share of all actions.
    pub frequency: f64,
}

/// Another explanation that the commands hardly distinguish from the best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alternative {
    /// Its size of a command without actions, in bytes.
    pub overhead: i64,
    pub length_fields: LengthFields,
    pub actions: usize,
    /// By how much its log-likelihood is below that of the best, in nats.
    pub difference: f64,
}

/// Two names that the labels would fit nearly as well the other way round.
#[derive(Debug, Clone, PartialEq)]
pub struct UncertainNames {
    pub names: [String; 2],
    /// The probability that they are the other way round, at most 0.5.
    pub probability: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BlindFit {
    /// |ac|: the size of a short command without actions, in bytes.
    pub overhead: i64,
    /// Other explanations that the commands hardly distinguish from this, most likely first.
    pub alternatives: Vec<Alternative>,
    /// How the length of the body shows in the size beyond itself.
    pub length_fields: LengthFields,
    /// The values of ε in bytes with their probabilities; the most probable is 0.
    pub epsilons: Vec<(i64, f64)>,
    /// The actions, ordered by size, then by reply. None is empty, and each has a size of at least 1 byte.
    pub actions: Vec<BlindAction>,
    pub uncertain_names: Vec<UncertainNames>,
    /// The share of commands that nothing of this explains.
    pub outliers: f64,
    /// The log-likelihood of the commands that were used, in nats.
    pub log_likelihood: f64,
    /// The probability that a reply is lost.
    pub lost: f64,
    pub commands: usize,
    /// How often each action probably occurs in each command, in the order of both; `None` where nothing explains it.
    pub drawn: Vec<Option<Vec<u32>>>,
    /// How many more commands would settle what is open; `None` if nothing is, or if that cannot be estimated.
    pub more_commands_needed: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Its size in bytes: of the plaintext, or on the wire if the cipher suite is not known.
    pub size: i64,
    /// The sizes of its single replies in bytes, in any order; `None` if they were not all listed.
    pub replies: Option<Vec<i64>>,
    /// Its label, if it has one: how often each named action occurs. As long as the list of names.
    pub counts: Option<Vec<u32>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BlindFitError {
    #[error("{commands} commands are too few to learn sizes without labels; {needed} are needed at least")]
    TooFewCommands { commands: usize, needed: usize },
    #[error(
        "the commands have only {sizes} different sizes, which do not show what an action adds; {needed} are needed"
    )]
    TooFewSizes { sizes: usize, needed: usize },
    #[error("no sizes of actions explain the sizes of the commands: {explained} of {commands} are explained")]
    NotAdditive { explained: usize, commands: usize },
    #[error("the commands do not determine the sizes: {}", open_overheads(.overheads, *.more_commands))]
    Undetermined {
        /// The sizes of a command without actions that are left, most likely first, in bytes.
        overheads: Vec<i64>,
        /// How many more commands would settle it, if that can be estimated.
        more_commands: Option<usize>,
    },
    #[error("a label has {counts} counts for {names} names of actions")]
    LabelLength { counts: usize, names: usize },
}

fn open_overheads(overheads: &[i64], more: Option<usize>) -> String {
    let mut overheads = overheads.to_vec();
    overheads.sort_unstable();
    let list: Vec<String> = overheads.iter().map(ToString::to_string).collect();
    let more = more.map_or_else(
        || "label one command of each action, or capture the replies".to_owned(),
        |more| format!("about {more} more commands would settle it, or labels of single commands"),
    );
    format!("the overhead |ac| stays open: it may be {} bytes; {more}", list.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_grow_where_their_protocols_say() {
        let websocket = |payload: i64| payload + if payload < 126 { 2 } else { 4 };
        assert_eq!([125, 126].map(|payload| LengthFields::WebSocket.grown(websocket(payload))), [0, 2]);
        let mqtt = |remaining: i64| remaining + if remaining < 128 { 2 } else { 3 };
        assert_eq!([127, 128].map(|remaining| LengthFields::Mqtt.grown(mqtt(remaining))), [0, 1]);
        let digits = |body: i64| i64::from(body.ilog10()) + 1;
        let http = |body: i64| 80 + digits(body) + body;
        let growth = [9, 10, 99, 100, 999, 1000].map(|body| LengthFields::Http { head: 82 }.grown(http(body)));
        assert_eq!(growth, [-1, 0, 0, 1, 1, 2]);
    }

    #[test]
    fn http2_digits_are_huffman_coded() {
        let http2 = |body: i64| 40 + content_length_bytes(body) + body;
        let growth = [55, 122, 133, 212].map(|body| LengthFields::Http2 { head: 42 }.grown(http2(body)));
        assert_eq!(growth, [0, 0, 1, 0]);
    }

    #[test]
    fn any_size_has_a_growth() {
        for size in [i64::MIN, -1, 0, i64::MAX] {
            for head in [i64::MIN, 0, i64::MAX] {
                let fields = [LengthFields::WebSocket, LengthFields::Mqtt, LengthFields::Http { head }];
                assert!(fields.into_iter().all(|fields| (-1..=8).contains(&fields.grown(size))));
                LengthFields::Http2 { head }.grown(size);
            }
        }
    }
}
