//! How the single replies to a command depend on its actions: their sizes, one by one.
//!
//! A gateway answers an action with a report of what it did, whose size often tells which action it was. The model has
//! *reply classes*: replies that are alike, each with a distribution of sizes and a share that is missing. An action
//! sends some number of replies of each class, and so does every command as such. Two replies may share a record, and
//! foreign records may be among the replies.
//!
//! P(replies | A) depends on A through the number of replies of each class alone ([`SingleReplies::class_counts`]), so
//! it is computed once for many candidates ([`SeenReplies`]).

mod interpretation;
mod seen_replies;
mod ways;

use serde::{Deserialize, Serialize};

use crate::action::MAX_MESSAGE_SIZE;
use crate::statistics::{broad_number, recurring, two_sided};

pub use self::interpretation::Interpretation;
pub use self::seen_replies::{Component, ReplyReader, SeenReplies};

/// Foreign records of sizes never seen have any size up to this many bytes.
const FOREIGN_RANGE: f64 = 2000.0;

/// Sizes of a class that were not seen are at most this many times as far away as those seen are apart.
const FAR: f64 = 2.0;

/// The least share: nothing is impossible.
const MIN_SHARE: f64 = 1e-6;

/// How probable it is that a reply is in other words, and of a size that no class has.
const REWORDED: f64 = 1e-3;

/// The greatest share of replies that are in other words beside records that no class explains: as many as not.
const MOST_REWORDED: f64 = 0.5;

/// The most replies whose number has a probability, a bound of the time: it is squared.
const MAX_COUNTED: u32 = 256;

/// P(single replies | actions).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleReplies {
    /// The probability that a reply is in the same record as the reply before it.
    pub merged: f64,
    /// The bytes that it then lacks, since it shares them with the reply before it, such as a header of HTTP.
    pub shared: i64,
    /// The mean number of foreign records among the replies to a command.
    pub foreign: f64,
    /// Sizes of foreign records in bytes, each with how often it was seen.
    pub foreign_sizes: Vec<(i64, u64)>,
    /// How many replies of each class any command has, whatever its actions.
    pub per_command: Vec<u32>,
    /// For each action in the order of the model, how many replies of each class it sends.
    pub per_action: Vec<Vec<u32>>,
    #[serde(rename = "class")]
    pub classes: Vec<ReplyClass>,
}

/// Replies that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyClass {
    /// The share of these replies that are missing: lost, or not always sent.
    pub missing: f64,
    /// The share of sizes that were not seen yet, near those that were.
    pub unseen: f64,
    /// Sizes in bytes, each with how often it was seen, in ascending order.
    pub sizes: Vec<(i64, u64)>,
}

impl ReplyClass {
    /// The probability that a reply that is sent has a size from `least` to `most` bytes. What the class hardly ever has it
    /// never has: so most sizes are of one class, and a record of a size that no class has is a foreign one.
    fn share(&self, size: [i64; 2]) -> f64 {
        Some(self.share_of(size)).filter(|share| *share > MIN_SHARE).unwrap_or(0.0)
    }

    fn share_of(&self, [least, most]: [i64; 2]) -> f64 {
        let all = times_within(&self.sizes, [i64::MIN, i64::MAX]);
        let of_seen = times_within(&self.sizes, [least, most]) as f64 / all.max(1) as f64;
        if self.unseen <= 0.0 {
            return of_seen;
        }
        // As wide as the sizes seen are apart; a reply with one more digit is one byte longer.
        let spread = self.spread().max(1.0);
        let near = |(size, times): &(i64, u64)| {
            let distance = if *size < least { least.saturating_sub(*size) } else { size.saturating_sub(most).max(0) };
            let is_near = distance as f64 <= FAR * spread;
            *times as f64 / all.max(1) as f64 * if is_near { two_sided(distance as f64, spread) } else { 0.0 }
        };
        let of_unseen: f64 = self.sizes.iter().map(near).sum();
        (1.0 - self.unseen) * of_seen + self.unseen * of_unseen
    }

