//! Records that hold several replies: which sizes they have, and what they are made of.

use std::collections::{BTreeMap, BTreeSet};

use crate::fit::evidence::{STRONG, most_frequent, rounded};

/// A size may be that of several replies in one record if no action sends it in more than three of ten cases, and if
/// each part was seen four times as often as the whole: two in a record are rarer than each of them alone.
const MAX_OF_MERGED: f64 = 0.3;
const PARTS_MORE_FREQUENT: u64 = 4;

/// The bytes that replies in one record share are learned from rarer sizes, which no action sends in more than one of
/// ten cases: a frequent size that happens to be a sum would decide alone.
const MAX_OF_RARE: f64 = 0.1;

/// The probability of an odd size that is not that of two replies: one of about a thousand sizes that a reply may have.
const NO_PAIR: f64 = 1e-3;

/// The most sizes that may be parts of others, a bound of the time: all pairs and triples of them are tried.
const MAX_PARTS: usize = 24;

/// The share of replies in the record of the one before, before any is seen, and the replies that it counts as.
const USUALLY_MERGED: f64 = 0.02;
const MERGED_WEIGHT: f64 = 10.0;

/// Below this share of merged replies none is looked for, where none was seen: ways to read replies multiply with it.
const NEVER_MERGED: f64 = 1e-4;

/// Equal commands, with what replied.
pub(super) struct Row {
    /// How often each action occurs; at the end 1, for the command as such.
    pub(super) counts: Vec<u32>,
    /// The replies' sizes, with how many there are.
    pub(super) replies: BTreeMap<i64, u32>,
    pub(super) times: u64,
}

pub(super) fn times(rows: &[Row]) -> BTreeMap<i64, u64> {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for row in rows {
        for (size, number) in &row.replies {
            *times.entry(*size).or_default() += row.times * u64::from(*number);
        }
    }
    times
}

/// Sizes that no action sends often: those of several replies in one record, or of foreign ones.
pub(super) struct OddSizes {
    /// Each with how often it was seen.
    odd: BTreeMap<i64, u64>,
    /// Those of them that are rare.
    rare: BTreeMap<i64, u64>,
    /// The most frequent of all sizes.
    known: Vec<(i64, u64)>,
}

impl OddSizes {
    /// From how often each size was seen, and how often the action that sends most of it does so.
    pub(super) fn new(times: &BTreeMap<i64, u64>, greatest_mean: impl Fn(i64) -> f64) -> Self {
        let rarer_than = |mean: f64| -> BTreeMap<i64, u64> {
            let rare = times.iter().filter(|(size, _)| greatest_mean(**size) < mean);
            rare.map(|(size, seen)| (*size, *seen)).collect()
        };
        let seen = times.iter().filter(|(size, _)| **size > 0).map(|(size, seen)| (*size, *seen));
        let mut known: Vec<(i64, u64)> = seen.collect();
        most_frequent(&mut known, MAX_PARTS);
        Self { odd: rarer_than(MAX_OF_MERGED), rare: rarer_than(MAX_OF_RARE), known }
    }

    /// How many bytes two replies in one record share, so that most odd sizes are of two; the fewest among equals.
    pub(super) fn shared_bytes(&self) -> i64 {
        let Self { rare: odd, known, .. } = self;
        let least = odd.values().min().copied().unwrap_or(0) * PARTS_MORE_FREQUENT;
        let parts = || known.iter().filter(|(size, seen)| !odd.contains_key(size) && *seen >= least);
        // Two replies are longer than any single one, or nothing would tell them from a rare one.
        let longest = parts().map(|(size, _)| *size).max().unwrap_or(0);
        let odd: BTreeMap<i64, u64> =
            odd.iter().filter(|(size, _)| **size > longest).map(|(size, seen)| (*size, *seen)).collect();
        let explains = |shared: i64| -> f64 {
            let longer = || parts().filter(|(size, _)| *size > shared);
            let all = longer().map(|(_, seen)| *seen as f64).sum::<f64>().max(1.0);
            let mut pairs: BTreeMap<i64, f64> = BTreeMap::new();
            for (first, seen) in longer() {
                for (second, also) in longer() {
                    *pairs.entry(first + second - shared).or_default() += *seen as f64 * *also as f64 / all / all;
                }
            }
            let probability = |size: &i64| NO_PAIR + pairs.get(size).copied().unwrap_or(0.0);
            odd.iter().map(|(size, seen)| probability(size).ln() * *seen as f64).sum()
        };
        let sums = || parts().flat_map(|(first, _)| parts().map(move |(second, _)| first + second));
        let tried: BTreeSet<i64> = sums().flat_map(|sum| odd.keys().map(move |size| sum - size)).collect();
        let tried: Vec<i64> = tried.into_iter().filter(|shared| (0..longest).contains(shared)).collect();
        // The more are tried, the better the best one is by chance.
        let least_gain = STRONG + (tried.len().max(1) as f64).ln();
        let (none, mut best) = (explains(0), (explains(0), 0));
        for shared in tried {
            let likelihood = explains(shared);
            if likelihood > best.0.max(none + least_gain) {
                best = (likelihood, shared);
            }
        }
        best.1
    }

