//! What the merged stream has of each flow, or will have within the window: other taps fill only what is not in here.

use std::collections::{HashMap, VecDeque};
use std::iter;
use std::ops::Range;

use sizeleak_frame::{Direction, Segment};

use crate::tap_streams::segment_key::{SegmentKey, is_datagram};
use crate::tap_streams::sequence_ranges::SequenceRanges;

/// Ranges are known for at least this long after they were seen, in nanoseconds, unless there are too many: retransmissions
/// come later than the window is long.
const RANGES_NS: u64 = 60_000_000_000;

/// So many ranges are remembered at least; a direction of a flow counts as several.
const MOST_RANGES: usize = 1 << 18;

/// What a direction of a flow takes, in ranges.
const DIRECTION_COST: usize = 16;

/// After so many bytes of a direction, its sequence numbers might repeat before the ranges are forgotten.
const MOST_BYTES: u64 = 1 << 30;

/// So many keys are remembered at most.
const MOST_KEYS: usize = 1 << 17;

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct KnownTraffic {
    payload: Generation,
    earlier_payload: Generation,
    /// Datagrams and segments without payload, with the last position in time of each.
    keys: HashMap<SegmentKey, i64>,
    keys_in_order: VecDeque<(i64, SegmentKey)>,
}

/// Ranges of payload that were seen within some time.
#[derive(Debug, Default)]
struct Generation {
    directions: HashMap<(u64, Direction), DirectionRanges>,
    cost: usize,
    since_ns: i64,
}

#[derive(Debug, Default)]
struct DirectionRanges {
    ranges: SequenceRanges,
    bytes: u64,
}

/// The sequence number of the first byte of payload: a SYN takes one itself.
pub(crate) fn first_byte(segment: &Segment<'_>) -> u32 {
    segment.sequence.wrapping_add((segment.flags & Segment::SYN != 0).into())
}

/// Whether a segment is compared by the range of its payload.
fn has_range(segment: &Segment<'_>) -> bool {
    segment.length > 0 && !is_datagram(segment)
}

impl KnownTraffic {
    /// Adds a segment at this position in time.
    pub(crate) fn add(&mut self, segment: &Segment<'_>, position_ns: i64) {
        if has_range(segment) {
            self.add_range(segment, position_ns);
        } else {
            let key = SegmentKey::of(segment);
            self.keys.insert(key, position_ns);
            self.keys_in_order.push_back((position_ns, key));
            if self.keys_in_order.len() > MOST_KEYS {
                self.forget_first_key();
            }
        }
    }

    fn add_range(&mut self, segment: &Segment<'_>, position_ns: i64) {
        let payload = &mut self.payload;
        if payload.cost > MOST_RANGES || payload.since_ns.abs_diff(position_ns) > RANGES_NS {
            self.earlier_payload = std::mem::take(payload);
            payload.since_ns = position_ns;
        }
        let key = (segment.flow, segment.direction);
        let before = payload.directions.len();
        let direction = payload.directions.entry(key).or_default();
        let ranges_before = direction.ranges.len();
        direction.ranges.add(first_byte(segment), segment.length);
        direction.bytes = direction.bytes.saturating_add(segment.length.into());
        payload.cost += direction.ranges.len().saturating_sub(ranges_before);
        if direction.bytes > MOST_BYTES {
            payload.cost = usize::MAX;
        } else if payload.directions.len() > before {
            payload.cost = payload.cost.saturating_add(DIRECTION_COST);
        }
    }

    /// What a segment would add.
    pub(crate) fn missing(&self, segment: &Segment<'_>) -> Missing {
        if !has_range(segment) {
            return if self.keys.contains_key(&SegmentKey::of(segment)) { Missing::Nothing } else { Missing::All };
        }
        let key = (segment.flow, segment.direction);
        let (first, length) = (first_byte(segment), segment.length);
        let missing = match self.payload.directions.get(&key) {
            Some(known) => known.ranges.missing(first, length),
            None => iter::once(0..length).collect(),
        };
        let missing = match self.earlier_payload.directions.get(&key) {
            Some(known) => missing.into_iter().flat_map(|part| missing_of(&known.ranges, first, &part)).collect(),
            None => missing,
        };
        match &*missing {
            [] => Missing::Nothing,
            [all] if *all == (0..length) => Missing::All,
            _ => Missing::Parts(missing),
        }
    }

    /// Forgets datagrams and empty segments before this position: the same ones later are others.
    pub(crate) fn forget_keys_before(&mut self, position_ns: i64) {
        while self.keys_in_order.front().is_some_and(|(seen_ns, _)| *seen_ns < position_ns) {
            self.forget_first_key();
        }
    }

