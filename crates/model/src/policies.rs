//! Padding policies for commands: what each does to sizes (`padding_policy`), their names (`multiple:16`, `padme`) and
//! files, the secret of keyed padding, and how the commands of a gateway are padded. What policies cost and hide is in
//! `sizeleak-audit`.
//!
//! A policy is exchanged among the programs of the project as a JSON file:
//!
//! ```json
//! { "version": 1, "policy": { "kind": "table", "buckets": [104, 131, 160] } }
//! ```
//!
//! The kinds of policy with their keys are those of [`PaddingPolicy`]; `note` may say what the policy was made for.

#![warn(clippy::indexing_slicing)]

mod padding_policy;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use padding_policy::{
    Draw, MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, PaddedSize, PaddingPolicy, PolicyError, RandomRow,
    TLS_RECORD_BYTES,
};

impl FromStr for PaddingPolicy {
    type Err = PolicyError;

    /// Reads a policy without a table.
    fn from_str(name: &str) -> Result<Self, PolicyError> {
        let unknown = || PolicyError::Name(name.to_owned());
        let (kind, bytes) = match name.split_once(':') {
            Some((kind, bytes)) => (kind, Some(bytes.parse().map_err(|_| unknown())?)),
            None => (name, None),
        };
        let policy = match (kind, bytes) {
            ("none", None) => Self::None,
            ("multiple", Some(bytes)) => Self::Multiple { bytes },
            ("powers-of-two", None) => Self::PowersOfTwo,
            ("padme", None) => Self::Padme,
            ("tls13", Some(bytes)) => Self::Tls13Multiple { bytes },
            ("random", Some(most)) => Self::Random { most, draw: Draw::Independent },
            ("keyed-random", Some(most)) => Self::Random { most, draw: Draw::Keyed },
            ("constant", Some(bytes)) => Self::Constant { bytes },
            _ => return Err(unknown()),
        };
        policy.check()?;
        Ok(policy)
    }
}

impl fmt::Display for PaddingPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Multiple { bytes } => write!(formatter, "multiple:{bytes}"),
            Self::PowersOfTwo => formatter.write_str("powers-of-two"),
            Self::Padme => formatter.write_str("padme"),
            Self::Tls13Multiple { bytes } => write!(formatter, "tls13:{bytes}"),
            Self::Random { most, draw: Draw::Independent } => write!(formatter, "random:{most}"),
            Self::Random { most, draw: Draw::Keyed } => write!(formatter, "keyed-random:{most}"),
            Self::Constant { bytes } => write!(formatter, "constant:{bytes}"),
            Self::Table { buckets } if buckets.len() == 1 => write!(formatter, "table of one bucket"),
            Self::Table { buckets } => write!(formatter, "table of {} buckets", buckets.len()),
            Self::Map { sizes } => write!(formatter, "map of {} sizes", sizes.len()),
            Self::RandomTable { rows, .. } => write!(formatter, "random table of {} sizes", rows.len()),
        }
    }
}

impl PaddingPolicy {
    /// What stands before it in a sentence: one that has no name of its own has an article.
    pub fn article(&self) -> &'static str {
        if matches!(self, Self::Table { .. } | Self::Map { .. } | Self::RandomTable { .. }) { "a " } else { "" }
    }
}

pub const POLICY_VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFile {
    pub version: u32,
    /// What the policy was made for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub policy: PaddingPolicy,
}

/// The version alone, which is read first: what follows it may be unknown.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl PolicyFile {
    pub fn new(policy: PaddingPolicy, note: Option<String>) -> Self {
        Self { version: POLICY_VERSION, note, policy }
    }

    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        let syntax = |error: serde_json::Error| PolicyError::Syntax(error.to_string());
        let Version { version } = serde_json::from_str(text).map_err(syntax)?;
        if version != POLICY_VERSION {
            return Err(PolicyError::Version { found: version, known: POLICY_VERSION });
        }
        let file: Self = serde_json::from_str(text).map_err(syntax)?;
        file.policy.check()?;
        Ok(file)
    }

    /// The policy as one JSON object with a line end.
    ///
    /// # Errors
    /// [`PolicyError::Syntax`] if a probability is not a number.
    pub fn to_json(&self) -> Result<String, PolicyError> {
        self.policy.check()?;
        let json = serde_json::to_string(self).map_err(|error| PolicyError::Syntax(error.to_string()))?;
        Ok(json + "\n")
    }
}

