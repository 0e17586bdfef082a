//! Counting: several counts in one number, binomial coefficients, entropies.

/// Counts as the digits of one number, so that the sum of two keys has the sums of their counts.
#[derive(Debug, Clone)]
pub(super) struct CountKey {
    base: u128,
    /// The powers of the base, one more than there are counts.
    powers: Vec<u128>,
}

impl CountKey {
    /// Keys of this many counts up to `most` each; `None` if they need more than 128 bits.
    pub(super) fn new(counts: usize, most: u32) -> Option<Self> {
        let base = u128::from(most) + 1;
        let powers: Option<Vec<u128>> = (0..=counts as u32).map(|at| base.checked_pow(at)).collect();
        Some(Self { base, powers: powers? })
    }

    /// The key of one of a count and none of the others.
    pub(super) fn unit(&self, at: usize) -> u128 {
        self.powers.get(at).copied().unwrap_or(0)
    }

    /// A count.
    pub(super) fn count(&self, key: u128, at: usize) -> u32 {
        // Below the base, which was a u32.
        (key / self.unit(at).max(1) % self.base) as u32
    }

    /// All counts.
    pub(super) fn counts(&self, key: u128) -> impl Iterator<Item = u32> {
        (1..self.powers.len()).map(move |next| self.count(key, next - 1))
    }
}

/// The binomial coefficient.
pub(super) fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|at| f64::from(all.saturating_sub(at)) / f64::from(at + 1)).product()
}

/// n!
pub(super) fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}

/// The entropy of a distribution, in bits.
pub(super) fn entropy(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.filter(|probability| *probability > 0.0).map(|probability| -probability * probability.log2()).sum()
}

/// Sorts entries by key and merges those with the same key.
pub(super) fn merge_by_key<T, K: Ord>(entries: &mut Vec<T>, key: impl Fn(&T) -> K, merge: impl Fn(&mut T, &T)) {
    entries.sort_by_key(&key);
    entries.dedup_by(|later, kept| {
        let is_same = key(later) == key(kept);
        if is_same {
            merge(kept, later);
        }
        is_same
    });
}