    fn forget_first_key(&mut self) {
        let Some((seen_ns, key)) = self.keys_in_order.pop_front() else { return };
        if self.keys.get(&key) == Some(&seen_ns) {
            self.keys.remove(&key);
        }
    }
}

/// What a segment would add to what is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is known.
    Nothing,
    /// Everything.
    All,
    /// These ranges of its payload, in bytes from the first one.
    Parts(Vec<Range<u32>>),
}

fn missing_of(ranges: &SequenceRanges, first: u32, part: &Range<u32>) -> Vec<Range<u32>> {
    let missing = ranges.missing(first.wrapping_add(part.start), part.end.saturating_sub(part.start));
    missing.into_iter().map(|range| part.start + range.start..part.start + range.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn segment(sequence: u32, length: u32) -> Segment<'static> {
        let (flow, direction, flags) = (1, Direction::ToGateway, Segment::ACK);
        Segment { time_ns: 0, flow, direction, sequence, flags, length, payload: &[], acknowledgement: None }
    }

    fn one_part(part: Range<u32>) -> Missing {
        Missing::Parts(iter::once(part).collect())
    }

    #[test]
    fn only_bytes_that_are_not_known_are_missing() {
        let mut known = KnownTraffic::default();
        known.add(&segment(100, 10), 0);
        known.add(&segment(120, 10), 0);
        assert_eq!(known.missing(&segment(100, 10)), Missing::Nothing);
        assert_eq!(known.missing(&segment(110, 10)), Missing::All);
        assert_eq!(known.missing(&segment(105, 30)), Missing::Parts(vec![5..15, 25..30]));
        assert_eq!(known.missing(&Segment { direction: Direction::FromGateway, ..segment(100, 10) }), Missing::All);
        assert_eq!(known.missing(&Segment { flow: 2, ..segment(100, 10) }), Missing::All);
        // The SYN takes a number before the payload.
        let opening = Segment { flags: Segment::SYN, ..segment(99, 11) };
        assert_eq!(known.missing(&opening), one_part(10..11));
    }

    #[test]
    fn bytes_are_known_for_a_minute_and_forgotten_after_two() {
        let mut known = KnownTraffic::default();
        known.add(&segment(100, 10), 10 * SECOND);
        known.add(&segment(110, 10), 75 * SECOND);
        assert_eq!(known.missing(&segment(95, 30)), Missing::Parts(vec![0..5, 25..30]));
        known.add(&segment(120, 10), 140 * SECOND);
        known.add(&segment(130, 10), 205 * SECOND);
        assert_eq!(known.missing(&segment(110, 30)), one_part(0..10));
    }

    #[test]
    fn datagrams_and_empty_segments_are_known_until_their_time_is_over() {
        let mut known = KnownTraffic::default();
        let datagram = Segment { flags: 0, ..segment(0, 20) };
        known.add(&datagram, 5);
        known.add(&segment(7, 0), 6);
        known.add(&datagram, 8);
        let other = Segment { payload: &[1], ..datagram };
        assert_eq!([datagram, segment(7, 0)].map(|it| known.missing(&it)), [Missing::Nothing, Missing::Nothing]);
        assert_eq!([other, segment(8, 0)].map(|it| known.missing(&it)), [Missing::All, Missing::All]);
        known.forget_keys_before(7);
        assert_eq!([datagram, segment(7, 0)].map(|it| known.missing(&it)), [Missing::Nothing, Missing::All]);
        known.forget_keys_before(9);
        assert_eq!(known.missing(&datagram), Missing::All);
        assert!(known.keys.is_empty());
    }

    #[test]
    fn known_traffic_is_bounded() {
        let mut known = KnownTraffic::default();
        for flow in 0..100_000 {
            known.add(&Segment { flow, ..segment(0, 9) }, 0);
            known.add(&Segment { flow, ..segment(0, 0) }, 0);
            known.add(&segment(100 + flow as u32 * 3, 1), 0);
        }
        let directions = known.payload.directions.len() + known.earlier_payload.directions.len();
        assert!(directions < 2 * MOST_RANGES / DIRECTION_COST + 4 && known.keys.len() <= MOST_KEYS, "{directions}");
        assert_eq!(known.missing(&segment(100 + 299_997, 3)), one_part(1..3));
        known.add(&segment(0, u32::MAX), 0);
        known.add(&segment(0, 1), 0);
        assert_eq!(known.payload.directions.len(), 1, "numbers may repeat");
    }
}