/// A secret of one gateway, from which random padding is drawn.
///
/// Padding drawn anew each time averages out over repetitions of a command; a draw that depends on the command does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PaddingKey([u8; 32]);

impl PaddingKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The draw of a command for [`PaddingPolicy::drawn`]: the first eight bytes, little-endian, of the keyed
    /// BLAKE3 hash of `command`.
    ///
    /// `command` is what makes two commands the same to an observer's interest, in one order: devices and actions,
    /// without message ids and timestamps. With these, every repetition would be drawn anew.
    pub fn draw(&self, command: &[u8]) -> u64 {
        let hash = blake3::keyed_hash(&self.0, command);
        hash.as_bytes().iter().take(8).rev().fold(0, |draw, byte| (draw << 8) | u64::from(*byte))
    }
}

impl fmt::Debug for PaddingKey {
    /// Does not show the secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PaddingKey(…)")
    }
}

/// How the commands of a gateway are padded, so that a size stands for several sizes before the padding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LearnedPadding {
    /// All sizes leave the same rest modulo this number of bytes, as was found in the captures.
    Modulo(u32),
    Policy(PaddingPolicy),
}

impl LearnedPadding {
    /// The sizes that a message may have had before it was padded to one from `least` to `most` bytes, as a range; at
    /// most 65536 of them. A size that the policy does not pad to is taken not to be padded.
    pub fn sizes_before(&self, [least, most]: [i64; 2]) -> [i64; 2] {
        match self {
            Self::Modulo(bytes) => [least.saturating_sub(i64::from(*bytes) - 1).max(0), most],
            Self::Policy(policy) => {
                let before = |size: i64| policy.sizes_before(u64::try_from(size).ok()?);
                // A block cipher leaves few sizes.
                let all = (least..=most.min(least.saturating_add(MAX_SIZES))).filter_map(before);
                let range = all.reduce(|[first, last], [least, most]| [first.min(least), last.max(most)]);
                let range = range.map(|range| range.map(|size| i64::try_from(size).unwrap_or(i64::MAX)));
                range.map_or([least, most], |[first, last]| [first, last.min(first.saturating_add(MAX_BEFORE))])
            }
        }
    }

    /// Whether messages are padded to any size from `least` to `most` bytes; true where only a range is known.
    pub fn pads_to(&self, [least, most]: [i64; 2]) -> bool {
        let Self::Policy(policy) = self else { return true };
        let mut sizes = (least.max(0)..=most.min(least.saturating_add(MAX_SIZES))).map(|size| size as u64);
        sizes.any(|size| policy.sizes_before(size).is_some())
    }

    /// The probability that a message of `size` bytes is padded to one from `least` to `most` bytes; 1 where only a
    /// range is known.
    pub fn probability(&self, size: i64, [least, most]: [i64; 2]) -> f64 {
        let (Self::Policy(policy), Ok(size)) = (self, u64::try_from(size)) else { return 1.0 };
        let padded = (least.max(0)..=most.min(least.saturating_add(MAX_SIZES))).map(|size| size as u64);
        let probability: f64 = padded.map(|padded| policy.probability(size, padded)).sum();
        // Sizes that the policy does not pad to are taken not to be padded.
        if probability > 0.0 || self.pads_to([least, most]) { probability } else { 1.0 }
    }
}

/// The most sizes before padding, less one: those of a policy that pads to 64 KiB.
const MAX_BEFORE: i64 = 65_535;

/// The most sizes that a block cipher leaves, less one, a bound of the time: ciphers leave sixteen.
const MAX_SIZES: i64 = 4096;
