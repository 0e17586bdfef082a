//! Bytes that a capture lacks behind those that were seen are said where two packets confirm them.

use sizeleak_frame::{Frame, Segment};

use super::odd_packets::{FROM, TO, one_record_a_segment, payload, pushed};
use super::wire::{MILLISECOND, Noise, OwnedSegment, empty, notices, records, segment, segments, size, stream, syn};

#[test]
fn bytes_missing_before_an_acknowledged_fin_are_said() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300)];
    let bytes = stream(&lengths, &mut Noise(23));
    for first in [1000, u32::MAX - 400] {
        let end = first.wrapping_add(bytes.len() as u32);
        let at = |offset: usize| first.wrapping_add(offset as u32);
        let sent = |until: usize| {
            let opened = [syn(FROM, first.wrapping_sub(1), 0), syn(TO, 4999, 0)];
            let data = segments(FROM, first, &bytes[..until], 150);
            [&opened[..], &data, &[empty(FROM, Segment::FIN, end, 5000, 100 * MILLISECOND)]].concat()
        };
        let acknowledged = |until: usize| {
            [sent(until), vec![empty(TO, Segment::FIN, 5000, end.wrapping_add(1), 120 * MILLISECOND)]].concat()
        };
        let (whole, last, inside) = (bytes.len(), bytes.len() - 305, bytes.len() - 200);
        assert_eq!((notices(&size(&acknowledged(whole))), payload(&acknowledged(whole))), (vec![], (680, 0)));
        // The last record, the last two, and the end of the last one, whose length is known.
        for (until, records_left, lost) in [(last, 3, 305), (last - 205, 2, 510), (last - 203, 2, 510), (inside, 4, 0)]
        {
            let rows = acknowledged(until);
            let frames = size(&rows);
            assert_eq!(records(&frames, FROM), lengths[..records_left], "{until}");
            assert_eq!(
                (payload(&rows), notices(&frames).first().map(String::as_str)),
                ((680, lost), Some("gap")),
                "{until}"
            );
        }
        // Whoever forges a FIN gets no such acknowledgement.
        assert_eq!((notices(&size(&sent(last))), payload(&sent(last))), (vec![], (375, 0)));
        let denied = [sent(last), vec![empty(TO, 0, 5000, at(last), 120 * MILLISECOND)]].concat();
        assert_eq!((notices(&size(&denied)), payload(&denied)), (vec![], (375, 0)));
        // What is captured behind it is not missing.
        let late = segment(FROM, at(last), &bytes[last..], 130 * MILLISECOND);
        let rows = [acknowledged(last), vec![late]].concat();
        assert_eq!((records(&size(&rows), FROM), payload(&rows)), (lengths.to_vec(), (680, 0)));
    }
}

