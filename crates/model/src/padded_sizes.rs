//! Sizes that padding leaves: all of them powers of two, or alike modulo some bytes. Sums of actions hit some of these, too,
//! and then a padded message has an answer that means nothing; but sums hit others as well.

use std::collections::BTreeSet;

use crate::model::Model;

/// What padding rounds up to, in bytes, beside powers of two.
const MULTIPLES: [i64; 4] = [8, 16, 32, 64];

const WAYS: usize = MULTIPLES.len() + 1;

/// The share of new sizes that are padded ones where messages are padded: some are another app's.
const PADDED: f64 = 0.98;

/// A share of new sizes that sums of actions never exceed, if not nearly all actions are of a size that is such a multiple
/// itself.
const OF_SUMS: f64 = 0.5;

/// What a model says of sizes that padding leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct PaddingTest {
    /// The share of them among new sizes that are sums of actions, by the way to pad; powers of two are the last.
    of_sums: [f64; WAYS],
    /// The natural logarithm of how many sets of actions there are: as probable is it before that only those are used
    /// whose sizes are multiples.
    ln_sets: f64,
}

impl PaddingTest {
    /// `None` if labelled commands were padded themselves: what is left of their sizes then, `model` knows.
    pub fn of(model: &Model) -> Option<Self> {
        let sizes: BTreeSet<i64> = model.neighbours.tuples().iter().map(|tuple| tuple.size).collect();
        let test = Self::of_sizes(&sizes, model.actions.len())?;
        model.learned.padding.is_none().then_some(test)
    }

    fn of_sizes(sizes: &BTreeSet<i64>, actions: usize) -> Option<Self> {
        let (first, last) = (*sizes.first()?, *sizes.last()?);
        let share = |times: usize, all: f64| (times as f64 + 1.0) / (all + 2.0);
        let seen = sizes.len() as f64;
        let mut of_sums = [0.0; WAYS];
        for (of_sums, bytes) in of_sums.iter_mut().zip(MULTIPLES) {
            let alike = |rest: i64| sizes.iter().filter(|size| size.rem_euclid(bytes) == rest).count();
            *of_sums = share((0..bytes).map(alike).max()?, seen).max(OF_SUMS);
        }
        let powers = (0..62).filter(|power| (first..=last).contains(&(1_i64 << power))).count();
        let seen_powers = sizes.iter().filter(|size| is_power(**size)).count();
        // Any size between the least and the greatest may be a sum that nobody labelled.
        let by_chance = share(powers, (last - first) as f64 + 1.0);
        *of_sums.last_mut()? = if seen_powers > 2 { share(seen_powers, seen) } else { by_chance };
        Some(Self { of_sums, ln_sets: actions as f64 * 2_f64.ln() })
    }
}

fn is_power(size: i64) -> bool {
    u64::try_from(size).is_ok_and(u64::is_power_of_two)
}

/// The evidence of the sizes of one flow that they are padded.
#[derive(Debug, Clone, Default)]
pub(crate) struct PaddedSizes {
    first: Option<i64>,
    ln_ratios: [f64; WAYS],
}

impl PaddedSizes {
    /// Adds a size that did not occur before.
    pub(crate) fn add(&mut self, size: i64, test: &PaddingTest) {
        let first = *self.first.get_or_insert(size);
        let mut add = |way: usize, is_padded: bool| {
            let of_sums = test.of_sums[way];
            let [padded, sums] = if is_padded { [PADDED, of_sums] } else { [1.0 - PADDED, 1.0 - of_sums] };
            self.ln_ratios[way] += (padded / sums).ln();
        };
        add(MULTIPLES.len(), is_power(size));
        for (way, bytes) in MULTIPLES.into_iter().enumerate() {
            // The first size is what the others are compared with.
            if size != first {
                add(way, (size - first) % bytes == 0);
            }
        }
    }

    /// The natural logarithm of the evidence: the mean over all ways to pad.
    pub(crate) fn ln_evidence(&self, test: &PaddingTest) -> f64 {
        let ln_ratios = self.ln_ratios.iter().enumerate();
        let prior = |way: usize| if way < MULTIPLES.len() { test.ln_sets } else { 0.0 };
        let evidence: f64 = ln_ratios.map(|(way, ln_ratio)| (ln_ratio - prior(way)).exp()).sum();
        (evidence / WAYS as f64).ln()
    }
}
