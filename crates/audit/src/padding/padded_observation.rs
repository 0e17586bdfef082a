//! What an observer of padded commands learns, from what the observer of unpadded ones would see; and what random padding
//! gives away over time.

use std::collections::BTreeMap;

use sizeleak_inference::channel::{Channel, ChannelRow, Observation, Output};
use sizeleak_inference::space::{CommandGroup, KEPT, SizeRow};
use sizeleak_model::policies::{PaddedSize, PaddingPolicy};

use crate::leakage::Learned;
use crate::tunnel::{Burst, Tunnel};

/// What padding makes of everything that an observer sees.
#[derive(Debug, Clone)]
pub struct PaddedOutputs {
    /// Of each output, the padded ones with their probabilities.
    pub(crate) of_outputs: Vec<Vec<(u32, f64)>>,
    pub(crate) outputs: usize,
}

impl PaddedOutputs {
    /// Pads what is seen of commands. Padding is drawn anew for each command; an observer who sees one command learns no
    /// less where it is drawn by an unknown key.
    pub fn new(observation: &Observation, policy: &PaddingPolicy) -> Self {
        let seen = |index: u32| {
            let Output { size, replies } = observation.output(index);
            let padded = policy.padded_sizes(size).into_iter();
            let output = |bytes: u64| Output { size: bytes, replies: replies.clone() };
            padded.map(|padded| (output(padded.bytes), padded.probability)).collect()
        };
        Self::of((0..observation.command.outputs as u32).map(seen)).0
    }

    /// What is seen of padded commands through a tunnel, without replies. Returns also what the outputs stand for.
    pub fn through_tunnel(observation: &Observation, policy: &PaddingPolicy, tunnel: &Tunnel) -> (Self, Vec<Burst>) {
        let seen = |index: u32| {
            let padded = policy.padded_sizes(observation.output(index).size).into_iter();
            padded.map(|padded| (tunnel.message(padded.bytes), padded.probability)).collect()
        };
        Self::of((0..observation.command.outputs as u32).map(seen))
    }

    /// Each output is seen as one of several things, with their probabilities. Returns also these things, by their index.
    pub(crate) fn of<T: Ord + Clone>(outputs: impl Iterator<Item = Vec<(T, f64)>>) -> (Self, Vec<T>) {
        let (mut numbers, mut things) = (BTreeMap::new(), Vec::new());
        let mut of_output = |seen_as: Vec<(T, f64)>| {
            let mut seen: BTreeMap<u32, f64> = BTreeMap::new();
            for (thing, probability) in seen_as {
                let number = *numbers.entry(thing).or_insert_with_key(|thing: &T| {
                    things.push(thing.clone());
                    things.len() as u32 - 1
                });
                *seen.entry(number).or_default() += probability;
            }
            seen.into_iter().collect()
        };
        let of_outputs = outputs.map(&mut of_output).collect();
        (Self { of_outputs, outputs: things.len() }, things)
    }

    /// What is seen of the secrets of a channel.
    pub fn channel(&self, channel: &Channel) -> Channel {
        let mut seen = SparseSums::new(self.outputs);
        let row = |row: &ChannelRow| {
            for (output, probability) in &row.outputs {
                for (padded, share) in self.of_outputs.get(*output as usize).into_iter().flatten() {
                    seen.add(*padded, probability * share);
                }
            }
            ChannelRow { secrets: row.secrets, outputs: seen.take() }
        };
        Channel { rows: channel.rows.iter().map(row).collect(), outputs: self.outputs }
    }

    pub fn learned(&self, observation: &Observation) -> Learned {
        Learned::of(observation, |channel| self.channel(channel).measures())
    }
}

/// The commands of an observation by the size that is seen. A command that is seen with several sizes counts as several,
/// so that the leakage of a bucket with some of them is a lower bound.
pub fn seen_rows(observation: &Observation) -> Vec<SizeRow> {
    let mut rows: BTreeMap<u64, SizeRow> = BTreeMap::new();
    for row in &observation.command.rows {
        for (output, probability) in &row.outputs {
            let part = SizeRow::new(observation.output(*output).size, &row.secrets.scaled(*probability));
            rows.entry(part.bytes).and_modify(|all| all.add(&part)).or_insert(part);
        }
    }
    rows.into_values().collect()
}

