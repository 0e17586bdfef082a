//! The same records come out however a stream is segmented, retransmitted, reordered, cut by the snaplen or joined
//! late.

use super::wire::{
    MILLISECOND, Noise, OwnedSegment, batch, notices, records, segment, segments, size, size_with, stream, syn,
};
use proptest::prelude::*;
use sizeleak_frame::{Direction, Frame, Segment};
use sizeleak_platform::runtime::Stage;
use sizeleak_record_sizer::{Options, RecordSizer};

const TO: Direction = Direction::ToGateway;
const FROM: Direction = Direction::FromGateway;

/// The records of a session: a handshake, then many sizes, some of them several segments long.
fn session(count: usize, noise: &mut Noise) -> Vec<(u8, u16)> {
    let mut all = vec![(22, 200), (20, 1), (22, 40)];
    for _ in 0..count {
        let length = match noise.below(10) {
            0 => 29,
            1 => 2000 + noise.below(14_000),
            _ => 30 + noise.below(1200),
        };
        all.push((23, length as u16));
    }
    all
}

/// The segments of a stream in which each record starts a segment, as applications write them.
fn one_segment_per_record(direction: Direction, first: u32, all: &[(u8, u16)], noise: &mut Noise) -> Vec<OwnedSegment> {
    let (mut rows, mut sequence, mut time_ns) = (Vec::new(), first, 0);
    for record in all {
        let bytes = stream(&[*record], noise);
        for chunk in bytes.chunks(1460) {
            time_ns += MILLISECOND;
            rows.push(segment(direction, sequence, chunk, time_ns));
            sequence = sequence.wrapping_add(chunk.len() as u32);
        }
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn records_do_not_depend_on_segmentation_retransmission_or_order(
        seed: u64,
        first: u32,
        cuts in prop::collection::vec(1usize..3000, 1..60),
        again in prop::collection::vec((any::<prop::sample::Index>(), 1usize..4000), 0..30),
        early in prop::collection::vec(0usize..12, 60..100),
    ) {
        let mut noise = Noise(seed);
        let all = session(40, &mut noise);
        let bytes = stream(&all, &mut noise);
        let mut pieces = Vec::new();
        let mut at = 0;
        for cut in cuts.iter().cycle() {
            let end = (at + cut).min(bytes.len());
            pieces.push(at..end);
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        for (index, length) in again {
            let start = index.index(bytes.len());
            let place = pieces.partition_point(|piece| piece.start <= start).min(pieces.len());
            pieces.insert(place, start..(start + length).min(bytes.len()));
        }
        let delayed = |(at, piece): (usize, &std::ops::Range<usize>)| (at + early[at % early.len()], piece.clone());
        let mut order: Vec<_> = pieces.iter().enumerate().map(delayed).collect();
        order.sort_by_key(|(at, _)| *at);
        let mut rows = vec![syn(TO, first.wrapping_sub(1), 0)];
        for ((_, piece), time) in order.into_iter().zip(1..) {
            rows.push(segment(TO, first.wrapping_add(piece.start as u32), &bytes[piece], time * MILLISECOND / 10));
        }
        prop_assert_eq!(records(&size(&rows), TO), all);
    }

    #[test]
    fn stream_joined_inside_a_record_is_sized_from_the_next_one_on(seed: u64, skip in 6usize..16_000) {
        let mut noise = Noise(seed);
        let all: Vec<_> = [(23, 16_400)].into_iter().chain(session(20, &mut noise).into_iter().skip(3)).collect();
        let bytes = stream(&all, &mut noise);
        let frames = size(&segments(TO, 7, &bytes[skip..], 1400));
        prop_assert_eq!(&records(&frames, TO), &all[1..]);
        let bytes = |frame: &Frame| if let Frame::Notice(notice) = frame { notice.bytes } else { None };
        let resync = frames.iter().find_map(bytes);
        prop_assert_eq!(resync, Some((16_405 - skip) as u64));
    }

    #[test]
    fn any_input_is_accepted_within_the_memory_limit(
        rows in prop::collection::vec(
            (
                0u64..3,
                any::<bool>(),
                prop_oneof![any::<u32>(), 0u32..5000],
                prop_oneof![Just(16u8), any::<u8>()],
                prop_oneof![Just(None), any::<u32>().prop_map(Some)],
                prop::collection::vec(prop_oneof![any::<u8>(), 20u8..25, 0u8..4], 0..80),
                any::<i64>(),
            ),
            0..120,
        ),
    ) {
        let options = Options { max_flows: 8, max_flow_bytes: 2000, max_bytes: 3000, ..Options::default() };
        let mut sizer = RecordSizer::new(&options).unwrap();
        let mut frames = Vec::new();
        for (flow, to, sequence, flags, length, payload, time_ns) in rows {
            let direction = if to { TO } else { FROM };
            let length = length.unwrap_or(payload.len() as u32).max(payload.len() as u32);
            let row = OwnedSegment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement: None };
            sizer.process(batch(&[row]).into(), &mut frames).unwrap();
            prop_assert!(sizer.held_bytes() <= 3000);
        }
        sizer.finish(&mut frames).unwrap();
    }
}

/// The share of `expected` that was found, and how many other records were.
fn found(frames: &[Frame], expected: &[(u8, u16)]) -> (f64, usize) {
    let mut left = records(frames, TO);
    let total = left.len();
    let hit = expected.iter().filter(|record| {
        let at = left.iter().position(|other| other == *record);
        at.map(|at| left.remove(at)).is_some()
    });
    let hit = hit.count();
    (hit as f64 / expected.len() as f64, total - hit)
}

/// The records whose header these segments hold, and with `bodies` 1 (not 0) the body too.
fn captured(all: &[(u8, u16)], first: u32, kept: &[OwnedSegment], bodies: usize) -> Vec<(u8, u16)> {
    let total: usize = all.iter().map(|(_, length)| usize::from(*length) + 5).sum();
    let mut seen = vec![false; total];
    for row in kept {
        let start = row.sequence.wrapping_sub(first) as usize;
        seen[start..start + row.payload.len()].fill(true);
    }
    let (mut captured, mut at) = (Vec::new(), 0);
    for record in all {
        let needed = at..at + 5 + usize::from(record.1) * bodies;
        captured.extend(seen[needed].iter().all(|seen| *seen).then_some(*record));
        at += 5 + usize::from(record.1);
    }
    captured
}

#[test]
fn records_are_sized_when_one_in_a_hundred_packets_is_lost() {
    let mut noise = Noise(11);
    let all = session(6000, &mut noise);
    for rows in [one_segment_per_record(TO, 90, &all, &mut noise), segments(TO, 90, &stream(&all, &mut noise), 1460)] {
        let mut kept = rows;
        kept.retain(|_| noise.below(100) > 0);
        let whole = captured(&all, 90, &kept, 1);
        let frames = size(&[vec![syn(TO, 89, 0)], kept].concat());
        let (share, _) = found(&frames, &whole);
        let invented = found(&frames, &all).1;
        println!("sized {share:.4} of {} records that were captured whole, and {invented} others", whole.len());
        assert!(share >= 0.97 && invented == 0);
    }
}

#[test]
fn records_are_sized_when_the_snaplen_cuts_payloads() {
    let mut noise = Noise(12);
    let all = session(6000, &mut noise);
    let mut rows = one_segment_per_record(TO, 90, &all, &mut noise);
    for row in &mut rows {
        row.payload.truncate(74);
    }
    let headers = captured(&all, 90, &rows, 0);
    let frames = size(&[vec![syn(TO, 89, 0)], rows].concat());
    let (share, _) = found(&frames, &headers);
    let invented = found(&frames, &all).1;
    println!("sized {share:.4} of {} records whose header was captured, and {invented} others", headers.len());
    assert!(share >= 0.97 && invented == 0);
}

/// The rates derived in the documentation of `resync`, on random bytes.
#[test]
fn no_records_are_found_in_random_bytes() {
    let mut noise = Noise(13);
    let (flows, size_of_each) = (64, 250 << 10);
    let (mut rows, mut headers) = (Vec::new(), 0);
    for flow in 0..flows {
        let bytes = noise.bytes(size_of_each);
        let plausible = |window: &&[u8]| {
            let length = u16::from_be_bytes([window[3], window[4]]);
            (22..=24).contains(&window[0])
                && window[1] == 3
                && (1..=3).contains(&window[2])
                && (1..=18_432).contains(&length)
        };
        headers += bytes.windows(5).filter(plausible).count();
        rows.extend(segments(TO, 5, &bytes, 1460).into_iter().map(|row| OwnedSegment { flow, ..row }));
    }
    let frames = size(&rows);
    let bytes = flows as usize * size_of_each;
    println!("{bytes} random bytes: {headers} likely headers, {} records", records(&frames, TO).len());
    // 1.5e-7 a byte makes 2.4 in 16 MB; more than 12 have a probability below 10⁻⁵.
    assert!(headers <= 12);
    assert_eq!(records(&frames, TO), []);
    assert_eq!(notices(&frames), vec!["not_tls"; flows as usize]);
}

#[test]
fn lone_record_is_sized_and_a_part_of_one_is_not() {
    let mut noise = Noise(3);
    let ping = stream(&[(23, 29)], &mut noise);
    assert_eq!(records(&size(&[segment(TO, 5, &ping, 1)]), TO), [(23, 29)]);
    assert_eq!(records(&size(&[segment(TO, 5, &ping[..30], 1)]), TO), []);
    // A keep-alive probe repeats the byte before.
    let probe = segment(TO, 4, &[0], 1);
    assert_eq!(records(&size(&[probe, segment(TO, 5, &ping, 2)]), TO), [(23, 29)]);
}

#[test]
fn new_connection_on_the_same_ports_is_sized_from_its_start() {
    let mut noise = Noise(4);
    let (one, two) = (session(5, &mut noise), session(6, &mut noise));
    let first = [vec![syn(TO, 99, 0)], segments(TO, 100, &stream(&one, &mut noise)[..1500], 700)].concat();
    let second = [vec![syn(TO, 5_000, 0)], segments(TO, 5_001, &stream(&two, &mut noise), 700)].concat();
    let frames = size(&[first, second].concat());
    assert!(records(&frames, TO).ends_with(&two));
    assert_eq!(notices(&frames), ["truncated"]);
}

/// A `ClientHello` in its record.
fn client_hello() -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2f, 1, 0]].concat();
    [&[22, 3, 1, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8][..], &body].concat()
}