#[test]
fn bytes_missing_together_with_their_fin_are_said() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300)];
    let bytes = stream(&lengths, &mut Noise(25));
    let answer = stream(&[(23, 70)], &mut Noise(26));
    for first in [1000, u32::MAX - 400] {
        let end = first.wrapping_add(bytes.len() as u32);
        let at = |offset: usize| first.wrapping_add(offset as u32);
        let rows = |until: usize, behind: &[OwnedSegment]| {
            let opened = [syn(FROM, first.wrapping_sub(1), 0), syn(TO, 4999, 0)];
            let greeting = pushed(segment(TO, 5000, &answer, MILLISECOND));
            let data = segments(FROM, first, &bytes[..until], 150);
            [&opened[..], &[OwnedSegment { acknowledgement: Some(first), ..greeting }], &data, behind].concat()
        };
        let acknowledging = |number: u32, ms: i64| empty(TO, 0, 5075, number, ms * MILLISECOND);
        let closing = |number: u32, ms: i64| empty(TO, Segment::FIN, 5075, number, ms * MILLISECOND);
        let behind_fin = end.wrapping_add(1);
        let last = empty(FROM, 0, behind_fin, 5076, 130 * MILLISECOND);
        let fin = empty(FROM, Segment::FIN, end, 5075, 110 * MILLISECOND);
        let reset = empty(FROM, Segment::RST, end, 5075, 130 * MILLISECOND);
        let goes_on = pushed(segment(TO, 5075, &answer, 130 * MILLISECOND));
        let goes_on = OwnedSegment { acknowledgement: Some(end), ..goes_on };
        // Two packets say it. Where no number is without the FIN, that counts as a byte.
        let endings = [
            (vec![acknowledging(behind_fin, 110), closing(behind_fin, 111)], 1),
            (vec![acknowledging(end, 110), acknowledging(behind_fin, 111), closing(behind_fin, 112)], 1),
            (vec![acknowledging(end, 110), closing(behind_fin, 111)], 0),
            (vec![closing(behind_fin, 111), last.clone()], 1),
            (vec![fin.clone(), closing(behind_fin, 111), last.clone()], 0),
            (vec![closing(behind_fin, 109), fin, last.clone()], 0),
            (vec![acknowledging(end, 110), reset.clone()], 0),
            (vec![acknowledging(at(200), 109), acknowledging(end, 110), acknowledging(end, 111)], 0),
            (vec![goes_on.clone()], 0),
        ];
        let (until, inside) = (bytes.len() - 305, bytes.len() - 200);
        for (ending, more) in &endings {
            let missing = rows(until, ending);
            let frames = size(&missing);
            assert_eq!(records(&frames, FROM), lengths[..3], "{ending:?}");
            assert_eq!(notices(&frames).first().map(String::as_str), Some("gap"), "{ending:?}");
            let answers = records(&frames, TO).len() as u64 * 75;
            assert_eq!(payload(&missing), (680 + more + answers, 305 + more), "{ending:?}");
            // Of a record whose header was seen, nothing is lost.
            let missing = rows(inside, ending);
            assert_eq!((records(&size(&missing), FROM), payload(&missing).1), (lengths.to_vec(), *more), "{ending:?}");
            assert_eq!(notices(&size(&missing)).first().map(String::as_str), Some("gap"), "{ending:?}");
            // Another connection on the same ports is not missing what the first one is.
            let next = [syn(FROM, 70_000, 200 * MILLISECOND), syn(TO, 90_000, 201 * MILLISECOND)];
            let next = [&next[..], &segments(FROM, 70_001, &stream(&lengths, &mut Noise(27)), 150)].concat();
            let both = [missing, next.into_iter().map(|row| later(row, 200)).collect()].concat();
            let frames = size(&both);
            assert_eq!(records(&frames, FROM), [lengths, lengths].concat(), "{ending:?}");
            assert_eq!(notices(&frames).first().map(String::as_str), Some("gap"), "{ending:?}");
            // What comes late is not missing, nor is a FIN alone.
            let late = segment(FROM, at(until), &bytes[until..], 140 * MILLISECOND);
            let whole = [rows(until, ending), vec![late]].concat();
            assert_eq!((records(&size(&whole), FROM), payload(&whole).1), (lengths.to_vec(), 0), "{ending:?}");
            assert_eq!(notices(&size(&rows(bytes.len(), ending))), Vec::<String>::new(), "{ending:?}");
        }
        // One packet may be forged, and whoever sends several says nothing without the other side.
        let alone = [vec![acknowledging(end, 110)], vec![reset.clone()], vec![reset, last.clone(), last]];
        for ending in alone {
            let rows = rows(until, &ending);
            assert_eq!((notices(&size(&rows)), payload(&rows)), (vec![], (450, 0)), "{ending:?}");
        }
        // Nor do the numbers of another connection, whose first data was not captured.
        let elsewhere = at(600_000);
        let others = [
            syn(FROM, elsewhere.wrapping_sub(1), 200 * MILLISECOND),
            OwnedSegment { flags: Segment::SYN | Segment::ACK, ..empty(TO, 0, 90_000, elsewhere, 201 * MILLISECOND) },
            empty(FROM, 0, elsewhere, 90_001, 202 * MILLISECOND),
            empty(TO, 0, 90_001, at(600_100), 203 * MILLISECOND),
            empty(TO, Segment::FIN, 90_001, at(600_100), 204 * MILLISECOND),
        ];
        let rows = rows(bytes.len(), &others);
        assert_eq!((notices(&size(&rows)), payload(&rows)), (vec![], (755, 0)));
    }
}

#[test]
fn bytes_missing_at_the_end_of_a_capture_of_one_direction_are_said() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300)];
    let bytes = stream(&lengths, &mut Noise(29));
    for first in [1000, u32::MAX - 400] {
        let end = first.wrapping_add(bytes.len() as u32);
        let until = bytes.len() - 305;
        let packet = |flags, back: u32, ms: i64| empty(FROM, flags, end.wrapping_sub(back), 5075, ms * MILLISECOND);
        let fin = packet(Segment::FIN, 0, 110);
        let behind_fin = empty(FROM, 0, end.wrapping_add(1), 5075, 111 * MILLISECOND);
        // Two packets say it, and of what only one says nothing is known.
        let endings = [
            (vec![fin.clone(), fin.clone()], 305),
            (vec![fin.clone(), behind_fin.clone()], 305),
            (vec![behind_fin, fin.clone()], 305),
            (vec![packet(0, 0, 109), fin.clone()], 305),
            (vec![packet(0, 5, 108), fin.clone()], 300),
            (vec![packet(0, 0, 109), packet(Segment::RST, 0, 110)], 305),
            (vec![fin], 0),
            (vec![packet(0, 0, 109)], 0),
            (vec![], 0),
        ];
        for (ending, missing) in endings {
            let data = segments(FROM, first, &bytes[..until], 150);
            let data = data.into_iter().map(|row| OwnedSegment { acknowledgement: Some(5075), ..row });
            let mut rows: Vec<_> = [syn(FROM, first.wrapping_sub(1), 0)].into_iter().chain(data).collect();
            rows.extend(ending.iter().cloned());
            let expected: &[&str] = if missing > 0 { &["gap", "loss"] } else { &[] };
            assert_eq!(notices(&size(&rows)), expected, "{ending:?}");
            assert_eq!(payload(&rows), (375 + missing, missing), "{ending:?}");
            // With the other side's data, that has to confirm it.
            rows.insert(1, syn(TO, 4999, 0));
            rows.insert(2, pushed(segment(TO, 5000, &stream(&[(23, 70)], &mut Noise(26)), MILLISECOND)));
            assert_eq!(payload(&rows).1, 0, "{ending:?}");
        }
    }
}