    /// The mean distance of the sizes from their median, in bytes.
    fn spread(&self) -> f64 {
        let all = times_within(&self.sizes, [i64::MIN, i64::MAX]);
        let mut before = 0_u64;
        let median = self.sizes.iter().find(|(_, times)| {
            before = before.saturating_add(*times);
            before.saturating_mul(2) >= all
        });
        let median = median.map_or(0, |(size, _)| *size);
        let distances = self.sizes.iter().map(|(size, times)| size.abs_diff(median) as f64 * *times as f64);
        distances.sum::<f64>() / all.max(1) as f64
    }
}

/// How often a size from `least` to `most` bytes was seen.
fn times_within(sizes: &[(i64, u64)], [least, most]: [i64; 2]) -> u64 {
    let within = sizes.iter().filter(|(size, _)| (least..=most).contains(size));
    within.fold(0, |sum, (_, times)| sum.saturating_add(*times))
}

impl SingleReplies {
    pub const MAX_CLASSES: usize = 64;

    /// The most sizes of a class, and of foreign records; the most frequent ones are kept.
    pub const MAX_SIZES: usize = 256;

    /// The most replies of one class that an action sends.
    pub const MAX_PER_ACTION: u32 = 16;

    /// Replies that say nothing: no class, and none sent.
    pub fn none() -> Self {
        let (foreign_sizes, per_command, per_action, classes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { merged: 0.0, shared: 0, foreign: 0.0, foreign_sizes, per_command, per_action, classes }
    }

    /// How many replies of each class a command should have, given its actions by their index in the order of the model,
    /// each with how often it occurs.
    pub fn class_counts(&self, counts: impl IntoIterator<Item = (usize, u32)>) -> Vec<u32> {
        let mut classes = self.per_command.clone();
        for (action, count) in counts {
            let Some(of_action) = self.per_action.get(action) else { continue };
            for (class, sent) in classes.iter_mut().zip(of_action) {
                *class = class.saturating_add(sent.saturating_mul(count));
            }
        }
        classes
    }

    /// The class that most probably has a reply of a size from `least` to `most` bytes; `None` where none has one.
    pub fn most_probable_class(&self, [least, most]: [i64; 2]) -> Option<usize> {
        let shares = self.classes.iter().map(|class| class.share([least, most])).enumerate();
        let most = shares.filter(|(_, share)| *share > 0.0).max_by(|a, b| a.1.total_cmp(&b.1));
        most.map(|(class, _)| class)
    }

    /// Whether the same actions send replies of two classes, and as many.
    pub fn are_sent_together(&self, [one, other]: [usize; 2]) -> bool {
        let mut sent = self.per_action.iter().chain([&self.per_command]);
        sent.all(|sent| sent.get(one) == sent.get(other))
    }

    /// Whether some actions send more replies than others, so that these are not as many as the actions say.
    pub fn differ_in_number(&self) -> bool {
        let mut numbers = self.per_action.iter().map(|sent| sent.iter().map(|sent| u64::from(*sent)).sum::<u64>());
        numbers.next().is_some_and(|first| numbers.any(|other| other != first))
    }

    /// The probability of so many records where so many replies of each class should come: some are missing or in the record
    /// of another one, and some records are foreign. `None` of more replies than are counted.
    pub fn probability_of_number(&self, records: u32, class_counts: &[u32]) -> Option<f64> {
        let all = class_counts.iter().fold(0_u32, |sum, more| sum.saturating_add(*more));
        if all.max(records) > MAX_COUNTED {
            return None;
        }
        // By how many records there are so far; of more than were seen nothing is asked.
        let mut own = vec![0.0; records as usize + 1];
        own[0] = 1.0;
        let replies = class_counts.iter().zip(0..).map(|(count, class)| (self.missing(class, 0), *count as usize));
        let replies = replies.flat_map(|(missing, count)| std::iter::repeat_n(missing, count));
        for (before, missing) in replies.enumerate() {
            let more = (1.0 - missing) * (1.0 - self.merged);
            for number in (1..own.len().min(before + 2)).rev() {
                // The first one has no record before it to be in.
                let from_less = if number == 1 { 1.0 - missing } else { more };
                own[number] = own[number - 1] * from_less + own[number] * (1.0 - more);
            }
            own[0] *= missing;
        }
        let mut foreign = (-self.foreign).exp();
        let mut sum = 0.0;
        for (number, of_own) in (1_u32..).zip(own.iter().rev()) {
            sum += foreign * of_own;
            foreign *= self.foreign / f64::from(number);
        }
        Some(sum.max(f64::MIN_POSITIVE))
    }

    /// The probability that a reply of a class is missing, or in other words, beside so many records that no reply has the size
    /// of: each of them is a foreign one or such a reply.
    fn missing(&self, class: usize, unread: usize) -> f64 {
        let missing = self.classes.get(class).map_or(0.0, |class| class.missing).max(MIN_SHARE);
        let reworded = REWORDED * unread as f64;
        let reworded = (reworded / (reworded + self.foreign.max(MIN_SHARE))).min(MOST_REWORDED);
        missing + (1.0 - missing) * reworded
    }

    /// The probability that a foreign record has a size from `least` to `most` bytes.
    fn foreign_share(&self, [least, most]: [i64; 2]) -> f64 {
        let times = |sizes: &[(i64, u64)]| times_within(sizes, [i64::MIN, i64::MAX]) as f64;
        let within = |sizes: &[(i64, u64)]| times_within(sizes, [least, most]) as f64;
        let width = most.saturating_sub(least).saturating_add(1).max(1) as f64;
        let replies_within: f64 = self.classes.iter().map(|class| within(&class.sizes)).sum();
        let replies: f64 = self.classes.iter().map(|class| times(&class.sizes)).sum();
        // One pseudo-observation: of any size, or, as probably, a report that looks like a reply.
        let unseen = f64::midpoint((width / FOREIGN_RANGE).min(1.0), replies_within / replies.max(1.0));
        (within(&self.foreign_sizes) + unseen) / (times(&self.foreign_sizes) + 1.0)
    }

    /// The logarithm of the probability of replies, each with the least and the most bytes of its size in ascending order, that
    /// are none of the model's: any number of them, 1/2, 1/6, 1/12 …, of any sizes, which come again.
    pub fn ln_unlike(records: &[[i64; 2]]) -> f64 {
        let (mut ln_sizes, mut before) = (0.0, 0.0);
        for equal in records.chunk_by(|a, b| a == b) {
            let [least, most] = equal[0];
            let width = most.saturating_sub(least).saturating_add(1).max(1) as f64;
            let new = (width / FOREIGN_RANGE).min(1.0);
            for times in 0..equal.len() {
                ln_sizes += recurring(times as f64, before, new).ln();
                before += 1.0;
            }
        }
        ln_sizes + broad_number(records.len() as f64).ln()
    }

    /// What is wrong with the values for `actions` actions, if anything is.
    pub fn fault(&self, actions: usize) -> Option<&'static str> {
        let classes = self.classes.len();
        if classes == 0 || classes > Self::MAX_CLASSES {
            return Some("[single_replies] must have 1 to 64 classes");
        }
        if self.per_action.len() != actions || self.per_action.iter().any(|sent| sent.len() != classes) {
            return Some("`per_action` of [single_replies] must have a number for each [[action]] and class");
        }
        if self.per_command.len() != classes {
            return Some("`per_command` of [single_replies] must have a number for each class");
        }
        let numbers = || self.per_action.iter().flatten().chain(&self.per_command);
        if numbers().any(|sent| *sent > Self::MAX_PER_ACTION) {
            return Some("an action of [single_replies] has at most 16 replies of a class");
        }
        let is_share = |share: &f64| (0.0..=0.999).contains(share);
        let are_sizes = |sizes: &[(i64, u64)]| {
            sizes.len() <= Self::MAX_SIZES
                && sizes
                    .iter()
                    .all(|(size, times)| (0..=MAX_MESSAGE_SIZE).contains(size) && (1..=1 << 40).contains(times))
        };
        let is_class = |class: &ReplyClass| {
            is_share(&class.missing) && is_share(&class.unseen) && !class.sizes.is_empty() && are_sizes(&class.sizes)
        };
        let is_valid = is_share(&self.merged)
            && (0..=MAX_MESSAGE_SIZE).contains(&self.shared)
            && (0.0..=1e3).contains(&self.foreign)
            && are_sizes(&self.foreign_sizes)
            && self.classes.iter().all(is_class);
        (!is_valid).then_some("[single_replies] has values out of bounds")
    }
}
