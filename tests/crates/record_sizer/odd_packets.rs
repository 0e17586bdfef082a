//! One odd packet decides nothing, and the share that is lost is true.

use super::wire::{
    MILLISECOND, Noise, OwnedSegment, empty, notices, records, segment, segments, size, size_with, stream, syn,
};
use proptest::prelude::*;
use sizeleak_frame::{Direction, Frame, Segment};
use sizeleak_record_sizer::Options;

pub(crate) const TO: Direction = Direction::ToGateway;
pub(crate) const FROM: Direction = Direction::FromGateway;

/// An acknowledgement whose length counts zero bytes of Ethernet's padding.
fn padded(direction: Direction, sequence: u32, bytes: usize, time_ns: i64) -> OwnedSegment {
    segment(direction, sequence, &vec![0; bytes], time_ns)
}

pub(crate) fn pushed(row: OwnedSegment) -> OwnedSegment {
    OwnedSegment { flags: Segment::ACK | Segment::PSH, ..row }
}

/// The same segment of which the snaplen left this many bytes of payload.
fn cut(row: &OwnedSegment, bytes: usize) -> OwnedSegment {
    OwnedSegment { payload: row.payload[..bytes.min(row.payload.len())].to_vec(), ..row.clone() }
}

/// Bytes of payload, and those of them that were lost.
pub(crate) fn payload(rows: &[OwnedSegment]) -> (u64, u64) {
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

pub(crate) fn one_record_a_segment(lengths: &[(u8, u16)]) -> Vec<OwnedSegment> {
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
