//! The ways to make up some sums, most probable first. No more of them are computed than are asked for.
//!
//! The weight table knows the best branch at every entry, so the best way of all is walked straight down. Each branch that is
//! not taken is a deviation, whose best way has a known weight too: the next best way starts at the best pending deviation. Only
//! as many deviations are kept as ways are still wanted. Where most ways are wanted, [`fast`] finds them all at once.

mod fast;

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::weight_table::{Entry, MAX_BRANCHES, WeightTable, WeightedWay};

/// Visits the ways to make up sums that are in the table, each given with the logarithm of its weight: most probable ways
/// first, at most `max_ways` of the `count` there are, as long as `visit` returns true.
pub(crate) fn visit_ways(
    weights: &WeightTable,
    sums: &[(usize, f64)],
    count: u64,
    max_ways: usize,
    mut visit: impl FnMut(WeightedWay<'_>) -> bool,
) {
    if fast::visit_ways(weights, sums, count, max_ways, &mut visit) {
        return;
    }
    let mut search = BestFirst::new(weights, sums, max_ways);
    while search.advance().is_some_and(&mut visit) {}
}

/// The search, with the ways it found so far.
#[derive(Debug)]
struct BestFirst<'a> {
    weights: &'a WeightTable,
    pending: BinaryHeap<Deviation>,
    /// How many deviations there were.
    deviations: u64,
    found: Vec<Vec<WayStep>>,
    /// The actions of the last way found.
    actions: Vec<(u32, u32)>,
    max_ways: usize,
    /// How many branches were looked at.
    visited: u64,
}

/// A layer whose action is taken, and how often.
#[derive(Debug, Clone, Copy)]
struct WayStep {
    layer: usize,
    taken: u32,
}

/// A branch that was not taken.
#[derive(Debug, Clone, Copy)]
struct Deviation {
    /// The logarithm of the weight of the best way that begins like this.
    ln_best: f64,
    /// Among equals, the lowest number comes first.
    number: u64,
    sum: usize,
    /// The way found before that has the same steps up to the layer before.
    parent: Option<usize>,
    /// How many are taken in the layer before.
    taken: u32,
    entry: Entry,
}

impl<'a> BestFirst<'a> {
    fn new(weights: &'a WeightTable, sums: &[(usize, f64)], max_ways: usize) -> Self {
        let mut best_first = Self {
            weights,
            pending: BinaryHeap::new(),
            deviations: 0,
            found: Vec::new(),
            actions: Vec::new(),
            max_ways,
            visited: 0,
        };
        for (sum, (bytes, ln_weight)) in sums.iter().enumerate() {
            let (entry, ln_best) = weights.start(*bytes, *ln_weight);
            if ln_best > f64::NEG_INFINITY {
                best_first.add(Deviation { ln_best, number: 0, sum, parent: None, taken: 0, entry });
            }
        }
        best_first
    }

    fn add(&mut self, deviation: Deviation) {
        self.deviations += 1;
        self.pending.push(Deviation { number: self.deviations, ..deviation });
        let wanted = self.max_ways - self.found.len();
        if self.pending.len() > 2 * wanted + 1024 {
            let mut all = std::mem::take(&mut self.pending).into_vec();
            all.select_nth_unstable_by(wanted, |a, b| b.cmp(a));
            all.truncate(wanted);
            self.pending = BinaryHeap::from(all);
        }
    }

    /// The next best way.
    fn advance(&mut self) -> Option<WeightedWay<'_>> {
        if self.found.len() >= self.max_ways || self.visited > MAX_BRANCHES {
            return None;
        }
        let start = self.pending.pop()?;
        let steps = self.walk(start);
        let action = |step: &WayStep| Some((u32::try_from(self.weights.action(step.layer)?).ok()?, step.taken));
        self.actions.clear();
        self.actions.extend(steps.iter().filter_map(action));
        self.actions.sort_unstable();
        self.found.push(steps);
        Some(WeightedWay { sum: start.sum, actions: &self.actions, ln_weight: start.ln_best })
    }

    /// Walks on from a deviation, always along the best branch. All other branches become pending.
    fn walk(&mut self, start: Deviation) -> Vec<WayStep> {
        let layer_before = start.entry.layer.checked_sub(1);
        let parent = start.parent.and_then(|parent| self.found.get(parent)).map_or(&[][..], Vec::as_slice);
        let shared = parent.iter().take_while(|step| Some(step.layer) < layer_before);
        let mut way: Vec<WayStep> = shared.copied().collect();
        way.extend(layer_before.and_then(|layer| WayStep::new(layer, start.taken)));
        let (mut entry, mut branches) = (start.entry, Vec::new());
        loop {
            self.visited += self.weights.branches(entry, &mut branches);
            // Of equally good branches, the one that takes most.
            let best = branches.iter().enumerate().max_by(|(_, a), (_, b)| a.ln_best.total_cmp(&b.ln_best));
            let Some((best_at, best)) = best.map(|(at, branch)| (at, *branch)) else { return way };
            for (_, branch) in branches.iter().enumerate().rev().filter(|(at, _)| *at != best_at) {
                // Rounding must not make a deviation better than the way it deviates from.
                let ln_best = branch.ln_best.min(start.ln_best);
                let parent = Some(self.found.len());
                self.add(Deviation { ln_best, parent, taken: branch.taken, entry: branch.next, ..start });
            }
            way.extend(WayStep::new(entry.layer, best.taken));
            entry = best.next;
        }
    }
}

impl WayStep {
    /// `None` where nothing is taken.
    fn new(layer: usize, taken: u32) -> Option<Self> {
        (taken > 0).then_some(Self { layer, taken })
    }
}

impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Deviation {}

impl PartialOrd for Deviation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deviation {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ln_best.total_cmp(&other.ln_best).then(other.number.cmp(&self.number))
    }
}

#[cfg(test)]
mod tests;