#[test]
fn tls_is_found_after_other_protocols_and_streams_without_it_are_reported() {
    let mut noise = Noise(5);
    for before in ["CONNECT hub.example:443 HTTP/1.1\r\n\r\n", "EHLO me\r\nSTARTTLS\r\n", "\u{5}\u{1}\0", "S"] {
        let bytes = [before.as_bytes(), &client_hello(), &stream(&[(23, 100)], &mut noise)].concat();
        for step in [1, 7, 1460] {
            let frames = size(&[vec![syn(FROM, 0, 0)], segments(FROM, 1, &bytes, step)].concat());
            assert_eq!(records(&frames, FROM), [(22, 45), (23, 100)], "{before} by {step}");
            assert_eq!(notices(&frames), Vec::<String>::new());
        }
    }
    let hello = [&[0x80, 40, 1, 3, 1][..], &[1; 37], &stream(&[(22, 60), (20, 1)], &mut noise)].concat();
    let frames = size(&[vec![syn(FROM, 0, 0)], segments(FROM, 1, &hello, 10)].concat());
    assert_eq!(records(&frames, FROM), [(22, 60), (20, 1)]);
    let http = "GET / HTTP/1.1\r\n\r\n".repeat(10_000);
    let frames = size(&[vec![syn(FROM, 0, 0)], segments(FROM, 1, http.as_bytes(), 1460)].concat());
    assert_eq!(notices(&frames), ["not_tls"]);
}

