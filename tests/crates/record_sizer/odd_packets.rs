//! One odd packet decides nothing, and the share that is lost is true.

use super::wire::{
    MILLISECOND, Noise, OwnedSegment, notices, records, segment, segments, size, size_with, stream, syn,
};
use proptest::prelude::*;
use sizeleak_frame::{Direction, Frame, Segment};
use sizeleak_record_sizer::Options;

const TO: Direction = Direction::ToGateway;
const FROM: Direction = Direction::FromGateway;

/// An acknowledgement whose length counts zero bytes of Ethernet's padding.
fn padded(direction: Direction, sequence: u32, bytes: usize, time_ns: i64) -> OwnedSegment {
    segment(direction, sequence, &vec![0; bytes], time_ns)
}

fn pushed(row: OwnedSegment) -> OwnedSegment {
    OwnedSegment { flags: Segment::ACK | Segment::PSH, ..row }
}

/// The same segment of which the snaplen left this many bytes of payload.
fn cut(row: &OwnedSegment, bytes: usize) -> OwnedSegment {
    OwnedSegment { payload: row.payload[..bytes.min(row.payload.len())].to_vec(), ..row.clone() }
}

/// Bytes of payload, and those of them that were lost.
fn payload(rows: &[OwnedSegment]) -> (u64, u64) {
    let counters = size_with(&Options::default(), rows).1;
    let counter = |wanted| counters.iter().find(|(name, _)| *name == wanted).unwrap().1;
    (counter("payload_bytes"), counter("lost_bytes"))
}

/// A client's hello for `hub.example`, as long as one with a key of post-quantum cryptography. Its name comes first.
fn long_hello() -> Vec<u8> {
    let name = [&[0, 0, 0, 16, 0, 14, 0, 0, 11][..], b"hub.example"].concat();
    let key = [&[0, 51][..], &1500_u16.to_be_bytes(), &[7; 1500]].concat();
    let versions = [0, 43, 0, 3, 2, 3, 4];
    let extensions = [name, key, versions.to_vec()].concat();
    let body =
        [&[3, 3][..], &[9; 32], &[0, 0, 2, 0x13, 1, 1, 0], &(extensions.len() as u16).to_be_bytes(), &extensions];
    let body = body.concat();
    let message = [&[1, 0][..], &(body.len() as u16).to_be_bytes(), &body].concat();
    [&[22, 3, 1][..], &(message.len() as u16).to_be_bytes(), &message].concat()
}

