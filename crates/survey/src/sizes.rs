//! The sizes of messages: how many are in each range, and the exact ones as far as they fit.

use std::collections::BTreeMap;

/// The most exact sizes that are counted; all are in the ranges.
const MAX_EXACT: usize = 48;

/// Where each range but the first begins, in bytes.
pub(crate) const RANGES: [u64; 9] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    ranges: [u64; RANGES.len() + 1],
    exact: BTreeMap<u64, u64>,
    pub(crate) other: u64,
}

impl Sizes {
    pub(crate) fn add(&mut self, size: u64) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
        let range = RANGES.partition_point(|from| *from <= size);
        if let Some(count) = self.ranges.get_mut(range) {
            *count = count.saturating_add(1);
        }
        self.add_exact(size, 1);
    }

    fn add_exact(&mut self, size: u64, times: u64) {
        if self.exact.len() < MAX_EXACT || self.exact.contains_key(&size) {
            let count = self.exact.entry(size).or_default();
            *count = count.saturating_add(times);
        } else {
            self.other = self.other.saturating_add(times);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.other = self.other.saturating_add(other.other);
        for (count, more) in self.ranges.iter_mut().zip(other.ranges) {
            *count = count.saturating_add(more);
        }
        for (size, times) in &other.exact {
            self.add_exact(*size, *times);
        }
    }

    /// How many messages are smaller than a number of bytes, which is where a range begins.
    pub(crate) fn below(&self, bytes: u64) -> u64 {
        let ranges = RANGES.partition_point(|from| *from <= bytes);
        self.ranges.iter().take(ranges).sum()
    }

    /// The ranges with their first and last size, `None` for no last, and how many messages are in each.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, Option<u64>, u64)> {
        let firsts = std::iter::once(0).chain(RANGES);
        let lasts = RANGES.iter().map(|next| Some(next - 1)).chain([None]);
        firsts.zip(lasts).zip(self.ranges).map(|((first, last), count)| (first, last, count))
    }

    pub(crate) fn most_frequent(&self) -> Vec<(u64, u64)> {
        let mut sizes: Vec<(u64, u64)> = self.exact.iter().map(|(size, times)| (*size, *times)).collect();
        sizes.sort_by_key(|(size, times)| (std::cmp::Reverse(*times), *size));
        sizes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_hold_what_is_between_their_ends() {
        let mut sizes = Sizes::default();
        for size in [0, 31, 32, 63, 64, 8191, 8192, u64::MAX] {
            sizes.add(size);
        }
        let filled: Vec<_> = sizes.ranges().filter(|(_, _, count)| *count > 0).collect();
        let expected = [(0, Some(31), 2), (32, Some(63), 2), (64, Some(127), 1), (4096, Some(8191), 1)];
        assert_eq!(filled, [&expected[..], &[(8192, None, 2)]].concat());
        assert_eq!((sizes.below(32), sizes.below(64), sizes.below(8192)), (2, 4, 6));
    }

    proptest! {
        #[test]
        fn all_messages_are_counted_however_many_sizes_there_are(
            one in prop::collection::vec(0_u64..20_000, 0..200), other in prop::collection::vec(0_u64..20_000, 0..200),
        ) {
            let counted = |list: &[u64]| {
                let mut sizes = Sizes::default();
                for size in list {
                    sizes.add(*size);
                }
                sizes
            };
            let mut merged = counted(&one);
            merged.merge(&counted(&other));
            let all = (one.len() + other.len()) as u64;
            prop_assert_eq!(merged.count, all);
            prop_assert_eq!(merged.ranges().map(|(_, _, count)| count).sum::<u64>(), all);
            let exact: Vec<(u64, u64)> = merged.most_frequent();
            prop_assert!(exact.len() <= MAX_EXACT);
            prop_assert_eq!(exact.iter().map(|(_, times)| times).sum::<u64>() + merged.other, all);
        }
    }
}