#[test]
fn first_data_win_over_differing_retransmissions_which_are_reported() {
    let mut noise = Noise(6);
    let bytes = stream(&[(22, 100), (23, 50)], &mut noise);
    let mut other = bytes[60..].to_vec();
    other[50] ^= 0xff;
    let rows =
        [syn(TO, 0, 0), segment(TO, 61, &bytes[60..], 1), segment(TO, 61, &other, 2), segment(TO, 1, &bytes[..60], 3)];
    let frames = size(&rows);
    assert_eq!(records(&frames, TO), [(22, 100), (23, 50)]);
    assert_eq!(notices(&frames), ["conflict"]);
}

#[test]
fn directions_stay_in_order_while_one_waits_for_a_segment() {
    let mut noise = Noise(7);
    let commands = [(22, 60), (23, 300), (23, 301), (23, 302)];
    let mut rows = vec![syn(TO, 0, 0)];
    rows.extend(one_segment_per_record(TO, 1, &commands, &mut noise));
    rows.remove(2);
    let replies = stream(&[(23, 90)], &mut noise);
    rows.push(segment(FROM, 500, &replies, 10 * MILLISECOND));
    rows.push(segment(FROM, 595, &replies, 5_000 * MILLISECOND));
    let order: Vec<u32> = size(&rows)
        .into_iter()
        .filter_map(|frame| if let Frame::Record(record) = frame { Some(record.length) } else { None })
        .collect();
    assert_eq!(order, [60, 301, 302, 90, 90]);
}

