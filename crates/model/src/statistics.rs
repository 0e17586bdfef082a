//! The statistics that learning and answering share: middle values, sums by logarithms, how far sizes and bytes deviate
//! from what is expected, and the order of weighted items.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// The middle value, twice; of an even number of values the lower and the upper one. `None` without values.
pub fn middle<T: Copy>(values: &mut [T], order: impl FnMut(&T, &T) -> Ordering) -> Option<[T; 2]> {
    values.sort_unstable_by(order);
    let lower = values.len().checked_sub(1)? / 2;
    Some([*values.get(lower)?, *values.get(values.len() / 2)?])
}

/// How often each value occurs.
pub fn times<T: Ord, N: Default + AddAssign + From<u8>>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, N> {
    let mut times: BTreeMap<T, N> = BTreeMap::new();
    for value in values {
        *times.entry(value).or_default() += 1.into();
    }
    times
}

/// The value at a place, from 0, of values that each occur so many times, in ascending order; `None` beyond the last.
pub fn at_place(mut values: Vec<(i64, u64)>, mut place: u64) -> Option<i64> {
    values.sort_unstable();
    let is_there = |(_, times): &&(i64, u64)| {
        let is_there = place < *times;
        place = place.saturating_sub(*times);
        is_there
    };
    values.iter().find(is_there).map(|(value, _)| *value)
}

/// The two-sided geometric distribution: the probability of an integer deviation, given the mean absolute deviation
/// (above 0).
pub fn two_sided(deviation: f64, mean: f64) -> f64 {
    // The mean of |d| is 2r / (1 − r²) for the ratio r of consecutive probabilities.
    let ratio = ((1.0 + mean * mean).sqrt() - 1.0) / mean;
    (1.0 - ratio) / (1.0 + ratio) * ratio.powf(deviation)
}

/// By how much (in nats) a term of a sum is below rounding beside the greatest.
const NEGLIGIBLE: f64 = 40.0;

/// The natural logarithm of the sum of terms with these logarithms, which may be beyond what a number can hold; −∞ without
/// terms.
pub fn ln_sum(ln_terms: &[f64]) -> f64 {
    let greatest = ln_terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !greatest.is_finite() {
        return greatest;
    }
    let matters = ln_terms.iter().filter(|term| **term > greatest - NEGLIGIBLE);
    greatest + matters.map(|term| (term - greatest).exp()).sum::<f64>().ln()
}

pub fn ln_mean(ln_terms: &[f64]) -> f64 {
    ln_sum(ln_terms) - (ln_terms.len() as f64).ln()
}

/// How many values of which nothing is known the values count as that did not come yet.
const NEW: f64 = 2.0;

/// The probability that the next value is one that came so many times among all so far, and has the probability `new` if it
/// recurs by chance alone.
pub(crate) fn recurring(times: f64, all: f64, new: f64) -> f64 {
    (times + NEW * new) / (all + NEW)
}

/// The probability of a number of which nothing is known: 1/2, 1/6, 1/12 …
pub(crate) fn broad_number(number: f64) -> f64 {
    1.0 / ((number + 1.0) * (number + 2.0))
}

/// The rank of a weighted item: the least comes first. Weight and index are one integer, which compares several times
/// faster than the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u128);

impl Rank {
    /// The rank of a weight, or of its logarithm. Weights are ordered by [`f64::total_cmp`].
    #[inline]
    pub fn new(weight: f64, index: usize) -> Self {
        let bits = weight.to_bits();
        let descending = if weight.is_sign_negative() { bits } else { !(bits | 1 << 63) };
        Self(u128::from(descending) << 64 | index as u128)
    }

    #[inline]
    pub fn index(self) -> usize {
        self.0 as u64 as usize
    }
}
