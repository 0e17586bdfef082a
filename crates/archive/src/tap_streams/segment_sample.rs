//! A sample of the segments of a tap, which is of the same segments at every tap.

use std::collections::BTreeMap;

use sizeleak_frame::Segment;

use crate::tap_streams::segment_key::SegmentKey;

/// At most this many segments are in a sample, which takes about 5 MB.
const MOST_SAMPLED: usize = 1 << 17;

/// The times of those segments whose keys are the least. Taps that saw the same traffic sample the same segments, however
/// much there is of it.
#[derive(Debug, Default)]
pub(crate) struct SegmentSample {
    /// The time of each; `None` if the tap saw several segments of one key, which tell nothing about its clock.
    times: BTreeMap<SegmentKey, Option<i64>>,
}

impl SegmentSample {
    /// Adds a segment, if it has payload: empty ones are often alike.
    pub(crate) fn add(&mut self, segment: &Segment<'_>) {
        if segment.length == 0 {
            return;
        }
        let seen = self.times.entry(SegmentKey::of(segment)).and_modify(|time| *time = None);
        seen.or_insert(Some(segment.time_ns));
        if self.times.len() > MOST_SAMPLED {
            self.times.pop_last();
        }
    }

    /// The times of segments that both taps saw once: here, and there.
    pub(crate) fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (i64, i64)> {
        self.times.iter().filter_map(|(key, time)| Some(((*time)?, (*other.times.get(key)?)?)))
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction;

    use super::*;

    fn segment(sequence: u32, time_ns: i64) -> Segment<'static> {
        Segment {
            time_ns,
            flow: 1,
            direction: Direction::ToGateway,
            sequence,
            flags: Segment::ACK,
            length: 1,
            payload: &[1],
            acknowledgement: None,
        }
    }

    #[test]
    fn segments_that_both_saw_once_are_common() {
        let (mut one, mut other) = (SegmentSample::default(), SegmentSample::default());
        (0..5).for_each(|number| one.add(&segment(number, number.into())));
        (2..9).for_each(|number| other.add(&segment(number, i64::from(number) + 100)));
        other.add(&segment(3, 500));
        let mut common: Vec<_> = one.common(&other).collect();
        common.sort_unstable();
        assert_eq!(common, [(2, 102), (4, 104)]);
    }

    #[test]
    fn samples_of_much_traffic_are_bounded_and_have_the_same_segments() {
        let (mut one, mut other) = (SegmentSample::default(), SegmentSample::default());
        let all = 3 * MOST_SAMPLED as u32;
        (0..all).for_each(|number| one.add(&segment(number, 0)));
        (0..all).rev().for_each(|number| other.add(&segment(number, 0)));
        assert_eq!((one.times.len(), one.common(&other).count()), (MOST_SAMPLED, MOST_SAMPLED));
        // A segment that was dropped does not come back by its repetition.
        (0..all).for_each(|number| one.add(&segment(number, 0)));
        assert_eq!(one.common(&other).count(), 0);
    }
}