#[test]
fn acknowledgement_of_another_flow_ends_an_overdue_wait() {
    let commands = [(22, 60), (23, 300), (23, 301), (23, 302)];
    let mut rows = vec![syn(TO, 0, 0)];
    rows.extend(one_segment_per_record(TO, 1, &commands, &mut Noise(9)));
    rows.remove(2);
    let mut sizer = RecordSizer::new(&Options::default()).unwrap();
    let mut frames = Vec::new();
    sizer.process(batch(&rows).into(), &mut frames).unwrap();
    // One of another connection, too early to end the wait.
    let acknowledgement = OwnedSegment { flow: 2, ..segment(FROM, 500, &[], 100 * MILLISECOND) };
    sizer.process(batch(std::slice::from_ref(&acknowledgement)).into(), &mut frames).unwrap();
    assert_eq!(records(&frames, TO), [(22, 60)]);
    let later = OwnedSegment { time_ns: 5_000 * MILLISECOND, ..acknowledgement };
    sizer.process(batch(&[later]).into(), &mut frames).unwrap();
    assert_eq!(
        (records(&frames, TO), notices(&frames)),
        (vec![(22, 60), (23, 301), (23, 302)], vec!["gap".to_owned()])
    );
}

#[test]
fn record_whose_end_is_missing_comes_once_the_other_side_has_it() {
    let bytes = stream(&[(23, 80), (23, 2000)], &mut Noise(10));
    let opening = segment(FROM, 900, &stream(&[(23, 60)], &mut Noise(11)), MILLISECOND);
    let acknowledgement =
        OwnedSegment { acknowledgement: Some(1 + bytes.len() as u32), ..segment(FROM, 965, &[], 40 * MILLISECOND) };
    let other = |time_ns| OwnedSegment { flow: 2, ..segment(TO, 1, &stream(&[(23, 50)], &mut Noise(12)), time_ns) };
    let next = segment(TO, 1 + bytes.len() as u32, &stream(&[(23, 40)], &mut Noise(13)), 30_000 * MILLISECOND);
    let times = |rows: &[OwnedSegment]| -> Vec<(u64, u32, i64)> {
        let frames = size(rows);
        assert_eq!(notices(&frames).iter().filter(|what| **what == "gap").count(), 1);
        let records =
            frames.iter().filter_map(|frame| if let Frame::Record(record) = frame { Some(record) } else { None });
        let records = records.filter(|record| record.direction == TO);
        records.map(|record| (record.flow, record.length, record.time_ns / MILLISECOND)).collect()
    };
    let begin = [syn(TO, 0, 0), segment(TO, 1, &bytes[..1400], 20 * MILLISECOND), opening];
    let rows = [&begin[..], &[acknowledgement, other(3_500 * MILLISECOND), next.clone()]].concat();
    let received = [(1, 80, 20), (1, 2000, 40), (2, 50, 3_500), (1, 40, 30_000)];
    assert_eq!(times(&rows), received);
    assert_eq!(times(&rows[..5]), received[..3], "also without more data");
    // What follows shows it at last, and no record comes with a time that is long over.
    let rows = [&begin[..], &[other(3_500 * MILLISECOND), next]].concat();
    assert_eq!(times(&rows), [(1, 80, 20), (2, 50, 3_500), (1, 2000, 30_000), (1, 40, 30_000)]);
}

#[test]
fn records_wait_for_the_hole_before_them_and_for_no_later_one() {
    let mut rows = one_segment_per_record(TO, 1, &[(23, 50); 60], &mut Noise(14));
    // A hole each two seconds, before the one before it is given up.
    for (number, row) in (0..).zip(&mut rows) {
        row.time_ns = number * 500 * MILLISECOND;
    }
    let mut number = 0;
    rows.retain(|_| {
        number += 1;
        number % 4 != 0
    });
    let mut sizer = RecordSizer::new(&Options::default()).unwrap();
    let mut found = 0;
    for row in &rows {
        let mut frames = Vec::new();
        sizer.process(batch(std::slice::from_ref(row)).into(), &mut frames).unwrap();
        for frame in frames {
            if let Frame::Record(record) = frame {
                assert!(row.time_ns - record.time_ns <= 4_000 * MILLISECOND, "{record:?} at {}", row.time_ns);
                found += 1;
            }
        }
    }
    assert!(found > 30, "{found}");
}

