//! Messages that only their segments show: captures of headers alone, and connections without TLS.

use sizeleak_frame::{Direction, Frame, Segment};
use sizeleak_record_sizer::Options;

use super::wire::{MILLISECOND, Noise, OwnedSegment, records, segment, size, size_with, stream, syn};

const TO: Direction = Direction::ToGateway;
const FROM: Direction = Direction::FromGateway;

/// A segment of which no payload was captured.
fn hidden(direction: Direction, sequence: u32, length: u32, time_ms: i64) -> OwnedSegment {
    OwnedSegment {
        length,
        flags: Segment::ACK | Segment::PSH,
        ..segment(direction, sequence, &[], time_ms * MILLISECOND)
    }
}

/// A segment of a write that the next one continues.
fn full(direction: Direction, sequence: u32, time_ms: i64) -> OwnedSegment {
    OwnedSegment { flags: Segment::ACK, ..hidden(direction, sequence, 1400, time_ms) }
}

/// The lengths of all records in order, with their directions.
fn lengths(frames: &[Frame]) -> Vec<(Direction, u32, bool)> {
    let of = |frame: &Frame| match frame {
        Frame::Record(record) => Some((record.direction, record.length, record.handshake)),
        _ => None,
    };
    frames.iter().filter_map(of).collect()
}

fn notices<'a>(frames: &'a [Frame], what: &str) -> Vec<&'a str> {
    let of = |frame: &'a Frame| match frame {
        Frame::Notice(notice) if notice.what == what => notice.detail.as_deref(),
        _ => None,
    };
    frames.iter().filter_map(of).collect()
}

fn counter(counters: &[(&str, u64)], name: &str) -> u64 {
    counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
}

#[test]
fn headers_of_a_whole_connection_give_its_messages() {
    let segments = [
        syn(FROM, 99, 0),
        syn(TO, 999, 0),
        hidden(FROM, 100, 205, 1),
        full(TO, 1000, 2),
        full(TO, 2400, 2),
        hidden(TO, 3800, 100, 2),
        hidden(FROM, 305, 126, 3),
        hidden(TO, 3900, 51, 4),
        // Data, again, and a probe that keeps the connection alive.
        hidden(TO, 3951, 213, 5000),
        hidden(TO, 3951, 213, 5300),
        hidden(FROM, 430, 1, 6000),
        hidden(FROM, 431, 31, 9000),
    ];
    let (frames, counters) = size_with(&Options::default(), &segments);
    let expected =
        [(FROM, 200, true), (TO, 2895, true), (FROM, 121, true), (TO, 46, true), (TO, 208, false), (FROM, 26, false)];
    assert_eq!(lengths(&frames), expected);
    assert_eq!(notices(&frames, "assumed").len(), 1, "once a connection");
    assert_eq!(notices(&frames, "not_tls").len() + notices(&frames, "gap").len(), 0);
    assert_eq!((counter(&counters, "segment_records"), counter(&counters, "retransmitted")), (6, 2));
}

#[test]
fn connection_seen_from_the_middle_has_no_handshake() {
    let frames = size(&[hidden(TO, 7, 213, 0), hidden(FROM, 9, 102, 2000), hidden(TO, 220, 33, 2100)]);
    assert_eq!(lengths(&frames), [(TO, 208, false), (FROM, 97, false), (TO, 28, false)]);
}

#[test]
fn missing_segments_are_a_gap_and_late_ones_are_put_in_order() {
    let missing: Vec<_> = (0..6).filter(|at| *at != 2).map(|at| hidden(TO, 50 * at, 50, i64::from(at) * 10)).collect();
    let frames = size(&missing);
    assert_eq!((lengths(&frames).len(), notices(&frames, "gap").len()), (5, 1));
    let mut late: Vec<_> = (0..6).map(|at| hidden(TO, 50 * at, 50, i64::from(at) * 10)).collect();
    late.swap(2, 3);
    let frames = size(&late);
    assert_eq!((lengths(&frames).len(), notices(&frames, "gap").len()), (6, 0));
}

#[test]
fn write_that_is_not_continued_ends_with_the_time_of_other_flows() {
    let other = |time_ms| OwnedSegment { flow: 2, ..hidden(TO, 1, 30, time_ms) };
    let (open, later) = ([full(TO, 1, 0), other(0)], [other(400)]);
    let frames = size(&[&open[..], &later].concat());
    let flows: Vec<u64> = frames
        .iter()
        .filter_map(|frame| if let Frame::Record(record) = frame { Some(record.flow) } else { None })
        .collect();
    assert_eq!(flows.iter().filter(|flow| **flow == 1).count(), 1);
}

#[test]
fn records_are_sized_by_their_headers_once_these_are_captured() {
    let bytes = stream(&[(23, 300), (23, 40)], &mut Noise(3));
    let shown = segment(TO, 214, &bytes, 3000 * MILLISECOND);
    let frames = size(&[hidden(TO, 1, 213, 0), shown]);
    assert_eq!(records(&frames, TO), [(23, 208), (23, 300), (23, 40)]);
}

#[test]
fn tls_after_plain_text_is_sized_by_its_records() {
    let options = Options { plain_tcp: true, ..Options::default() };
    // A `ClientHello` without extensions.
    let body = [&[1, 0, 0, 43, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 0]].concat();
    let hello = [&[22, 3, 1, 0, 47][..], &body].concat();
    let data = stream(&[(23, 90)], &mut Noise(5));
    let mut next = 1;
    let mut said = |payload: &[u8], time_ms: i64| {
        let said = segment(FROM, next, payload, time_ms * MILLISECOND);
        next += payload.len() as u32;
        said
    };
    let segments = [
        syn(FROM, 0, 0),
        said(b"EHLO gateway\r\n", 1),
        said(b"STARTTLS\r\n", 900),
        said(&hello, 1800),
        said(&data, 1900),
    ];
    let (frames, counters) = size_with(&options, &segments);
    assert_eq!(records(&frames, FROM), [(23, 14), (23, 10), (22, 47), (23, 90)]);
    assert_eq!(counter(&counters, "burst_records"), 2);
    let (without, _) = size_with(&Options::default(), &segments);
    assert_eq!(records(&without, FROM), [(22, 47), (23, 90)]);
}

#[test]
fn plain_text_is_sized_in_bursts_on_request_alone() {
    let plain = |sequence: u32, text: &[u8], time_ms| segment(TO, sequence, text, time_ms * MILLISECOND);
    let segments = [plain(1, b"{\"on\":", 0), plain(7, b"true}", 30), plain(12, b"{\"bri\":9}", 500)];
    let (frames, _) = size_with(&Options { plain_tcp: true, ..Options::default() }, &segments);
    assert_eq!(lengths(&frames), [(TO, 11, false), (TO, 9, false)]);
    assert_eq!(notices(&frames, "not_tls").len(), 1);
    let (frames, _) = size_with(&Options::default(), &segments);
    assert!(lengths(&frames).is_empty());
    assert!(notices(&frames, "not_tls").iter().all(|notice| notice.contains("`plain-tcp`")));
}
