//! What the records of the replies to a command may be: single replies, several in one record, or foreign records.

use std::f64::consts::PI;
use std::sync::LazyLock;

use super::{MIN_SHARE, SingleReplies};

/// The most ways to read one record that are looked at.
const MAX_READINGS: usize = 8;

/// How many records may be read otherwise than is most probable, in one interpretation.
const MAX_ODD: u32 = 2;

/// The most interpretations of the replies to one command, and the same times the types of replies.
const MAX_INTERPRETATIONS: usize = 64;
const MAX_WORK: usize = 512;

/// The most sizes of replies that may share a record; the most frequent ones.
const MAX_SIZES_MERGED: usize = 16;

/// Less probable ways to read a record are left out.
const MIN_WEIGHT: f64 = 1e-9;

const MAX_MERGED: usize = 3;

/// One way to read all records.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpretation {
    /// How many replies have each type, in the order of the types.
    pub replies: Vec<u32>,
    /// The logarithm of what does not depend on actions: merging, foreign records, and the order of all.
    pub ln_weight: f64,
}

/// One way to read one record.
#[derive(Debug, Clone)]
enum Reading {
    /// Replies of these sizes; the number of their orders in the record, times the probability that they share one.
    Replies {
        sizes: Vec<[i64; 2]>,
        weight: f64,
    },
    Foreign {
        ln_weight: f64,
    },
}

/// The ways to read a record of one size.
#[derive(Debug)]
pub(super) struct RecordReadings {
    /// The most probable first.
    list: Vec<Reading>,
    /// The greatest share of a class that has the size.
    share: f64,
    /// The weights of a foreign record, and of all ways to read it as two and as three replies.
    foreign: f64,
    merged: [f64; MAX_MERGED - 1],
}

/// How records have been read so far.
#[derive(Debug, Clone, Default)]
struct Partial {
    replies: Vec<u32>,
    ln_weight: f64,
    odd: u32,
    foreign: u32,
}

/// The sizes of replies that some interpretation has, and the interpretations, given the range of each record's size in
/// ascending order.
pub(super) fn interpretations<R: AsRef<RecordReadings>>(
    model: &SingleReplies,
    records: &[[i64; 2]],
    readings: &[R],
) -> (Vec<[i64; 2]>, Vec<Interpretation>) {
    let counts = records.chunk_by(|a, b| a == b).map(|equal| equal.len() as u32);
    // How many records are of the same size, with the ways to read one of them.
    let equal: Vec<(u32, &[Reading])> =
        counts.zip(readings).map(|(count, readings)| (count, &readings.as_ref().list[..])).collect();
    let mut types: Vec<[i64; 2]> = equal
        .iter()
        .flat_map(|(_, readings)| *readings)
        .flat_map(|reading| if let Reading::Replies { sizes, .. } = reading { sizes.as_slice() } else { &[] })
        .copied()
        .collect();
    types.sort_unstable();
    types.dedup();
    let mut all = vec![Partial { replies: vec![0; types.len()], ..Partial::default() }];
    for (count, readings) in equal {
        let mut more = Vec::new();
        for partial in all {
            extend(partial, readings, 0, count, &types, &mut more);
        }
        more.sort_by(|a, b| b.ln_weight.total_cmp(&a.ln_weight));
        more.truncate((MAX_WORK / types.len().max(1)).clamp(4, MAX_INTERPRETATIONS));
        all = more;
    }
    let groups = records.len() as u32;
    let finished = all.into_iter().map(|partial| finish(model, partial, groups)).collect();
    (types, finished)
}

