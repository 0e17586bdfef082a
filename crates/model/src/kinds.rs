//! Kinds of labelled commands whose parts the labels do not separate.
//!
//! If every labelled command has a single action, |ac| and |aᵢ| cannot be told apart, and need not be: the size of the
//! whole command is known, overhead folded in. A *kind* is a multiset of actions that was labelled, with the sizes and
//! replies it was seen with. A model answers exactly its kinds, and says nothing about sums that were never labelled.
//!
//! P(size | kind) and P(replies | kind) are kernel estimates from few commands: a two-sided geometric kernel around
//! each command seen, whose width all kinds share. It is chosen by leave-one-out cross-validation. Sizes that no kind
//! had belong to something else with a small share, so that a size far from all kinds has no answer.
//!
//! Everywhere else, *kind* without more is the kind of a frame; this one is a kind *of command*, and devices have
//! types.

use serde::{Deserialize, Serialize};

use crate::action::MAX_MESSAGE_SIZE;
use crate::statistics::two_sided;

/// The least and the greatest width of a kernel, in bytes.
const SPREADS: [f64; 2] = [0.02, 1e6];

/// The smallest likelihood of replies, so that one odd reply does not exclude a kind.
const MIN_LIKELIHOOD: f64 = 1e-6;

/// Where a greater share of commands belongs to no kind, a size that no kind has is nothing special.
const MAX_UNKNOWN: f64 = 0.2;

/// Commands of no kind have any size up to this multiple of the largest known one.
const OTHER_RANGE: f64 = 2.0;

/// The kinds of a model, in order of first occurrence among the labels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kinds {
    /// Mean absolute deviation of sizes from those seen, in bytes.
    pub spread: f64,
    /// The share of commands of no kind (Good and Turing: that of kinds labelled once).
    pub other: f64,
    /// How replies depend on the kind; `None` if they tell nothing.
    pub replies: Option<KindReplies>,
    #[serde(rename = "kind")]
    pub list: Vec<Kind>,
}

impl Kinds {
    pub const MAX_KINDS: usize = 4096;

    /// Weights of all explanations of a size, in no unit of its own: for each kind its share of commands times
    /// P(size | kind); and the weight of a command of no kind.
    pub fn weights(&self, size: i64) -> (Vec<f64>, f64) {
        let all = self.list.iter().fold(0_u64, |sum, kind| sum.saturating_add(kind.commands())) as f64;
        let kinds = self.list.len() as f64;
        // One command of each kind more than seen: rarely labelled kinds are not much rarer.
        let share = |kind: &Kind| (kind.commands() as f64 + 1.0) / (all + kinds);
        let weight = |kind: &Kind| (1.0 - self.other) * share(kind) * kind.size_density(size, self.spread);
        let largest = self.list.iter().map(|kind| kind.size_range()[1]).max().unwrap_or(0).max(1) as f64;
        (self.list.iter().map(weight).collect(), self.other / (OTHER_RANGE * largest))
    }

    /// How probable a size is that no kind has: 0 where the kinds are known, `None` where there are too many others.
    pub fn probability_of_none(&self) -> Option<f64> {
        (self.other <= MAX_UNKNOWN).then_some(0.0)
    }

    /// The kind with exactly these actions, each named once, by its index.
    pub fn position(&self, actions: &[(&str, u32)]) -> Option<usize> {
        let known = |kind: &Kind, name: &str| kind.actions.iter().find(|(own, _)| own == name).map_or(0, |(_, n)| *n);
        let occurring = actions.iter().filter(|(_, count)| *count > 0).count();
        let is_same = |kind: &Kind| {
            occurring == kind.actions.len() && actions.iter().all(|(name, count)| known(kind, name) == *count)
        };
        self.list.iter().position(is_same)
    }

    /// Pairs of kinds whose sizes overlap by at least half, so that sizes do not tell them apart: indices, the lower
    /// first.
    pub fn of_equal_size(&self) -> Vec<[usize; 2]> {
        let mut pairs = Vec::new();
        for (first, one) in self.list.iter().enumerate() {
            for (second, other) in self.list.iter().enumerate().skip(first + 1) {
                if self.size_overlap(one, other) >= 0.5 {
                    pairs.push([first, second]);
                }
            }
        }
        pairs
    }