#[test]
fn a_stream_that_goes_on_elsewhere_is_not_missing_what_was_acknowledged_before() {
    let mut noise = Noise(28);
    for back in [20_000_u32, 1_000_000, 3_000_000] {
        let (mut rows, mut next) = (vec![syn(FROM, 8_999_999, 0), syn(TO, 8_999_999, 0)], [9_000_000_u32; 2]);
        for at in 0..24_i64 {
            if at == 12 {
                next = next.map(|number| number - back);
            }
            let bytes = stream(&[(23, 100 + at as u16)], &mut noise);
            let (own, other, direction) = if at % 2 == 0 { (0, 1, FROM) } else { (1, 0, TO) };
            let row = pushed(segment(direction, next[own], &bytes, at * 5_000 * MILLISECOND));
            rows.push(OwnedSegment { acknowledgement: Some(next[other]), ..row });
            next[own] += bytes.len() as u32;
        }
        let frames = size(&rows);
        let says_bytes = |frame: &&Frame| matches!(frame, Frame::Notice(notice) if notice.bytes.is_some());
        assert_eq!(frames.iter().filter(says_bytes).count(), 0, "{back}");
        assert_eq!(records(&frames, FROM).len() + records(&frames, TO).len(), 24, "{back}");
    }
}

#[test]
fn one_wrong_acknowledgement_number_says_of_nothing_that_it_is_missing() {
    let (mut rows, mut next) = (vec![syn(FROM, 999, 0), syn(TO, 4999, 0)], [1000_u32, 5000]);
    for at in 0..24_i64 {
        let bytes = stream(&[(23, 100 + at as u16)], &mut Noise(31));
        let (own, other, direction) = if at % 2 == 0 { (0, 1, FROM) } else { (1, 0, TO) };
        let row = pushed(segment(direction, next[own], &bytes, (at + 1) * MILLISECOND));
        rows.push(OwnedSegment { acknowledgement: Some(next[other]), ..row });
        next[own] += bytes.len() as u32;
    }
    rows.push(empty(FROM, Segment::FIN, next[0], next[1], 30 * MILLISECOND));
    rows.push(empty(TO, Segment::FIN, next[1], next[0] + 1, 31 * MILLISECOND));
    rows.push(empty(FROM, 0, next[0] + 1, next[1] + 1, 32 * MILLISECOND));
    assert_eq!((notices(&size(&rows)), payload(&rows).1), (vec![], 0));
    // Of data at first, in the middle and near the end, and of packets without.
    for at in [2, 3, 12, 13, 22, 23, 26, 27, 28] {
        for wrong in [2, 60_000, 8 << 20, 1 << 30, -1, -600] {
            let mut rows = rows.clone();
            let number = &mut rows[at].acknowledgement;
            *number = number.map(|right| right.wrapping_add_signed(wrong));
            let frames = size(&rows);
            assert_eq!((notices(&frames), payload(&rows).1), (vec![], 0), "{at} {wrong}");
            assert_eq!(records(&frames, FROM).len() + records(&frames, TO).len(), 24, "{at} {wrong}");
        }
    }
}

#[test]
fn bytes_that_come_too_late_are_lost_once() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300), (23, 64), (23, 80), (23, 90), (23, 70)];
    let data = one_record_a_segment(&lengths);
    let opened = [syn(FROM, 999, 0), syn(TO, 4999, 0)];
    for missing in 1..4 {
        let before = &data[..missing];
        let behind: Vec<_> = data[missing + 1..].iter().map(|row| later(row.clone(), 10_000)).collect();
        let [late, more] = [20_000, 30_000].map(|wait| later(data[missing].clone(), wait));
        let ends = later(one_record_a_segment(&[lengths.as_slice(), &[(23, 50)]].concat())[8].clone(), 40_000);
        // Once, and sent again.
        for late in [vec![late.clone()], vec![late, more]] {
            let rows = [&opened[..], before, &behind, &late, std::slice::from_ref(&ends)].concat();
            let mut expected = [&lengths[..], &[(23, 50)]].concat();
            let lost = 5 + u64::from(expected.remove(missing).1);
            let frames = size(&rows);
            assert_eq!((records(&frames, FROM), payload(&rows).1), (expected, lost), "{missing}");
            assert_eq!(notices(&frames), ["gap", "loss"], "{missing}");
        }
    }
}

/// The same segment later.
fn later(row: OwnedSegment, milliseconds: i64) -> OwnedSegment {
    OwnedSegment { time_ns: row.time_ns + milliseconds * MILLISECOND, ..row }
}