/// The commands of an observation by the size that is seen, and by their probability. A command that is seen with several
/// sizes counts as several, and rare commands that look alike are taken to be as probable as they are on average.
pub fn seen_groups(observation: &Observation) -> Vec<CommandGroup> {
    let mut groups = Vec::new();
    for row in &observation.command.rows {
        let mut sizes: BTreeMap<u64, f64> = BTreeMap::new();
        for (output, probability) in &row.outputs {
            *sizes.entry(observation.output(*output).size).or_default() += probability;
        }
        for (bytes, probability) in sizes {
            let part = row.secrets.scaled(probability);
            let kept = part.greatest.iter().filter(|weight| **weight > 0.0);
            groups.extend(kept.clone().map(|weight| CommandGroup { bytes, commands: 1.0, probability: *weight }));
            let others = part.count - KEPT as f64;
            if others >= 1.0 {
                let weight = (part.weight - kept.sum::<f64>()).max(0.0);
                groups.push(CommandGroup { bytes, commands: others, probability: weight / others });
            }
        }
    }
    groups
}

/// Sums by an index, of which few are not 0.
#[derive(Debug)]
pub(crate) struct SparseSums {
    sums: Vec<f64>,
    /// The indexes of the sums that something was added to.
    touched: Vec<u32>,
}

impl SparseSums {
    pub(crate) fn new(length: usize) -> Self {
        Self { sums: vec![0.0; length], touched: Vec::new() }
    }

    /// Adds a positive value.
    pub(crate) fn add(&mut self, index: u32, value: f64) {
        let Some(sum) = self.sums.get_mut(index as usize).filter(|_| value > 0.0) else { return };
        if *sum <= 0.0 {
            self.touched.push(index);
        }
        *sum += value;
    }

    /// The sums by ascending index, which are 0 from here on.
    pub(crate) fn take(&mut self) -> Vec<(u32, f64)> {
        self.touched.sort_unstable();
        let sums = &mut self.sums;
        let take = |index: u32| Some((index, std::mem::take(sums.get_mut(index as usize)?)));
        self.touched.drain(..).filter_map(take).collect()
    }
}

/// The probability that the best guess is right after `observations` of the same command, whose padding of 0 to `most`
/// bytes was drawn anew each time.
///
/// All that the observer learns is the smallest and the greatest size seen, a and b: of a command with the size s they
/// have the same probability for all s from b − most to a. It is ((w + 1)ⁿ − 2wⁿ + (w − 1)ⁿ) / (most + 1)ⁿ for w = b − a
/// above 0.
pub fn named_after(rows: &[SizeRow], most: u64, observations: u32) -> f64 {
    let n = f64::from(observations.max(1));
    let share = |width: f64| (width.max(0.0) / (most as f64 + 1.0)).powf(n);
    let first = rows.first().map_or(0, |row| row.bytes);
    let last = rows.last().map_or(0, |row| row.bytes);
    let mut named = 0.0;
    for width in 0..=most {
        let w = width as f64;
        let seen = if width == 0 { share(1.0) } else { share(w + 1.0) - 2.0 * share(w) + share(w - 1.0) };
        // A command is possible where its size is in a window of most − w bytes that ends with the smallest size seen.
        let window = most - width;
        let greatest: f64 =
            (first..=last + window).map(|end| greatest_within(rows, end.saturating_sub(window), end)).sum();
        named += seen * greatest;
    }
    named
}

fn greatest_within(rows: &[SizeRow], from: u64, to: u64) -> f64 {
    let first = rows.partition_point(|row| row.bytes < from);
    let inside = rows.iter().skip(first).take_while(|row| row.bytes <= to);
    inside.map(|row| row.greatest).fold(0.0, f64::max)
}

/// The expected probability that the best guess is right for an observer who has learned, from labelled commands of the
/// gateway, to which size each command is padded under its key.
///
/// Commands of one group have the same probability; each is padded to a size independently of the others. So the most
/// probable command that is padded to a size is of a group if none of a more probable group is padded to it, and not
/// all of its own are padded elsewhere.
pub fn named_with_known_key(groups: &[CommandGroup], policy: &PaddingPolicy) -> f64 {
    let mut sorted: Vec<&CommandGroup> = groups.iter().collect();
    sorted.sort_by(|a, b| b.probability.total_cmp(&a.probability).then(a.bytes.cmp(&b.bytes)));
    let mut named = 0.0;
    // By size, the probability that no more probable command is padded to it.
    let mut free: BTreeMap<u64, f64> = BTreeMap::new();
    let mut known: BTreeMap<u64, Vec<PaddedSize>> = BTreeMap::new();
    for group in sorted {
        for padded in known.entry(group.bytes).or_insert_with(|| policy.padded_sizes(group.bytes)) {
            let free = free.entry(padded.bytes).or_insert(1.0);
            let still_free = *free * (1.0 - padded.probability).max(0.0).powf(group.commands);
            named += group.probability * (*free - still_free);
            *free = still_free;
        }
    }
    named
}
