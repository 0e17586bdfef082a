//! Order, overlaps, gaps and unknown starts.

use sizeleak_frame::Direction;

use super::*;

/// What reassembly passed on.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    gaps: Vec<u64>,
    conflicts: usize,
    hidden: u32,
}

impl OrderedStream for Received {
    fn chunk(&mut self, chunk: Chunk<'_>) {
        self.bytes.extend(chunk.payload);
        self.hidden += chunk.hidden;
    }

    fn gap(&mut self, length: u64, _: i64) {
        self.gaps.push(length);
    }

    fn conflict(&mut self, _: i64) {
        self.conflicts += 1;
    }

    fn retransmitted(&mut self) {}

    fn out_of_order(&mut self) {}
}

fn segment(sequence: u32, payload: &[u8]) -> Segment<'_> {
    let length = payload.len() as u32;
    Segment {
        time_ns: 1,
        flow: 1,
        direction: Direction::ToGateway,
        sequence,
        flags: 16,
        length,
        payload,
        acknowledgement: None,
    }
}

/// The state of a direction.
#[derive(Default)]
struct DirectionState(StreamPosition, PendingSegments);

impl DirectionState {
    fn work(&mut self) -> Reassembly<'_> {
        Reassembly { position: &mut self.0, pending: &mut self.1 }
    }
}

fn opened(sequence: u32) -> (DirectionState, Received) {
    let (mut stream, mut seen) = (DirectionState::default(), Received::default());
    assert_eq!(stream.work().syn_meaning(sequence), SynMeaning::Opens);
    stream.work().open(sequence, &mut seen);
    (stream, seen)
}

#[test]
fn first_data_wins_across_sequence_wrap() {
    let (mut stream, mut seen) = opened(u32::MAX - 3);
    stream.work().segment(&segment(1, b"efg"), &mut seen);
    stream.work().segment(&segment(u32::MAX, b"bcXYZhi"), &mut seen);
    assert_eq!((seen.bytes.len(), seen.conflicts), (0, 1));
    stream.work().segment(&segment(u32::MAX - 2, b"__"), &mut seen);
    assert_eq!(seen.bytes, b"__bcefghi");
    assert_eq!(stream.1.bytes(), 0);
}

#[test]
fn gaps_are_given_up_one_by_one() {
    let (mut stream, mut seen) = opened(99);
    stream.work().segment(&segment(110, b"b"), &mut seen);
    stream.work().segment(&segment(120, b"c"), &mut seen);
    assert_eq!(stream.1.since_ns(), Some(1));
    assert!(stream.work().give_up(&mut seen));
    assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"b"[..], &[10][..]));
    assert!(stream.work().give_up(&mut seen));
    assert!(!stream.work().give_up(&mut seen));
    assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"bc"[..], &[10, 9][..]));
}

#[test]
fn stream_seen_from_the_middle_waits_for_earlier_segments() {
    let (mut stream, mut seen) = (DirectionState::default(), Received::default());
    stream.work().segment(&segment(1005, b"fgh"), &mut seen);
    stream.work().segment(&segment(1000, b"abcde"), &mut seen);
    assert!(seen.bytes.is_empty() && !stream.0.is_known());
    stream.work().give_up(&mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.gaps.len()), (&b"abcdefgh"[..], 0));
    assert_eq!(stream.work().syn_meaning(999), SynMeaning::Known, "its SYN comes late");
    assert_eq!(stream.work().syn_meaning(5000), SynMeaning::NewConnection);
}

#[test]
fn stream_is_followed_to_distant_sequence_numbers() {
    let (mut stream, mut seen) = opened(0);
    stream.work().segment(&segment(1, b"a"), &mut seen);
    for number in 0..3 {
        stream.work().segment(&segment(0x4000_0000 + number, b"z"), &mut seen);
    }
    stream.work().segment(&segment(0x4000_0003, b"y"), &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"azy"[..], &[0][..]));
}

#[test]
fn bytes_hidden_by_the_snaplen_advance_the_stream() {
    let (mut stream, mut seen) = opened(0);
    stream.work().segment(&Segment { length: 100, ..segment(1, b"ab") }, &mut seen);
    stream.work().segment(&segment(101, b"c"), &mut seen);
    stream.work().segment(&Segment { length: 50, ..segment(80, b"") }, &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.hidden), (&b"abc"[..], 98 + 28));
    assert!(seen.gaps.is_empty());
}
