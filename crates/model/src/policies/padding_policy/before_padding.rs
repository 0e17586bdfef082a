//! The sizes that a padded command may have had.

use super::{PaddedSize, PaddingPolicy, RandomRow, greatest_of};

impl PaddingPolicy {
    /// The smallest and the largest size that may be padded to `padded` bytes; `None` if no size is. Where the policy is a
    /// [`PaddingPolicy::Map`] or random, not every size between them need be: [`Self::probability`] says which.
    pub fn sizes_before(&self, padded: u64) -> Option<[u64; 2]> {
        match self {
            Self::Random { most, .. } => Some([padded.saturating_sub(*most), padded]),
            Self::Map { sizes } => {
                let rows = sizes.iter().map(|[from, to]| (*from, *to == padded));
                hull(rows, padded, sizes.iter().map(|[_, to]| *to).max())
            }
            Self::RandomTable { rows, .. } => {
                let leads = |row: &RandomRow| row.padded.iter().any(|possible| possible.bytes == padded);
                hull(rows.iter().map(|row| (row.size, leads(row))), padded, greatest_of(rows))
            }
            // Larger sizes are padded to larger ones, so that those which are padded to one size are a range.
            _ => {
                let first = first_size(padded, |size| self.padded(size) >= Some(padded));
                let last = first_size(padded, |size| self.padded(size) > Some(padded)).checked_sub(1);
                (self.padded(first) == Some(padded)).then(|| [first, last.unwrap_or(padded).max(first)])
            }
        }
    }

    /// The probability that a command of `size` bytes is padded to `padded` bytes.
    pub fn probability(&self, size: u64, padded: u64) -> f64 {
        match self {
            Self::Random { most, .. } => match padded.checked_sub(size) {
                Some(added) if added <= *most => 1.0 / (*most as f64 + 1.0),
                _ => 0.0,
            },
            Self::RandomTable { .. } => {
                let possible = self.padded_sizes(size).into_iter().filter(|possible| possible.bytes == padded);
                possible.map(|PaddedSize { probability, .. }| probability).sum()
            }
            _ => f64::from(u8::from(self.padded(size) == Some(padded))),
        }
    }
}

/// The smallest size up to `limit` for which `holds`, which holds for all larger ones too; else the next size.
fn first_size(limit: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, limit.saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// From the smallest to the largest size that rows lead from, each given by its size and whether it leads to `padded`. A
/// row is for all sizes above the one before; beyond the last, sizes are padded to multiples of the greatest.
fn hull(rows: impl Iterator<Item = (u64, bool)>, padded: u64, greatest: Option<u64>) -> Option<[u64; 2]> {
    let (mut hull, mut next) = (None, 0);
    let mut add = |from: u64, to: u64| {
        let [first, _] = hull.unwrap_or([from, to]);
        hull = Some([first, to]);
    };
    for (size, leads) in rows {
        if leads {
            add(next, size);
        }
        next = size + 1;
    }
    let unit = greatest.unwrap_or(1).max(1);
    if padded >= next && padded.is_multiple_of(unit) {
        add(next.max(padded.saturating_sub(unit - 1)), padded);
    }
    hull
}

#[cfg(test)]
mod tests {
    use crate::policies::padding_policy::Draw;

    use super::*;

    fn policies() -> Vec<PaddingPolicy> {
        let padded = |sizes: &[(u64, f64)]| {
            sizes.iter().map(|(bytes, probability)| PaddedSize { bytes: *bytes, probability: *probability }).collect()
        };
        let rows = vec![
            RandomRow { size: 7, padded: padded(&[(7, 0.25), (60, 0.75)]) },
            RandomRow { size: 40, padded: padded(&[(50, 1.0)]) },
            RandomRow { size: 45, padded: padded(&[(60, 1.0)]) },
        ];
        vec![
            PaddingPolicy::None,
            PaddingPolicy::Multiple { bytes: 16 },
            PaddingPolicy::PowersOfTwo,
            PaddingPolicy::Padme,
            PaddingPolicy::Tls13Multiple { bytes: 100 },
            PaddingPolicy::Random { most: 9, draw: Draw::Keyed },
            PaddingPolicy::Constant { bytes: 70 },
            PaddingPolicy::Table { buckets: vec![10, 30, 31] },
            PaddingPolicy::Map { sizes: vec![[4, 30], [9, 20], [20, 30], [28, 28]] },
            PaddingPolicy::RandomTable { rows, draw: Draw::Independent },
        ]
    }

    #[test]
    fn sizes_before_are_exactly_those_that_are_padded_to_a_size() {
        for policy in policies() {
            for padded in 0..200 {
                let leads = |size: &u64| policy.padded_sizes(*size).iter().any(|possible| possible.bytes == padded);
                let found: Vec<u64> = (0..=padded).filter(leads).collect();
                let hull = found.first().zip(found.last()).map(|(first, last)| [*first, *last]);
                assert_eq!(policy.sizes_before(padded), hull, "{policy:?} to {padded}");
            }
        }
    }

    #[test]
    fn probabilities_are_those_of_padded_sizes() {
        for policy in policies() {
            for size in 0..100 {
                let sum: f64 = (0..400).map(|padded| policy.probability(size, padded)).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{policy:?} of {size}: {sum}");
                for PaddedSize { bytes, probability } in policy.padded_sizes(size) {
                    assert!((policy.probability(size, bytes) - probability).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn large_sizes_are_found_at_once() {
        assert_eq!(PaddingPolicy::Constant { bytes: 1 << 30 }.sizes_before(1 << 30), Some([1, 1 << 30]));
        assert_eq!(PaddingPolicy::Padme.sizes_before(1 << 40), Some([(1 << 40) - (1 << 33) + 1, 1 << 40]));
        assert_eq!(PaddingPolicy::None.sizes_before(1 << 60), Some([1 << 60; 2]));
    }
}