#[test]
fn floods_of_connections_are_evicted() {
    let mut noise = Noise(8);
    let all = session(3, &mut noise);
    let bytes = stream(&all, &mut noise);
    let (before, after) = bytes.split_at(250);
    let mut rows = vec![syn(TO, 0, 0), segment(TO, 1, before, 1)];
    rows.extend((2..400_000).map(|flow| OwnedSegment {
        flow,
        flags: Segment::SYN,
        ..segment(FROM, flow as u32, &[], 2)
    }));
    rows.push(segment(TO, 251, after, 3));
    let (frames, counts) = size_with(&Options::default(), &rows);
    assert_eq!(records(&frames, TO), all, "a flood of SYNs must not evict a connection with data");
    assert!(counts.iter().any(|(name, count)| *name == "idle_flows" && *count > 300_000));
    let data = (2..2_000).map(|flow| OwnedSegment { flow, ..segment(FROM, 9, &client_hello(), 2) });
    let (frames, counts) = size_with(&Options { max_flows: 100, ..Options::default() }, &data.collect::<Vec<_>>());
    assert_eq!(records(&frames, FROM).len(), 1998);
    assert!(counts.iter().any(|(name, count)| *name == "evicted_flows" && *count > 1_800));
    assert_eq!(notices(&frames).iter().filter(|what| **what == "evicted").count(), 1, "reported once");
}

/// A datagram with one DTLS record.
fn datagram(content_type: u8, epoch: u8, number: u8, body: &[u8]) -> OwnedSegment {
    let header = [content_type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, number, 0, body.len() as u8];
    OwnedSegment { flags: 0, ..segment(TO, 0, &[&header, body].concat(), 1) }
}

#[test]
fn dtls_is_sized_and_other_datagrams_are_counted() {
    let body = [&[0xfe, 0xfd][..], &[7; 32], &[0, 0xc0, 0xa8, 0]].concat();
    let length = body.len() as u8;
    let hello = [&[2, 0, 0, length, 0, 1, 0, 0, 0, 0, 0, length][..], &body].concat();
    let data = datagram(23, 1, 0, &[9; 116]);
    let other = OwnedSegment { flow: 3, flags: 0, ..segment(TO, 0, b"anything", 1) };
    let empty = OwnedSegment { flow: 4, flags: 0, ..segment(TO, 0, &[], 1) };
    let rows = [datagram(22, 0, 0, &hello), data.clone(), data, other, empty];
    let (frames, counts) = size_with(&Options::default(), &rows);
    assert_eq!(records(&frames, TO), [(22, hello.len() as u16), (23, 116)]);
    let Some(Frame::Record(last)) = frames.iter().rfind(|frame| matches!(frame, Frame::Record(_))) else { panic!() };
    assert_eq!((last.plaintext, last.handshake), (Some([100; 2]), false), "TLS_PSK_WITH_AES_128_CCM_8");
    let Frame::Session(session) = &frames[0] else { panic!("{frames:?}") };
    assert_eq!(session.tls_version.as_deref(), Some("DTLS 1.2"));
    assert!(notices(&frames).is_empty());
    assert!(counts.contains(&("retransmitted", 1)) && counts.contains(&("other_datagrams", 2)));
}

/// GB/T 38636: records have version 1.1, and so has the hello in them.
#[test]
fn tlcp_is_sized_like_tls() {
    let mut noise = Noise(9);
    let hello = |kind: u8, rest: &[u8]| {
        let body = [&[1, 1][..], &[7; 32], rest].concat();
        [&[22, 1, 1, 0, body.len() as u8 + 4, kind, 0, 0, body.len() as u8][..], &body].concat()
    };
    let mut data = stream(&[(20, 1), (22, 96), (23, 300), (23, 4000)], &mut noise);
    let mut at = 0;
    while at < data.len() {
        data[at + 1..at + 3].copy_from_slice(&[1, 1]);
        at += 5 + usize::from(u16::from_be_bytes([data[at + 3], data[at + 4]]));
    }
    // ECC_SM4_CBC_SM3.
    let client = [hello(1, &[0, 0, 2, 0xe0, 0x13, 1, 0]), data.clone()].concat();
    let server = [hello(2, &[0, 0xe0, 0x13, 0]), data].concat();
    let rows = [vec![syn(FROM, 0, 0), syn(TO, 0, 0)], segments(FROM, 1, &client, 700), segments(TO, 1, &server, 1460)];
    let frames = size(&rows.concat());
    assert_eq!(records(&frames, FROM), [(22, 45), (20, 1), (22, 96), (23, 300), (23, 4000)]);
    assert_eq!(records(&frames, TO), [(22, 42), (20, 1), (22, 96), (23, 300), (23, 4000)]);
    let sessions = frames.iter().filter_map(|frame| match frame {
        Frame::Session(session) => session.tls_version.clone(),
        _ => None,
    });
    assert_eq!((sessions.collect::<Vec<_>>(), notices(&frames)), (vec!["TLCP 1.1".to_owned()], Vec::new()));
}