    /// Σ min(P(size | one), P(size | other)) over the sizes that either was seen with: 1 for equal distributions.
    fn size_overlap(&self, one: &Kind, other: &Kind) -> f64 {
        let mut sizes: Vec<i64> = one.seen.iter().chain(&other.seen).map(|seen| seen.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let densities = |size: &i64| [one, other].map(|kind| kind.size_density(*size, self.spread));
        let (shared, most) = sizes.iter().map(densities).fold((0.0, 0.0), |(shared, most), [one, other]| {
            (shared + f64::min(one, other), most + f64::max(one, other))
        });
        if most > 0.0 { shared / most } else { 0.0 }
    }

    /// P(replies, their bytes | kind) by its index, and of a command of any kind; `None` if replies tell nothing about kinds.
    /// Bytes are in the basis of the model.
    pub fn reply_likelihoods(&self, replies: u32, bytes: i64) -> Option<(Vec<f64>, f64)> {
        let smoothing = self.replies.as_ref()?;
        let all = smoothing.pooled(self.list.iter().flat_map(|kind| kind.seen.iter().copied()), replies, bytes);
        let own = |kind: &Kind| smoothing.likelihood(kind.seen.iter().copied(), all, replies, bytes);
        Some((self.list.iter().map(own).collect(), all))
    }

    pub fn fault(&self) -> Option<&'static str> {
        let is_size = |size: i64| size.unsigned_abs() <= MAX_MESSAGE_SIZE.unsigned_abs();
        let is_valid =
            |seen: &SeenCommand| is_size(seen.size) && is_size(seen.reply_bytes) && (1..=1 << 40).contains(&seen.times);
        let is_list = |kind: &Kind| {
            (1..=Kind::MAX_SEEN).contains(&kind.seen.len())
                && kind.seen.iter().all(is_valid)
                && kind.actions.iter().all(|(name, count)| !name.is_empty() && (1..=1 << 20).contains(count))
        };
        if !(1..=Self::MAX_KINDS).contains(&self.list.len()) || !self.list.iter().all(is_list) {
            return Some("[kinds] needs 1 to 4096 [[kinds.kind]], each with `actions` and 1 to 4096 entries in `seen`");
        }
        let [least, most] = SPREADS;
        if !(least / 2.0..=most).contains(&self.spread) || !(1e-9..=0.99).contains(&self.other) {
            return Some("`spread` or `other` of [kinds] is out of bounds");
        }
        self.replies.as_ref().filter(|replies| !replies.is_valid()).map(|_| "[kinds.replies] is out of bounds")
    }
}

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
    /// The most different commands of one kind that a model keeps.
    pub const MAX_SEEN: usize = 4096;

    pub fn commands(&self) -> u64 {
        self.seen.iter().fold(0, |sum, seen| sum.saturating_add(seen.times))
    }

    /// The least and the greatest size seen, in bytes.
    pub fn size_range(&self) -> [i64; 2] {
        let sizes = || self.seen.iter().map(|seen| seen.size);
        [sizes().min().unwrap_or(0), sizes().max().unwrap_or(0)]
    }

    pub fn nearest_size(&self, size: i64) -> i64 {
        let nearest = self.seen.iter().min_by_key(|seen| (seen.size.abs_diff(size), seen.size));
        nearest.map_or(size, |seen| seen.size)
    }

    /// P(size | this kind) without what was never seen.
    fn size_density(&self, size: i64, spread: f64) -> f64 {
        let all = self.commands().max(1) as f64;
        let near = |seen: &SeenCommand| seen.times as f64 * two_sided(seen.size.abs_diff(size) as f64, spread);
        self.seen.iter().map(near).sum::<f64>() / all
    }

    /// Its actions in words, such as `on`, or `2 on + red`; `no action` without any.
    pub fn in_words(&self) -> String {
        actions_in_words(self.actions.iter().map(|(name, count)| (name.as_str(), *count)))
    }
}

pub(crate) fn actions_in_words<'a>(actions: impl Iterator<Item = (&'a str, u32)>) -> String {
    let one = |(name, count): (&str, u32)| if count == 1 { name.to_owned() } else { format!("{count} {name}") };
    let words: Vec<String> = actions.map(one).collect();
    if words.is_empty() { "no action".to_owned() } else { words.join(" + ") }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindReplies {
    /// Mean absolute deviation of the bytes of replies from those seen, in bytes.
    pub spread: f64,
    /// How many labelled commands weigh as much as what all kinds have.
    pub strength: f64,
}

impl KindReplies {
    fn is_valid(&self) -> bool {
        let [least, most] = SPREADS;
        (least / 2.0..=most).contains(&self.spread) && (1e-3..=1e6).contains(&self.strength)
    }

    /// P(replies, bytes | a kind seen with `own`), smoothed towards what `all` commands have.
    pub fn likelihood(&self, own: impl Iterator<Item = SeenCommand>, all: f64, replies: u32, bytes: i64) -> f64 {
        let (weight, commands) = self.near(own, replies, bytes);
        ((weight + self.strength * all) / (commands + self.strength)).max(MIN_LIKELIHOOD * all.max(f64::MIN_POSITIVE))
    }

    /// P(replies, bytes) over these commands, smoothed towards any number and bytes.
    pub fn pooled(&self, seen: impl Iterator<Item = SeenCommand>, replies: u32, bytes: i64) -> f64 {
        let (weight, commands) = self.near(seen, replies, bytes);
        // One further command, whose replies may be any: a geometric number of them, with bytes of any size.
        let anything = 0.5_f64.powf(f64::from(replies.min(64)) + 1.0) * if replies == 0 { 1.0 } else { 1e-4 };
        (weight + anything) / (commands + 1.0)
    }

    fn near(&self, seen: impl Iterator<Item = SeenCommand>, replies: u32, bytes: i64) -> (f64, f64) {
        let (mut weight, mut commands) = (0.0, 0.0);
        for one in seen {
            let times = one.times as f64;
            commands += times;
            if one.replies == replies {
                let of_bytes = match replies {
                    0 => 1.0,
                    _ => two_sided(one.reply_bytes.abs_diff(bytes) as f64, self.spread),
                };
                weight += times * of_bytes;
            }
        }
        (weight, commands)
    }
}
