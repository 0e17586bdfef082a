//! What the merged stream has of each flow, or will have within the window: other taps fill only what is not in here.

use std::collections::{HashMap, VecDeque};
use std::iter;
use std::ops::Range;

use blake3::Hasher;
use sizeleak_frame::{Direction, Segment};

/// Ranges are known for at least this long after they were seen, in nanoseconds, unless there are too many: retransmissions
/// come later than the window is long.
const RANGES_NS: u64 = 60_000_000_000;

/// So many ranges are remembered at least; a direction of a flow counts as several.
const MAX_RANGES: usize = 1 << 18;

/// What a direction of a flow takes, in ranges.
const DIRECTION_COST: usize = 16;

/// After so many bytes of a direction, its sequence numbers might repeat before the ranges are forgotten.
const MAX_BYTES: u64 = 1 << 30;

/// So many keys are remembered at most.
const MAX_KEYS: usize = 1 << 17;

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
            if self.keys_in_order.len() > MAX_KEYS {
                self.forget_first_key();
            }
        }
    }

    fn add_range(&mut self, segment: &Segment<'_>, position_ns: i64) {
        let payload = &mut self.payload;
        if payload.cost > MAX_RANGES || payload.since_ns.abs_diff(position_ns) > RANGES_NS {
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
        if direction.bytes > MAX_BYTES {
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

/// So many bytes of a datagram tell it from others: more than the header of a record of DTLS, and no more than a snaplen
/// of 96 leaves behind the headers of IPv6 and UDP.
const DATAGRAM_BYTES: usize = 32;

/// A digest of everything about a segment that does not depend on where it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentKey(u64);

impl SegmentKey {
    /// The key of a segment: of TCP by its header, of UDP by the beginning of its payload. Retransmissions have the key
    /// of the first transmission unless their acknowledgement differs.
    pub(crate) fn of(segment: &Segment<'_>) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&segment.flow.to_le_bytes());
        hasher.update(&[segment.direction.number(), segment.flags]);
        hasher.update(&segment.length.to_le_bytes());
        if is_datagram(segment) {
            hasher.update(segment.payload.get(..DATAGRAM_BYTES).unwrap_or(segment.payload));
        } else {
            hasher.update(&segment.sequence.to_le_bytes());
            hasher.update(&segment.acknowledgement.unwrap_or_default().to_le_bytes());
        }
        let digest = hasher.finalize();
        Self(digest.as_bytes().iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte)))
    }
}

/// Whether a row of segments is a UDP datagram: those have no flags, segments of TCP have one at least.
pub(crate) fn is_datagram(segment: &Segment<'_>) -> bool {
    segment.flags == 0
}

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

/// A part of a segment's payload, as if it had been sent alone. Only a part from the first byte on has the SYN.
pub(crate) fn part<'a>(segment: &Segment<'a>, range: &Range<u32>) -> Segment<'a> {
    let length = range.end.saturating_sub(range.start);
    let captured = segment.payload.get(range.start as usize..).unwrap_or_default();
    let payload = captured.get(..length as usize).unwrap_or(captured);
    if range.start == 0 {
        return Segment { length, payload, ..*segment };
    }
    // Without any flag it would be a datagram.
    let flags = Some(segment.flags & !Segment::SYN).filter(|flags| *flags != 0).unwrap_or(Segment::PSH);
    Segment { sequence: first_byte(segment).wrapping_add(range.start), length, payload, flags, ..*segment }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_frame::Direction;

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
        assert!(directions < 2 * MAX_RANGES / DIRECTION_COST + 4 && known.keys.len() <= MAX_KEYS, "{directions}");
        assert_eq!(known.missing(&segment(100 + 299_997, 3)), one_part(1..3));
        known.add(&segment(0, u32::MAX), 0);
        known.add(&segment(0, 1), 0);
        assert_eq!(known.payload.directions.len(), 1, "numbers may repeat");
    }

    const SEGMENT: Segment<'_> = Segment {
        time_ns: 5,
        flow: 1,
        direction: Direction::ToGateway,
        sequence: 7,
        flags: Segment::ACK,
        length: 40,
        payload: &[3; 40],
        acknowledgement: Some(9),
    };

    #[test]
    fn key_is_the_same_at_another_time_and_with_another_snaplen() {
        let cut = Segment { time_ns: 99, payload: &[3; 2], ..SEGMENT };
        assert_eq!(SegmentKey::of(&cut), SegmentKey::of(&SEGMENT));
        let datagram = Segment { flags: 0, acknowledgement: None, ..SEGMENT };
        let cut = Segment { time_ns: 99, payload: &[3; DATAGRAM_BYTES], ..datagram };
        assert_eq!(SegmentKey::of(&cut), SegmentKey::of(&datagram));
    }

    #[test]
    fn key_differs_where_the_header_or_the_datagram_does() {
        let others = [
            Segment { flow: 2, ..SEGMENT },
            Segment { direction: Direction::FromGateway, ..SEGMENT },
            Segment { sequence: 8, ..SEGMENT },
            Segment { acknowledgement: Some(10), ..SEGMENT },
            Segment { flags: Segment::ACK | Segment::PSH, ..SEGMENT },
            Segment { length: 41, ..SEGMENT },
            Segment { flags: 0, payload: &[4; 40], ..SEGMENT },
            Segment { flags: 0, payload: &[3; 40], ..SEGMENT },
        ];
        let keys: std::collections::BTreeSet<_> = others.iter().chain([&SEGMENT]).map(SegmentKey::of).collect();
        assert_eq!(keys.len(), others.len() + 1);
    }

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

    #[test]
    fn part_of_a_segment_has_its_bytes_as_far_as_they_were_captured() {
        let (direction, flags) = (Direction::ToGateway, Segment::SYN);
        let payload = &[0, 1, 2, 3][..];
        let whole = Segment {
            time_ns: 1,
            flow: 2,
            direction,
            sequence: u32::MAX,
            flags,
            length: 6,
            payload,
            acknowledgement: None,
        };
        let first = part(&whole, &(0..2));
        assert_eq!(
            (first.sequence, first.flags, first.length, first.payload),
            (u32::MAX, Segment::SYN, 2, &[0, 1][..])
        );
        let middle = part(&whole, &(3..5));
        assert_eq!((middle.sequence, middle.flags, middle.length, middle.payload), (3, Segment::PSH, 2, &[3][..]));
        assert!(part(&whole, &(5..6)).payload.is_empty());
    }
}
