//! A branch that a walk did not take: where another way begins.

use std::cmp::Ordering;

use crate::weight_table::{Branch, Entry, WeightTable};

/// A branch off a way found before, or the start of a sum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviation {
    /// The logarithm of the weight of the best way that begins like this.
    pub(crate) ln_best: f64,
    /// Among equals, the lowest number comes first.
    pub(crate) number: usize,
    /// The sum's index among those asked for.
    pub(crate) sum: usize,
    /// The way that has the same steps up to the layer before; `None` at the start.
    pub(crate) parent: Option<usize>,
    /// How many are taken in the layer before.
    pub(crate) taken: u32,
    pub(crate) entry: Entry,
}

impl Deviation {
    /// The starts of the sums that have a way, each sum given with the logarithm of its weight.
    pub(crate) fn starts(weights: &WeightTable, sums: &[(usize, f64)]) -> impl Iterator<Item = Self> {
        let start = |(number, (bytes, ln_weight)): (usize, &(usize, f64))| {
            let (entry, ln_best) = weights.start(*bytes, *ln_weight);
            Self { ln_best, number, sum: number, parent: None, taken: 0, entry }
        };
        sums.iter().enumerate().map(start).filter(|start| start.ln_best > f64::NEG_INFINITY)
    }

    /// A branch off the best way from here.
    pub(crate) fn branch_off(&self, Branch { taken, ln_best, next }: Branch, parent: usize, number: usize) -> Self {
        // Rounding must not make it better than the way it branches off from.
        let ln_best = ln_best.min(self.ln_best);
        Self { ln_best, number, sum: self.sum, parent: Some(parent), taken, entry: next }
    }
}

impl Ord for Deviation {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ln_best.total_cmp(&other.ln_best).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Deviation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Deviation {}
