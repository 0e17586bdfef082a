//! An action of a device, with the size or the sizes that one occurrence adds to a command; and a command whose actions
//! are known from a label: the data that everything is learned from.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The largest size of a message in bytes that models and labels accept.
pub const MAX_MESSAGE_SIZE: i64 = 1 << 32;

/// The largest size of an action in bytes that a model file may have: the sums of 64 actions, the most of a command that are
/// counted, are then at most as many as fill the 256 MiB that tables of them may take.
pub const MAX_ACTION_SIZE: i64 = 1 << 19;

const MAX_SIZES: usize = 256;

/// The least and the greatest size of an action are at most this many bytes apart.
const MAX_SPREAD: i64 = 1024;

/// Shares in a file are rounded: their sum may differ from 1 by this.
const ROUNDING: f64 = 0.001;

/// The smallest value that six decimals can show.
const MIN_SHARE: f64 = 1e-6;

fn action_size<'de, D: Deserializer<'de>>(value: D) -> Result<i64, D::Error> {
    let size = i64::deserialize(value)?;
    if size <= MAX_ACTION_SIZE {
        return Ok(size);
    }
    Err(D::Error::custom(format!("an action of {size} bytes: the limit is {MAX_ACTION_SIZE}")))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name, as in labels and inventory.
    pub name: String,
    /// |aᵢ|: bytes that one occurrence adds to a command; the most frequent one if they vary.
    #[serde(deserialize_with = "action_size")]
    pub size: i64,
    /// Sizes in bytes with their shares, if sizes vary: ascending, two or more. Empty for a single size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sizes: Vec<(i64, f64)>,
}

impl Action {
    /// An action whose occurrences all have this size in bytes.
    pub fn new(name: impl Into<String>, size: i64) -> Self {
        Self { name: name.into(), size, sizes: Vec::new() }
    }

    /// An action with these sizes in bytes and how often each occurs. Shares are rounded to six decimals, at least the
    /// smallest one that these show. `None` unless some size occurs, or if there are more than 256, or if they are more
    /// than 1024 bytes apart.
    pub fn of_sizes(name: impl Into<String>, times: &[(i64, f64)]) -> Option<Self> {
        let mut times: Vec<(i64, f64)> = times.iter().copied().filter(|(_, times)| *times > 0.0).collect();
        times.sort_unstable_by_key(|(size, _)| *size);
        let all: f64 = times.iter().map(|(_, times)| times).sum();
        let (size, _) = times.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
        if times.len() == 1 {
            return Some(Self::new(name, size));
        }
        let rounded = |share: f64| ((share * 1e6).round() / 1e6).max(MIN_SHARE);
        let sizes = times.into_iter().map(|(size, times)| (size, rounded(times / all))).collect();
        let action = Self { name: name.into(), size, sizes };
        action.fault().is_none().then_some(action)
    }

    pub fn varies(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// The sizes of one occurrence in bytes, ascending, with their probabilities, which sum to 1.
    pub fn sizes(&self) -> impl Iterator<Item = (i64, f64)> + '_ {
        let sum: f64 = self.sizes.iter().map(|(_, share)| share).sum();
        let single = (!self.varies()).then_some((self.size, 1.0));
        single.into_iter().chain(self.sizes.iter().map(move |(size, share)| (*size, share / sum)))
    }

    /// The least and the greatest size of one occurrence in bytes.
    pub fn size_range(&self) -> [i64; 2] {
        match (self.sizes.first(), self.sizes.last()) {
            (Some((least, _)), Some((most, _))) => [*least, *most],
            _ => [self.size; 2],
        }
    }

    pub(crate) fn fault(&self) -> Option<String> {
        let fault = |what: &str| Some(format!("`sizes` of the action `{}` {what}", self.name));
        let [least, most] = self.size_range();
        if self.size <= 0 || least <= 0 {
            return Some(format!("the action `{}` must be at least 1 byte long", self.name));
        }
        if !self.varies() {
            return None;
        }
        if !(2..=MAX_SIZES).contains(&self.sizes.len()) || most.saturating_sub(least) > MAX_SPREAD {
            return fault(&format!("must be 2 to {MAX_SIZES} sizes, at most {MAX_SPREAD} bytes apart"));
        }
        if !self.sizes.is_sorted_by(|(one, _), (next, _)| one < next) {
            return fault("must be in ascending order");
        }
        let sum: f64 = self.sizes.iter().map(|(_, share)| share).sum();
        let are_shares = self.sizes.iter().all(|(_, share)| (MIN_SHARE / 2.0..=1.0).contains(share));
        if !are_shares || (sum - 1.0).abs() > ROUNDING {
            return fault("must have shares above 0 that sum to 1");
        }
        let most_frequent = self.sizes.iter().map(|(_, share)| *share).fold(0.0, f64::max);
        let is_most_frequent = |(size, share): &(i64, f64)| *size == self.size && *share >= most_frequent;
        if !self.sizes.iter().any(is_most_frequent) {
            return fault("must have `size` as the most frequent one");
        }
        None
    }
}

pub const MAX_COUNT_OF_ACTION: u32 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledCommand {
    /// Smallest and largest possible |s|, in bytes, in the basis of the model. They differ if a block cipher pads.
    pub sizes: [i64; 2],
    /// How often each action occurs, in the order of the actions' names.
    pub counts: Vec<u32>,
    /// Number of records the gateway sent in reply.
    pub replies: u32,
    /// Bytes of these records, in the same basis.
    pub reply_bytes: i64,
    /// The size of each of them in bytes, in the same basis; `None` if they are not known one by one.
    pub single_replies: Option<Vec<i64>>,
    /// Whether the replies are to this command alone; not where another command overlapped it.
    pub has_own_replies: bool,
}

impl LabelledCommand {
    /// The middle of the size range, rounded down.
    pub fn middle(&self) -> i64 {
        let [least, most] = self.sizes;
        least + (most - least) / 2
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Whether sizes and counts are plausible and there is one count for each of `actions` actions.
    pub fn is_within_bounds(&self, actions: usize) -> bool {
        let [least, most] = self.sizes;
        (0..=MAX_MESSAGE_SIZE).contains(&least)
            && (least..=MAX_MESSAGE_SIZE).contains(&most)
            && self.counts.len() == actions
            && self.counts.iter().all(|count| *count <= MAX_COUNT_OF_ACTION)
    }
}