    /// The sizes of records that hold several replies, which share `shared` bytes, with the sizes of those replies.
    pub(super) fn parts(&self, shared: i64) -> BTreeMap<i64, Vec<i64>> {
        let parts = |(size, seen): (&i64, &u64)| {
            Some((*size, parts_of(*size, seen * PARTS_MORE_FREQUENT, &self.known, shared)?))
        };
        self.odd.iter().filter_map(parts).collect()
    }
}

/// The two or three sizes that add up to this one, less the bytes they share, of those seen at least `least_times`
/// times. Of several, those that are most frequent together.
fn parts_of(size: i64, least_times: u64, known: &[(i64, u64)], shared: i64) -> Option<Vec<i64>> {
    let known: Vec<(i64, f64)> =
        known.iter().filter(|(_, seen)| *seen >= least_times).map(|(part, seen)| (*part, *seen as f64)).collect();
    let times_seen = |wanted: i64| known.iter().find(|(part, _)| *part == wanted).map(|(_, seen)| *seen);
    let mut best: Option<(f64, Vec<i64>)> = None;
    let mut consider = |weight: f64, parts: Vec<i64>| {
        if best.as_ref().is_none_or(|(greatest, _)| weight > *greatest) {
            best = Some((weight, parts));
        }
    };
    let all: f64 = known.iter().map(|(_, seen)| seen).sum();
    for (at, (first, seen)) in known.iter().enumerate() {
        let second = size + shared - first;
        if let Some(other) = times_seen(second).filter(|_| second >= *first) {
            consider(seen * other, vec![*first, second]);
        }
        for (second, also) in known.iter().skip(at) {
            let third = size + 2 * shared - first - second;
            if let Some(other) = times_seen(third).filter(|_| third >= *second) {
                // Three in a record are rarer.
                consider(seen * also * other / all * 0.02, vec![*first, *second, third]);
            }
        }
    }
    best.map(|(_, parts)| parts)
}

/// Takes records apart that hold several replies, which share `shared` bytes: no action sends their size, and their
/// parts are frequent. With the share of replies that are in the record of the one before, and whether any was seen.
pub(super) fn split_merged(rows: &[Row], odd: &OddSizes, shared: i64) -> (Vec<Row>, f64, bool) {
    let parts = odd.parts(shared);
    let (mut merges, mut adjacent) = (0.0, 0.0);
    let split = rows.iter().map(|row| {
        let mut replies: BTreeMap<i64, u32> = BTreeMap::new();
        for (size, number) in &row.replies {
            let whole = [*size];
            let sizes = parts.get(size).map_or(&whole[..], Vec::as_slice);
            merges += (sizes.len() - 1) as f64 * f64::from(*number) * row.times as f64;
            for size in sizes {
                *replies.entry(*size).or_default() += number;
            }
        }
        adjacent += f64::from(replies.values().sum::<u32>().saturating_sub(1)) * row.times as f64;
        Row { counts: row.counts.clone(), replies, times: row.times }
    });
    let split = split.collect();
    let share = ((merges + MERGED_WEIGHT * USUALLY_MERGED) / (adjacent + MERGED_WEIGHT)).min(0.9);
    let share = if merges > 0.0 || share > NEVER_MERGED { share } else { 0.0 };
    (split, rounded(share), merges > 0.0)
}
