//! One kind: the actions of labelled commands, and the sizes and replies that were seen with them.

use serde::{Deserialize, Serialize};

use crate::two_sided::two_sided;

/// The least and the greatest width of a kernel, in bytes.
pub(super) const SPREADS: [f64; 2] = [0.02, 1e6];

/// A multiset of actions that was labelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// The names of its actions, each with its count; none for a message without actions.
    pub actions: Vec<(String, u32)>,
    /// The commands seen, at least one, in ascending order.
    pub seen: Vec<SeenCommand>,
}

/// Equal labelled commands of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(i64, u32, i64, u64)", into = "(i64, u32, i64, u64)")]
pub struct SeenCommand {
    /// |s| in bytes, in the basis of the model; of a range, its upper end.
    pub size: i64,
    /// The number of records the gateway sent in reply.
    pub replies: u32,
    /// Bytes of these records, in the same basis.
    pub reply_bytes: i64,
    /// How many commands were labelled, at least 1.
    pub times: u64,
}

impl From<(i64, u32, i64, u64)> for SeenCommand {
    fn from((size, replies, reply_bytes, times): (i64, u32, i64, u64)) -> Self {
        Self { size, replies, reply_bytes, times }
    }
}

impl From<SeenCommand> for (i64, u32, i64, u64) {
    fn from(seen: SeenCommand) -> Self {
        (seen.size, seen.replies, seen.reply_bytes, seen.times)
    }
}

impl Kind {
    /// How many commands were labelled.
    pub fn commands(&self) -> u64 {
        self.seen.iter().fold(0, |sum, seen| sum.saturating_add(seen.times))
    }

    /// The least and the greatest size seen, in bytes.
    pub fn size_range(&self) -> [i64; 2] {
        let sizes = || self.seen.iter().map(|seen| seen.size);
        [sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)]
    }

    /// The size seen that is nearest to `size`, in bytes.
    pub fn nearest_size(&self, size: i64) -> i64 {
        let nearest = self.seen.iter().min_by_key(|seen| (seen.size.abs_diff(size), seen.size));
        nearest.map_or(size, |seen| seen.size)
    }

    /// P(size | this kind) without what was never seen.
    pub(super) fn size_density(&self, size: i64, spread: f64) -> f64 {
        let all = self.commands().max(1) as f64;
        let near = |seen: &SeenCommand| seen.times as f64 * two_sided(seen.size.abs_diff(size) as f64, spread);
        self.seen.iter().map(near).sum::<f64>() / all
    }

    /// Its actions in words, such as `on`, or `2 on + red`; `no action` without any.
    pub fn in_words(&self) -> String {
        let one = |(name, count): &(String, u32)| if *count == 1 { name.clone() } else { format!("{count} {name}") };
        let words: Vec<String> = self.actions.iter().map(one).collect();
        if words.is_empty() { "no action".to_owned() } else { words.join(" + ") }
    }
}
