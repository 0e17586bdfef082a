//! A part of a segment.

use std::ops::Range;

use sizeleak_frame::Segment;

use crate::tap_streams::known_traffic::first_byte;

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
    use sizeleak_frame::Direction;

    use super::*;

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