/// At least ln P(records | actions) for any actions, given the range of each record's size in ascending order.
///
/// Of so many records that are read one by one, the shares of all ways to read one add up. That classes send just these
/// replies, in any order, has a probability of at most 1; so a rare size brings in no more than the mean number of its
/// replies, and the orders are those of records that the same replies may be in: where ranges overlap, one reply suits
/// several. Each further reply in a record can be in as many orders as there are replies.
pub(super) fn ln_bound<R: AsRef<RecordReadings>>(records: &[[i64; 2]], readings: &[R]) -> f64 {
    let most_replies = (MAX_MERGED * records.len()) as f64;
    let ln_read = |(equal, readings): (&[[i64; 2]], &R)| {
        let RecordReadings { share, foreign, merged: [two, three], .. } = readings.as_ref();
        let read = (most_replies * share).min(1.0) + foreign + most_replies * (two + most_replies * three);
        equal.len() as f64 * read.ln()
    };
    let ln_read: f64 = records.chunk_by(|a, b| a == b).zip(readings).map(ln_read).sum();
    let mut greatest = i64::MIN;
    let ln_orders: f64 = records
        .chunk_by(|before, next| {
            greatest = greatest.max(before[1]);
            next[0] <= greatest
        })
        .map(|overlapping| ln_factorial(overlapping.len() as u32))
        .sum();
    ln_orders + ln_read - ln_factorial(records.len() as u32)
}

impl RecordReadings {
    pub(super) fn new(model: &SingleReplies, size: [i64; 2]) -> Self {
        let list = readings(model, size);
        let (mut foreign, mut merged) = (0.0, [0.0; MAX_MERGED - 1]);
        for reading in &list {
            match reading {
                Reading::Replies { sizes, weight } if sizes.len() > 1 => merged[sizes.len() - 2] += weight,
                Reading::Replies { .. } => {}
                Reading::Foreign { ln_weight } => foreign = ln_weight.exp(),
            }
        }
        Self { list, share: greatest_share(model, size), foreign, merged }
    }

    /// Whether no reply has the size, alone or with others.
    pub(super) fn is_only_foreign(&self) -> bool {
        matches!(&self.list[..], [Reading::Foreign { .. }])
    }
}

fn greatest_share(model: &SingleReplies, size: [i64; 2]) -> f64 {
    model.classes.iter().map(|class| class.share(size)).fold(0.0, f64::max)
}

/// The ways to read a record whose size is in a range, the most probable first.
fn readings(model: &SingleReplies, size: [i64; 2]) -> Vec<Reading> {
    let single = (greatest_share(model, size), Reading::Replies { sizes: vec![size], weight: 1.0 });
    let merged = if model.merged > 0.0 { merged_sizes(model, size) } else { Vec::new() };
    let merged = merged.into_iter().map(|sizes| {
        let shares: f64 = sizes.iter().map(|size| greatest_share(model, [*size; 2])).product();
        let weight = orders(&sizes) * (1..sizes.len()).map(|_| model.merged).product::<f64>();
        let sizes = sizes.into_iter().map(|size| [size; 2]).collect();
        (weight * shares, Reading::Replies { sizes, weight })
    });
    let foreign = model.foreign.max(MIN_SHARE) * model.foreign_share(size);
    let foreign = (foreign, Reading::Foreign { ln_weight: foreign.ln() });
    let mut weighted: Vec<(f64, Reading)> = [single].into_iter().chain(merged).collect();
    weighted.retain(|(weight, _)| *weight > MIN_WEIGHT);
    weighted.sort_by(|a, b| b.0.total_cmp(&a.0));
    weighted.truncate(MAX_READINGS - 1);
    weighted.push(foreign);
    weighted.sort_by(|a, b| b.0.total_cmp(&a.0));
    weighted.into_iter().map(|(_, reading)| reading).collect()
}

