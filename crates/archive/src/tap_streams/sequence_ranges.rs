//! Ranges of sequence numbers, which wrap around (RFC 9293, section 3.4).

use std::iter;
use std::ops::Range;

/// One more than the greatest sequence number.
const END: u64 = 1 << 32;

/// A set of sequence numbers.
#[derive(Debug, Default)]
pub(crate) struct SequenceRanges {
    /// In order, not adjacent, each within the numbers from 0 to [`END`].
    ranges: Vec<Range<u64>>,
}

impl SequenceRanges {
    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Adds so many numbers from the first one.
    pub(crate) fn add(&mut self, first: u32, length: u32) {
        for part in parts(first, length) {
            let begin = self.ranges.partition_point(|range| range.end < part.start);
            let end = self.ranges.partition_point(|range| range.start <= part.end);
            let touched = self.ranges.get(begin..end).unwrap_or_default();
            let start = touched.first().map_or(part.start, |range| range.start.min(part.start));
            let stop = touched.last().map_or(part.end, |range| range.end.max(part.end));
            self.ranges.splice(begin..end, iter::once(start..stop));
        }
    }

    /// Those of so many numbers from the first one that are not in the set: ranges of their distances from the first.
    pub(crate) fn missing(&self, first: u32, length: u32) -> Vec<Range<u32>> {
        let mut missing: Vec<Range<u32>> = Vec::new();
        let mut distance = 0;
        for part in parts(first, length) {
            let mut at = part.start;
            let begin = self.ranges.partition_point(|range| range.end <= part.start);
            for range in self.ranges.iter().skip(begin).take_while(|range| range.start < part.end) {
                if at < range.start {
                    missing.push(distance + (at - part.start) as u32..distance + (range.start - part.start) as u32);
                }
                at = range.end;
            }
            if at < part.end {
                missing.push(distance + (at - part.start) as u32..distance + (part.end - part.start) as u32);
            }
            distance += (part.end - part.start) as u32;
        }
        missing
    }
}

/// The numbers up to the greatest one, and those behind it, from 0.
fn parts(first: u32, length: u32) -> impl Iterator<Item = Range<u64>> {
    let (start, end) = (u64::from(first), u64::from(first) + u64::from(length));
    [start..end.min(END), 0..end.saturating_sub(END)].into_iter().filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_that_touch_are_one_and_numbers_wrap_around() {
        let mut ranges = SequenceRanges::default();
        ranges.add(u32::MAX - 9, 15);
        ranges.add(10, 10);
        assert_eq!(ranges.len(), 3, "two of them at the ends of the numbers");
        assert_eq!(ranges.missing(u32::MAX - 11, 40), [0..2, 17..22, 32..40]);
        ranges.add(5, 5);
        assert_eq!((ranges.len(), ranges.missing(u32::MAX - 9, 30)), (2, vec![]));
    }

    proptest! {
        #[test]
        fn numbers_are_missing_unless_they_were_added(
            added in prop::collection::vec((0u32..60, 0u32..9), 0..20), first in 0u32..60, length in 0u32..20,
            origin in prop_oneof![Just(7u32), Just(u32::MAX - 40)],
        ) {
            let mut ranges = SequenceRanges::default();
            for (at, length) in &added {
                ranges.add(origin.wrapping_add(*at), *length);
            }
            let is_in = |number: u32| added.iter().any(|(at, length)| (*at..at + length).contains(&number));
            let expected: Vec<u32> = (0..length).filter(|distance| !is_in(first + distance)).collect();
            let missing = ranges.missing(origin.wrapping_add(first), length);
            prop_assert_eq!(missing.into_iter().flatten().collect::<Vec<_>>(), expected);
        }
    }
}
