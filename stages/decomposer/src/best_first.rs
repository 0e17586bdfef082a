//! The ways to make up some sums, most probable first. No more of them are computed than are asked for.
//!
//! The weight table knows the best branch at every entry, so the best way of all is walked straight down. Each branch
//! that is not taken is a deviation, whose best way has a known weight too: the next best way starts at the best
//! pending deviation. Only as many deviations are kept as ways are still wanted. Where most ways are wanted, [`fast`]
//! finds them all at once.

mod fast;

use std::collections::BinaryHeap;

use crate::deviation::Deviation;
use crate::weight_table::{MAX_BRANCHES, WeightTable, WeightedWay};

/// Visits the ways to make up sums that are in the table, each given with the logarithm of its weight: most probable
/// ways first, at most `max_ways` of the `count` there are, as long as `visit` returns true.
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
    deviations: usize,
    /// The steps of each way.
    found: Vec<Vec<Step>>,
    /// The actions of the last way found.
    actions: Vec<(u32, u32)>,
    max_ways: usize,
    /// How many branches were looked at.
    visited: u64,
}

/// A layer whose action is taken, and how often.
#[derive(Debug, Clone, Copy)]
struct Step {
    layer: usize,
    taken: u32,
}

impl<'a> BestFirst<'a> {
    fn new(weights: &'a WeightTable, sums: &[(usize, f64)], max_ways: usize) -> Self {
        let (pending, found, actions) = (BinaryHeap::new(), Vec::new(), Vec::new());
        let mut search = Self { weights, pending, deviations: 0, found, actions, max_ways, visited: 0 };
        Deviation::starts(weights, sums).for_each(|start| search.add(start));
        search
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
        let action = |step: &Step| Some((u32::try_from(self.weights.action(step.layer)?).ok()?, step.taken));
        self.actions.clear();
        self.actions.extend(steps.iter().filter_map(action));
        self.actions.sort_unstable();
        self.found.push(steps);
        Some(WeightedWay { sum: start.sum, actions: &self.actions, ln_weight: start.ln_best })
    }

    /// Walks on from a deviation along the best branches. All others become pending.
    fn walk(&mut self, start: Deviation) -> Vec<Step> {
        let layer_before = start.entry.layer.checked_sub(1);
        let parent = start.parent.and_then(|parent| self.found.get(parent)).map_or(&[][..], Vec::as_slice);
        let shared = parent.iter().take_while(|step| Some(step.layer) < layer_before);
        let mut steps: Vec<Step> = shared.copied().collect();
        let step = |layer, taken| (taken > 0).then_some(Step { layer, taken });
        steps.extend(layer_before.and_then(|layer| step(layer, start.taken)));
        let (weights, way) = (self.weights, self.found.len());
        self.visited += weights.walk(
            start.entry,
            &mut Vec::new(),
            |branch| self.add(start.branch_off(branch, way, 0)),
            |layer, taken| steps.extend(step(layer, taken)),
        );
        steps
    }
}

#[cfg(test)]
mod tests;