fn server_hello() -> Vec<u8> {
    let body = [&[3, 3][..], &[8; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat();
    [&[22, 3, 3, 0, body.len() as u8 + 4, 2, 0, 0, body.len() as u8][..], &body].concat()
}

#[test]
fn padding_that_an_acknowledgement_counts_is_no_data() {
    let mut noise = Noise(5);
    let mut rows = vec![syn(TO, 999, 0)];
    let (mut sequence, mut all) = (1000_u32, Vec::new());
    for (at, bytes) in (1i64..).zip([6, 2, 6, 1, 4, 6]) {
        let time_ns = at * 5 * MILLISECOND;
        rows.push(padded(TO, sequence, bytes, time_ns));
        rows.push(padded(TO, sequence, bytes, time_ns + MILLISECOND));
        let record = (23, 100 + at as u16);
        let message = stream(&[record], &mut noise);
        rows.push(pushed(segment(TO, sequence, &message, time_ns + 2 * MILLISECOND)));
        sequence += message.len() as u32;
        all.push(record);
    }
    // The last ones are not followed by anything; a FIN has a sequence number of its own.
    rows.push(padded(TO, sequence, 6, 60 * MILLISECOND));
    rows.push(padded(TO, sequence + 1, 6, 61 * MILLISECOND));
    let frames = size(&rows);
    assert_eq!(records(&frames, TO), all);
    assert_eq!(notices(&frames), Vec::<String>::new());
    assert_eq!(payload(&rows).1, 0);
}

#[test]
fn padding_ahead_of_data_that_comes_late_is_no_data() {
    let mut noise = Noise(6);
    let all = [(23, 90), (23, 91), (23, 92)];
    let parts: Vec<_> = all.iter().map(|record| stream(&[*record], &mut noise)).collect();
    let at = |index: usize| 1000 + parts[..index].iter().map(Vec::len).sum::<usize>() as u32;
    let rows = [
        syn(TO, 999, 0),
        pushed(segment(TO, at(0), &parts[0], MILLISECOND)),
        padded(TO, at(2), 6, 2 * MILLISECOND),
        pushed(segment(TO, at(1), &parts[1], 3 * MILLISECOND)),
        pushed(segment(TO, at(2), &parts[2], 4 * MILLISECOND)),
    ];
    assert_eq!(records(&size(&rows), TO), all);
    // Of a connection that is seen from its middle, too.
    let later = [&[padded(TO, at(0), 6, 0)], &rows[1..2], &rows[3..]].concat();
    assert_eq!(records(&size(&later), TO), all);
}

/// As a program does that writes a hello byte by byte, whose padding is zeros.
#[test]
fn zeros_in_many_segments_are_no_gap_once_they_are_acknowledged() {
    let mut noise = Noise(8);
    let body = [&noise.bytes(40)[..], &[0; 300], &noise.bytes(60)].concat();
    let record = [&[23, 3, 3, 1, 144][..], &body].concat();
    let mut whole = [record.clone(), stream(&[(23, 70)], &mut noise)].concat();
    whole.splice(..0, stream(&[(23, 50)], &mut noise));
    for (bytes, silence_ms) in [(1, 0), (1, 5000), (2, 5000), (6, 5000)] {
        for acknowledged in [90, 101, 150, 303, 360] {
            let (mut rows, mut time_ns, mut is_silent) =
                (vec![syn(TO, 999, 0), syn(FROM, 4999, 0)], 0, silence_ms == 0);
            for row in segments(TO, 1000, &whole, bytes) {
                if row.sequence >= 1000 + acknowledged && !is_silent {
                    rows.push(empty(FROM, 0, 5000, row.sequence, time_ns));
                    time_ns += silence_ms * MILLISECOND;
                    is_silent = true;
                    // Meanwhile other traffic goes on.
                    rows.push(OwnedSegment { flow: 2, ..empty(FROM, 0, 5000, 1, time_ns) });
                }
                time_ns += MILLISECOND;
                rows.push(OwnedSegment { time_ns, ..row });
            }
            let frames = size(&rows);
            assert_eq!(records(&frames, TO), [(23, 50), (23, 400), (23, 70)], "{bytes} {acknowledged}");
            assert_eq!(notices(&frames), Vec::<String>::new(), "{bytes} {acknowledged}");
            assert_eq!(payload(&rows).1, 0);
        }
    }
}

#[test]
fn zeros_behind_a_record_in_the_same_segment_are_data() {
    let mut noise = Noise(7);
    let first = stream(&[(23, 90)], &mut noise);
    let last = [stream(&[(23, 91)], &mut noise), vec![0; 4]].concat();
    let at = 1000 + first.len() as u32;
    let rows = [
        syn(TO, 999, 0),
        pushed(segment(TO, 1000, &first, MILLISECOND)),
        segment(TO, at, &last, 2 * MILLISECOND),
        // Sent again with one byte less in front.
        segment(TO, at + 1, &last[1..], 3 * MILLISECOND),
    ];
    let frames = size(&rows);
    assert_eq!(records(&frames, TO), [(23, 90), (23, 91)]);
    assert_eq!(notices(&frames), ["truncated"]);
    // Behind a segment that comes late, the rest of one that is known by half.
    let (head, tail) = last.split_at(20);
    let late = [
        syn(TO, 999, 0),
        pushed(segment(TO, 1000, &first, MILLISECOND)),
        segment(TO, at + 20, tail, 2 * MILLISECOND),
        segment(TO, at, head, 3 * MILLISECOND),
    ];
    assert_eq!(records(&size(&late), TO), [(23, 90), (23, 91)]);
    assert_eq!(notices(&size(&late)), ["truncated"]);
}

proptest! {
    /// A few zeros without PSH that are data of a record stay data.
    #[test]
    fn zeros_inside_a_record_are_data(zeros in 1usize..9, before in 0usize..40, after in 1usize..40) {
        let body = [vec![1; before], vec![0; zeros], vec![2; after]].concat();
        let bytes = [&[23, 3, 3, 0, body.len() as u8][..], &body].concat();
        let cuts = [5 + before, 5 + before + zeros];
        let rows = [
            syn(TO, 999, 0),
            segment(TO, 1000, &bytes[..cuts[0]], MILLISECOND),
            segment(TO, 1000 + cuts[0] as u32, &bytes[cuts[0]..cuts[1]], 2 * MILLISECOND),
            pushed(segment(TO, 1000 + cuts[1] as u32, &bytes[cuts[1]..], 3 * MILLISECOND)),
        ];
        prop_assert_eq!(records(&size(&rows), TO), [(23, body.len() as u16)]);
        prop_assert_eq!(payload(&rows), (bytes.len() as u64, 0));
    }
}

/// Segments of two records each, of which the snaplen leaves the first one's header.
fn two_records_a_segment(captured: usize) -> (Vec<OwnedSegment>, u64, u64) {
    let mut noise = Noise(7);
    let (mut rows, mut sequence, mut first_records) = (vec![syn(TO, 999, 0)], 1000_u32, 0);
    for at in 1..40_i64 {
        let first = 200 + noise.below(300) as u16;
        let bytes = stream(&[(23, first), (23, 300)], &mut noise);
        first_records += 5 + u64::from(first);
        rows.push(cut(&pushed(segment(TO, sequence, &bytes, at * MILLISECOND)), captured));
        sequence += bytes.len() as u32;
    }
    (rows, u64::from(sequence - 1000), first_records)
}

#[test]
fn records_that_the_snaplen_hid_behind_the_first_of_a_segment_are_lost() {
    let (rows, sent, first_records) = two_records_a_segment(42);
    assert_eq!(records(&size(&rows), TO).len(), 39);
    assert_eq!(payload(&rows), (sent, sent - first_records));
    let (whole, sent, _) = two_records_a_segment(10_000);
    assert_eq!(payload(&whole), (sent, 0));
}

#[test]
fn missing_bytes_are_part_of_the_payload_and_those_of_a_known_record_are_not_lost() {
    let mut noise = Noise(8);
    let bytes = stream(&[(23, 5000), (23, 2000), (23, 400)], &mut noise);
    let mut rows = segments(TO, 1000, &bytes, 1000);
    rows.insert(0, syn(TO, 999, 0));
    let sent = bytes.len() as u64;
    // Inside the body of the first record.
    let within: Vec<_> = rows.iter().filter(|row| row.sequence != 3000).cloned().collect();
    assert_eq!((records(&size(&within), TO).len(), payload(&within)), (3, (sent, 0)));
    // The header of the second one, behind the last five bytes of the first.
    let header: Vec<_> = rows.iter().filter(|row| row.sequence != 6000).cloned().collect();
    assert_eq!(records(&size(&header), TO), [(23, 5000), (23, 400)]);
    assert_eq!(payload(&header), (sent, 2005));
}

#[test]
fn segments_that_complete_records_lose_nothing_where_the_others_were_not_exported() {
    // As a display filter for TLS exports them: of two segments, the one in which the record ends.
    let mut noise = Noise(9);
    let (mut rows, mut sequence) = (Vec::new(), 1000_u32);
    for at in 1..30_i64 {
        let bytes = stream(&[(23, 120), (23, 60)], &mut noise);
        rows.push(pushed(segment(TO, sequence, &bytes, at * 4_000 * MILLISECOND)));
        sequence += bytes.len() as u32;
    }
    let sent = u64::from(sequence - 1000);
    assert_eq!((records(&size(&rows), TO).len(), payload(&rows)), (58, (sent, 0)));
}

#[test]
fn the_first_half_of_a_hello_names_the_server() {
    let hello = long_hello();
    let mut noise = Noise(10);
    let data = stream(&[(20, 1), (23, 36 + 17), (23, 80), (23, 81)], &mut noise);
    let reply = [server_hello(), stream(&[(20, 1), (23, 900), (23, 250), (23, 250)], &mut noise)].concat();
    for snaplen in [None, Some(600)] {
        let mut rows = vec![syn(FROM, 999, 0), syn(TO, 4999, 0)];
        let mut first = segments(FROM, 1000, &hello, 1400);
        match snaplen {
            None => first.truncate(1),
            Some(bytes) => first = first.iter().map(|row| cut(row, bytes)).collect(),
        }
        rows.extend(first);
        let answered = 1000 + hello.len() as u32;
        let acknowledging = |row: OwnedSegment| OwnedSegment { acknowledgement: Some(answered), ..row };
        rows.push(acknowledging(segment(TO, 5000, &reply, 10 * MILLISECOND)));
        rows.push(segment(FROM, answered, &data, 20 * MILLISECOND));
        let frames = size(&rows);
        let mut sessions = frames.iter().filter_map(|frame| match frame {
            Frame::Session(session) => Some((session.server_name.as_deref(), session.tls_version.as_deref())),
            _ => None,
        });
        // The service's hello came before it was known that the rest of the client's would not.
        assert_eq!(sessions.next_back(), Some((Some("hub.example"), Some("TLS 1.3"))), "{snaplen:?}");
        assert!(records(&frames, FROM).contains(&(22, hello.len() as u16 - 5)), "{snaplen:?}");
    }
}

#[test]
fn a_side_whose_hello_is_damaged_is_searched_while_the_other_speaks_tls() {
    let mut noise = Noise(11);
    let bytes = stream(&[(22, 300), (20, 1), (22, 40), (23, 70), (23, 71), (23, 72)], &mut noise);
    let garbage = [vec![9; 6], bytes[6..].to_vec()].concat();
    let reply = [server_hello(), stream(&[(20, 1), (22, 40), (23, 90)], &mut noise)].concat();
    let mut rows = vec![syn(FROM, 999, 0), syn(TO, 4999, 0)];
    rows.push(segment(FROM, 1000, &garbage[..305], MILLISECOND));
    rows.push(segment(TO, 5000, &reply, 2 * MILLISECOND));
    rows.push(pushed(segment(FROM, 1305, &garbage[305..], 3 * MILLISECOND)));
    let frames = size(&rows);
    assert_eq!(records(&frames, FROM), [(20, 1), (22, 40), (23, 70), (23, 71), (23, 72)]);
    assert_eq!(payload(&rows), ((garbage.len() + reply.len()) as u64, 305));
    // If nothing is found, all of it is lost, and said.
    let nothing = [&rows[..4], &[pushed(segment(FROM, 1305, &[9; 600], 3 * MILLISECOND))]].concat();
    assert_eq!(payload(&nothing).1, 905);
    assert!(notices(&size(&nothing)).contains(&"loss".to_owned()));
}

#[test]
fn packets_of_openvpn_over_tcp_are_named_and_not_taken_for_records() {
    let packet = |opcode: u8, rest: &[u8]| {
        let length = (rest.len() as u16 + 1).to_be_bytes();
        [&length[..], &[opcode << 3], rest].concat()
    };
    let hello = long_hello();
    let control = |number: u8, part: &[u8]| packet(4, &[&[1; 8][..], &[0, 0, 0, 0, number], part].concat());
    let client =
        [packet(7, &[&[1; 8][..], &[0, 0, 0, 0, 0]].concat()), control(1, &hello[..1200]), control(2, &hello[1200..])];
    let mut noise = Noise(12);
    let data: Vec<_> = (0..20).map(|_| packet(9, &noise.bytes(300))).collect();
    for saw_start in [true, false] {
        let mut rows = if saw_start { vec![syn(FROM, 999, 0)] } else { Vec::new() };
        let mut sequence = 1000_u32;
        for (at, bytes) in (1i64..).zip(client.iter().skip(usize::from(!saw_start)).chain(&data)) {
            rows.push(pushed(segment(FROM, sequence, bytes, at * MILLISECOND)));
            sequence += bytes.len() as u32;
        }
        let frames = size(&rows);
        assert_eq!((records(&frames, FROM), notices(&frames)), (vec![], vec!["not_tls".to_owned()]), "{saw_start}");
        let named = frames.iter().any(|frame| {
            matches!(frame, Frame::Notice(notice) if notice.detail.as_ref().is_some_and(|text| text.contains("OpenVPN")))
        });
        assert!(named, "{saw_start}");
    }
}

#[test]
fn records_sent_again_long_after_their_acknowledgement_are_sized_once() {
    let lengths = [(23, 60), (23, 90), (23, 41), (23, 33), (23, 52)];
    let acknowledging = |number: u32, row: OwnedSegment| OwnedSegment { acknowledgement: Some(number), ..row };
    for count in 1..=lengths.len() {
        for step in [None, Some(40), Some(70), Some(1460)] {
            for goes_on in [true, false] {
                let mut noise = Noise(21);
                let (sent, answer) = (&lengths[..count], stream(&[(23, 70)], &mut noise));
                let (bytes, last) = (stream(sent, &mut noise), stream(&[(23, 300)], &mut noise));
                let pieces = |step: Option<usize>| {
                    let (mut rest, mut sequence, mut pieces) = (bytes.as_slice(), 1000_u32, Vec::new());
                    for (_, length) in sent {
                        let record = *length + 5;
                        let (piece, behind) = rest.split_at(rest.len().min(step.unwrap_or(usize::from(record))));
                        pieces.extend((!piece.is_empty()).then(|| (sequence, piece.to_vec())));
                        (rest, sequence) = (behind, sequence.wrapping_add(piece.len() as u32));
                    }
                    pieces
                };
                let next = 1000 + bytes.len() as u32;
                let mut rows = vec![syn(FROM, 999, 0), syn(TO, 4999, 0)];
                let transmission = |pieces: Vec<(u32, Vec<u8>)>, time_ns: i64| {
                    let rows = pieces.into_iter().zip(0i64..);
                    let row = move |((at, piece), number): ((u32, Vec<u8>), i64)| {
                        acknowledging(5000, pushed(segment(FROM, at, &piece, time_ns + number * MILLISECOND)))
                    };
                    rows.map(row).collect::<Vec<_>>()
                };
                rows.extend(transmission(pieces(None), 10 * MILLISECOND));
                // The service has received them; its answer does not reach the device, which sends all of them again.
                rows.push(acknowledging(next, pushed(segment(TO, 5000, &answer, 20 * MILLISECOND))));
                for again_ns in [1_500, 4_500, 10_500].map(|milliseconds| milliseconds * MILLISECOND) {
                    rows.extend(transmission(pieces(step), again_ns));
                    rows.push(acknowledging(next, segment(TO, 5075, &[], again_ns + 20 * MILLISECOND)));
                }
                let mut expected = sent.to_vec();
                if goes_on {
                    rows.push(acknowledging(5075, pushed(segment(FROM, next, &last, 12_000 * MILLISECOND))));
                    expected.push((23, 300));
                }
                let frames = size(&rows);
                assert_eq!(records(&frames, FROM), expected, "{count} {step:?} {goes_on}");
                assert_eq!((notices(&frames), payload(&rows).1), (vec![], 0), "{count} {step:?} {goes_on}");
            }
        }
    }
}

#[test]
fn records_before_a_hello_are_no_session() {
    let mut noise = Noise(22);
    let hello = long_hello();
    for before in [&[21, 3, 1, 0, 2, 1, 90][..], &[22, 3, 1, 0, 0], &[21, 3, 1, 0, 2, 1, 90, 21, 3, 1, 0, 2, 1, 90]] {
        let first = before.len() as u32;
        let reply = [server_hello(), stream(&[(20, 1), (23, 300)], &mut noise)].concat();
        let rows = [
            syn(FROM, 999, 0),
            syn(TO, 4999, 0),
            pushed(segment(FROM, 1000, before, MILLISECOND)),
            pushed(segment(FROM, 1000 + first, &hello, 2 * MILLISECOND)),
            pushed(segment(TO, 5000, &reply, 3 * MILLISECOND)),
        ];
        let frames = size(&rows);
        let mut sessions = frames.iter().filter_map(|frame| match frame {
            Frame::Session(session) => Some((session.server_name.as_deref(), session.tls_version.as_deref())),
            _ => None,
        });
        assert_eq!(sessions.next(), Some((Some("hub.example"), Some("TLS 1.3"))), "{before:?}");
        assert_eq!((sessions.next(), notices(&frames)), (None, vec![]), "{before:?}");
    }
}

/// A segment without payload.
fn empty(direction: Direction, flags: u8, sequence: u32, acknowledgement: u32, time_ns: i64) -> OwnedSegment {
    let acknowledgement = Some(acknowledgement);
    OwnedSegment { flags: flags | Segment::ACK, acknowledgement, ..segment(direction, sequence, &[], time_ns) }
}

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

fn one_record_a_segment(lengths: &[(u8, u16)]) -> Vec<OwnedSegment> {
    let mut noise = Noise(37);
    let mut next = 1000;
    let row = |record: &(u8, u16)| {
        let bytes = stream(&[*record], &mut noise);
        let row = pushed(segment(FROM, next, &bytes, i64::from(next) * MILLISECOND));
        next += bytes.len() as u32;
        row
    };
    lengths.iter().map(row).collect()
}

#[test]
fn a_corrupted_segment_is_replaced_by_its_retransmission() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300), (23, 64), (23, 80)];
    let (opened, data) = ([syn(FROM, 999, 0), syn(TO, 4999, 0)], one_record_a_segment(&lengths));
    // The type, the version, a length that reaches into what follows.
    for (byte, wrong) in [(0, 200), (1, 9), (3, 4), (3, 8)] {
        for row in 1..data.len() - 1 {
            let mut corrupted = data[row].clone();
            corrupted.payload[byte] ^= wrong;
            let rows = [&opened[..], &data[..row], &[corrupted], &data[row..]].concat();
            assert_eq!(records(&size(&rows), FROM), lengths, "{byte} {wrong} {row}");
        }
    }
}