/// Sizes of two or three replies that add up to a record's size.
fn merged_sizes(model: &SingleReplies, [least, most]: [i64; 2]) -> Vec<Vec<i64>> {
    let mut known: Vec<(u64, i64)> =
        model.classes.iter().flat_map(|class| &class.sizes).map(|(size, times)| (*times, *size)).collect();
    known.sort_unstable_by(|a, b| b.cmp(a));
    known.truncate(MAX_SIZES_MERGED);
    let mut known: Vec<i64> = known.into_iter().map(|(_, size)| size).collect();
    known.sort_unstable();
    known.dedup();
    let mut found = Vec::new();
    let mut pending: Vec<(Vec<i64>, i64)> = vec![(Vec::new(), 0)];
    while let Some((parts, sum)) = pending.pop() {
        let from = parts.last().copied().unwrap_or(i64::MIN);
        for size in known.iter().filter(|size| **size >= from) {
            let shared = if parts.is_empty() { 0 } else { model.shared };
            let sum = sum.saturating_add(*size).saturating_sub(shared);
            let parts: Vec<i64> = parts.iter().copied().chain([*size]).collect();
            // Known sizes under a block cipher are the upper ends of their ranges.
            let tolerance = most.saturating_sub(least).saturating_mul(i64::try_from(parts.len() - 1).unwrap_or(0));
            if parts.len() > 1 && (least..=most.saturating_add(tolerance)).contains(&sum) {
                found.push(parts.clone());
            }
            if parts.len() < MAX_MERGED && sum <= most {
                pending.push((parts, sum));
            }
        }
    }
    found.sort();
    found
}

/// In how many orders these sizes may come, which are ascending.
fn orders(sizes: &[i64]) -> f64 {
    let repeats = sizes.chunk_by(|a, b| a == b).map(|equal| ln_factorial(equal.len() as u32));
    (ln_factorial(sizes.len() as u32) - repeats.sum::<f64>()).exp().round()
}

/// Reads `left` equal records with the readings from `at` on.
fn extend(
    partial: Partial,
    readings: &[Reading],
    at: usize,
    left: u32,
    types: &[[i64; 2]],
    extended: &mut Vec<Partial>,
) {
    if left == 0 {
        return extended.push(partial);
    }
    let Some(reading) = readings.get(at) else { return };
    for count in (0..=left).rev() {
        let odd = partial.odd + if at == 0 { 0 } else { count };
        if odd > MAX_ODD {
            continue;
        }
        let mut next = Partial { odd, ..partial.clone() };
        // Which of the equal records are read this way.
        next.ln_weight += ln_choose(left, count);
        match reading {
            Reading::Replies { sizes, weight } => {
                next.ln_weight += f64::from(count) * weight.ln();
                for size in sizes {
                    if let Ok(index) = types.binary_search(size)
                        && let Some(replies) = next.replies.get_mut(index)
                    {
                        *replies += count;
                    }
                }
            }
            Reading::Foreign { ln_weight } => {
                next.ln_weight += f64::from(count) * ln_weight;
                next.foreign += count;
            }
        }
        extend(next, readings, at + 1, left - count, types, extended);
    }
}

/// Adds what depends on the records as a whole: merging, foreign records and the order of all.
fn finish(model: &SingleReplies, partial: Partial, records: u32) -> Interpretation {
    let replies: u32 = partial.replies.iter().sum();
    let groups = records.saturating_sub(partial.foreign);
    let mut ln_weight = partial.ln_weight - ln_factorial(replies);
    ln_weight += f64::from(groups.saturating_sub(1)) * (1.0 - model.merged).ln();
    // Foreign records are Poisson, at any places among the others.
    ln_weight -= model.foreign;
    ln_weight -= ln_factorial(partial.foreign) + ln_choose(records, partial.foreign);
    Interpretation { replies: partial.replies, ln_weight }
}

const FACTORIALS: usize = 512;

/// ln n!, by Stirling's series where there is no table.
pub(super) fn ln_factorial(n: u32) -> f64 {
    static TABLE: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let sums = (0..FACTORIALS as u32).scan(0.0, |sum: &mut f64, n| {
            *sum += f64::from(n.max(1)).ln();
            Some(*sum)
        });
        sums.collect()
    });
    TABLE.get(n as usize).copied().unwrap_or_else(|| {
        let n = f64::from(n);
        (n + 0.5) * n.ln() - n + (2.0 * PI).ln() / 2.0 + 1.0 / (12.0 * n)
    })
}

fn ln_choose(all: u32, some: u32) -> f64 {
    ln_factorial(all) - ln_factorial(some) - ln_factorial(all.saturating_sub(some))
}
