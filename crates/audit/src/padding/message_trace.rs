//! Commands and their replies drawn at random, one message after the other: for simulators of traffic.

use std::iter::repeat_n;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_inference::channel::{ChannelRow, Observation};
use sizeleak_model::policies::{PaddingPolicy, TLS_RECORD_BYTES};
use sizeleak_model::{Model, ReplyClass};

use crate::padding::countermeasure_effect::DAY;

/// When the first reply to a command comes, in nanoseconds after it: models do not know how long replies take.
pub const FIRST_REPLY_NS: u64 = 100_000_000;

/// From one reply to the next, in nanoseconds.
pub const NEXT_REPLY_NS: u64 = 10_000_000;

const NANOSECONDS: f64 = 1e9;

/// A record with a message, or with a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it is sent, in nanoseconds since the start of the trace.
    pub time_ns: u64,
    /// Which way it goes.
    pub direction: TraceDirection,
    /// Its size in bytes, as the model has sizes.
    pub bytes: u64,
}

/// Which way a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceDirection {
    /// A command, to the gateway.
    ToGateway,
    /// A reply, from the gateway.
    FromGateway,
}

/// What a trace is drawn from.
#[derive(Debug, Clone, Copy)]
pub struct TraceSource<'a> {
    /// What is seen of commands: sizes, or sizes and single replies.
    pub observation: &'a Observation,
    /// The model of the observation.
    pub model: &'a Model,
    /// How commands are padded. Random padding is drawn anew for each.
    pub policy: &'a PaddingPolicy,
    /// How many commands come a day, as a Poisson process.
    pub commands_per_day: f64,
}

impl TraceSource<'_> {
    /// The records of so many commands and of their replies, by ascending time. Replies are those whose sizes the model
    /// knows; they are as frequent as the observation says.
    pub fn draw(&self, commands: u32, seed: u64) -> Vec<TraceRecord> {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let rows = &self.observation.command.rows;
        let until = |sum: &mut f64, row: &ChannelRow| {
            *sum += row.secrets.weight;
            Some(*sum)
        };
        let sums: Vec<f64> = rows.iter().scan(0.0, until).collect();
        let Some(all) = sums.last().copied() else { return Vec::new() };
        let classes = self.model.single_replies.as_ref().map_or(&[][..], |replies| replies.classes.as_slice());
        let (mut records, mut time_ns) = (Vec::new(), 0_u64);
        for _ in 0..commands {
            let gap = -(1.0 - random.random::<f64>()).ln() * DAY / self.commands_per_day;
            time_ns = time_ns.saturating_add((gap * NANOSECONDS) as u64);
            let drawn = random.random_range(0.0..all);
            let Some(row) = rows.get(sums.partition_point(|sum| *sum <= drawn)) else { continue };
            let Some(output) = weighted(&row.outputs, &mut random) else { continue };
            let output = self.observation.output(output);
            let padded: Vec<(u64, f64)> =
                self.policy.padded_sizes(output.size).iter().map(|padded| (padded.bytes, padded.probability)).collect();
            let bytes = weighted(&padded, &mut random).unwrap_or(output.size);
            records.extend(in_records(time_ns, TraceDirection::ToGateway, bytes));
            let mut reply_ns = time_ns.saturating_add(FIRST_REPLY_NS);
            let of_classes = classes.iter().zip(output.replies);
            for class in of_classes.flat_map(|(class, times)| repeat_n(class, times as usize)) {
                let bytes = reply_bytes(class, &mut random);
                records.extend(in_records(reply_ns, TraceDirection::FromGateway, bytes));
                reply_ns = reply_ns.saturating_add(NEXT_REPLY_NS);
            }
        }
        records.sort_by_key(|record| record.time_ns);
        records
    }
}

/// One of several, by their weights; `None` if there are none.
fn weighted<T: Copy>(weights: &[(T, f64)], random: &mut ChaCha20Rng) -> Option<T> {
    let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let mut left = random.random::<f64>() * all;
    for (item, weight) in weights {
        left -= weight;
        if left < 0.0 {
            return Some(*item);
        }
    }
    weights.last().map(|(item, _)| *item)
}

/// The size of a reply, as often as it was seen.
fn reply_bytes(class: &ReplyClass, random: &mut ChaCha20Rng) -> u64 {
    let sizes: Vec<(i64, f64)> = class.sizes.iter().map(|(size, times)| (*size, *times as f64)).collect();
    weighted(&sizes, random).and_then(|size| u64::try_from(size).ok()).unwrap_or(0)
}

/// A message in as many TLS records as it needs.
fn in_records(time_ns: u64, direction: TraceDirection, bytes: u64) -> impl Iterator<Item = TraceRecord> {
    let full = repeat_n(TLS_RECORD_BYTES, (bytes / TLS_RECORD_BYTES) as usize);
    let rest = bytes % TLS_RECORD_BYTES;
    let last = (rest > 0 || bytes == 0).then_some(rest);
    full.chain(last).map(move |bytes| TraceRecord { time_ns, direction, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_have_several_records() {
        let sizes = |bytes| -> Vec<u64> {
            in_records(5, TraceDirection::ToGateway, bytes).map(|record| record.bytes).collect()
        };
        assert_eq!(sizes(20_000), [16_384, 3_616]);
        assert_eq!(sizes(16_384), [16_384]);
        assert_eq!(sizes(100), [100]);
        assert_eq!(sizes(0), [0]);
    }
}