#[test]
fn garbage_behind_the_data_of_a_segment_is_replaced_by_what_follows() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300), (23, 64), (23, 80)];
    let (opened, data) = ([syn(FROM, 999, 0), syn(TO, 4999, 0)], one_record_a_segment(&lengths));
    let garbage: Vec<u8> = (0..40).map(|at| 101 + at).collect();
    for row in 1..data.len() - 1 {
        for (more, is_before) in [(1, true), (4, false), (5, true), (9, false), (40, true), (40, false)] {
            let mut odd = data[row].clone();
            odd.payload.extend(&garbage[..more]);
            odd.length += more as u32;
            let at = row + usize::from(!is_before);
            let rows = [&opened[..], &data[..at], &[odd], &data[at..]].concat();
            assert_eq!(records(&size(&rows), FROM), lengths, "{row} {more} {is_before}");
        }
    }
}

#[test]
fn data_with_a_syn_that_nobody_answers_is_no_part_of_the_connection() {
    let lengths = [(22, 60), (23, 100), (23, 200), (23, 300), (23, 64)];
    let bytes = stream(&lengths, &mut Noise(41));
    let opened = [syn(FROM, 999, 0), syn(TO, 4999, 0)];
    let data = segments(FROM, 1000, &bytes, 150);
    for row in 0..data.len() {
        for (shift, is_before) in [(0, false), (0, true), (40, false), (-1, true), (-1, false), (150, false)] {
            let odd = OwnedSegment {
                flags: Segment::SYN,
                sequence: data[row].sequence.wrapping_add_signed(shift),
                ..data[row].clone()
            };
            // At the start of the connection it would be a repetition of the first SYN.
            if odd.sequence == 999 {
                continue;
            }
            let at = row + usize::from(!is_before);
            let rows = [&opened[..], &data[..at], &[odd], &data[at..]].concat();
            assert_eq!(records(&size(&rows), FROM), lengths, "{row} {shift} {is_before}");
        }
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

/// The same segment later.
fn later(row: OwnedSegment, milliseconds: i64) -> OwnedSegment {
    OwnedSegment { time_ns: row.time_ns + milliseconds * MILLISECOND, ..row }
}

#[test]
fn text_in_a_reset_is_no_part_of_the_stream() {
    let lengths = [(22, 60), (23, 100), (23, 200)];
    let bytes = stream(&lengths, &mut Noise(24));
    for (at, text) in [(bytes.len(), &b"Go away, we're not home"[..]), (bytes.len() + 1, b"reset"), (70, b"cause")] {
        let rows = [
            vec![syn(FROM, 999, 0), syn(TO, 4999, 0)],
            segments(FROM, 1000, &bytes, 100),
            vec![OwnedSegment { flags: Segment::RST, ..segment(FROM, 1000 + at as u32, text, 50 * MILLISECOND) }],
        ];
        let rows = rows.concat();
        let frames = size(&rows);
        assert_eq!((records(&frames, FROM), notices(&frames)), (lengths.to_vec(), vec![]), "{at}");
        assert_eq!(payload(&rows), (bytes.len() as u64, 0), "{at}");
    }
}
