//! Order, overlaps, gaps and unknown starts.

use sizeleak_frame::Direction;

use super::*;

#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    gaps: Vec<u64>,
    conflicts: usize,
    contradictions: usize,
    unconfirmed: u64,
    not_missing: u64,
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

    fn incident(&mut self, _: i64, incident: Incident) {
        match incident {
            Incident::Conflict(Conflict::Replaced) => self.contradictions += 1,
            Incident::Conflict(_) => self.conflicts += 1,
            Incident::NotMissing { bytes } => self.not_missing += bytes,
            Incident::Unconfirmed { bytes } => self.unconfirmed += bytes,
            _ => {}
        }
    }
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

#[derive(Default)]
struct DirectionState(StreamPosition, PendingSegments, StreamContext);

impl DirectionState {
    fn work(&mut self) -> Reassembly<'_> {
        Reassembly { position: &mut self.0, pending: &mut self.1, context: self.2 }
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

fn end_wait(stream: &mut DirectionState, seen: &mut Received) {
    stream.work().end_wait(seen);
}

#[test]
fn confirmed_gaps_are_given_up_one_by_one() {
    let (mut stream, mut seen) = opened(99);
    stream.work().segment(&segment(110, b"b"), &mut seen);
    stream.work().segment(&segment(120, b"c"), &mut seen);
    assert_eq!(stream.1.since_ns(), Some(1));
    assert!(stream.work().acknowledge(121, &mut seen).is_none());
    end_wait(&mut stream, &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"b"[..], &[10][..]));
    end_wait(&mut stream, &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"bc"[..], &[10, 9][..]));
    assert!(stream.1.is_idle());
}

#[test]
fn lone_segment_across_a_gap_moves_nothing() {
    let (mut stream, mut seen) = opened(99);
    stream.2.other_next = Some(7);
    stream.work().segment(&segment(5000, b"forged"), &mut seen);
    end_wait(&mut stream, &mut seen);
    assert!(stream.1.since_ns().is_none());
    for number in 0..20 {
        stream.work().segment(&segment(100 + number, b"x"), &mut seen);
        assert!(stream.work().acknowledge(101 + number, &mut seen).is_none());
    }
    assert_eq!((seen.bytes.len(), seen.gaps.len()), (20, 0));
    stream.work().release_all(9, &mut seen);
    assert_eq!((seen.bytes.len(), seen.gaps.len(), seen.unconfirmed), (20, 0, 6));
}

#[test]
fn doubted_segments_are_believed_once_others_follow_or_they_are_acknowledged() {
    for acknowledged in [false, true] {
        let (mut stream, mut seen) = opened(99);
        stream.2.other_next = Some(7);
        stream.work().segment(&segment(200, b"ab"), &mut seen);
        end_wait(&mut stream, &mut seen);
        if acknowledged {
            assert!(stream.work().acknowledge(202, &mut seen).is_none());
        } else {
            for sequence in [204, 202] {
                stream.work().segment(&Segment { acknowledgement: Some(7), ..segment(sequence, b"cd") }, &mut seen);
            }
        }
        assert_eq!(stream.1.since_ns(), Some(1), "the wait, which is over, ends at once");
        end_wait(&mut stream, &mut seen);
        assert_eq!((seen.gaps.as_slice(), seen.bytes.len()), (&[100][..], if acknowledged { 2 } else { 6 }));
    }
}

#[test]
fn continuation_of_the_stream_wins_over_early_data() {
    let (mut stream, mut seen) = opened(0);
    stream.work().segment(&segment(5, b"forged"), &mut seen);
    stream.work().segment(&segment(1, b"abcdefgh"), &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.conflicts), (&b"abcdefgh"[..], 1));
    assert!(stream.1.is_idle());
}

#[test]
fn segments_with_a_foreign_acknowledgement_number_are_of_another_connection() {
    let (mut stream, mut seen) = opened(0);
    stream.2.other_next = Some(500_000_000);
    let own = |sequence, payload| Segment { acknowledgement: Some(500_000_000), ..segment(sequence, payload) };
    let foreign = |sequence, payload| Segment { acknowledgement: Some(5), ..segment(sequence, payload) };
    stream.work().segment(&own(1, b"ab"), &mut seen);
    assert!(stream.work().segment(&foreign(9, b"cd"), &mut seen).is_none());
    stream.work().segment(&own(3, b"ef"), &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.unconfirmed), (&b"abef"[..], 2));
    assert!(stream.work().segment(&foreign(9, b"cd"), &mut seen).is_none());
    let run = stream.work().acknowledge(11, &mut seen).unwrap();
    assert_eq!((run.start, run.segments.len(), run.claim), (9, 1, Claim::OtherConnection));
}

#[test]
fn forged_bytes_are_replaced_by_those_the_other_side_acknowledges() {
    let (mut stream, mut seen) = opened(0);
    stream.work().segment(&segment(1, b"forged bytes"), &mut seen);
    stream.work().segment(&segment(1, b"right"), &mut seen);
    assert!(stream.work().acknowledge(6, &mut seen).is_none());
    stream.work().segment(&segment(6, b" again"), &mut seen);
    assert_eq!((seen.bytes.as_slice(), seen.contradictions), (&b"forged bytesright again"[..], 1));
}

#[test]
fn segments_repeated_long_after_their_acknowledgement_are_another_stream_once_acknowledged_anew() {
    let (mut stream, mut seen) = opened(0);
    stream.work().segment(&segment(1, &[b'a'; 1000]), &mut seen);
    (stream.2.other_acknowledgement, stream.2.last_ns) = (Some(1001), 1);
    let late = |sequence| Segment { time_ns: 10_000_000_000, ..segment(sequence, b"again") };
    for sequence in [101, 106, 111] {
        stream.work().segment(&late(sequence), &mut seen);
    }
    assert_eq!(seen.bytes.len(), 1000, "its sender may not have received the acknowledgement");
    assert!(stream.work().acknowledge(1001, &mut seen).is_none());
    assert_eq!(seen.bytes.len(), 1000, "the other side has received it long ago");
    assert!(stream.work().acknowledge(116, &mut seen).is_none());
    assert_eq!((seen.bytes.len(), seen.gaps.as_slice()), (1015, &[0][..]));
    stream.work().segment(&segment(116, b"b"), &mut seen);
    assert_eq!(seen.bytes.len(), 1016);
}

#[test]
fn late_retransmissions_that_the_snaplen_cut_are_no_other_stream() {
    let (mut stream, mut seen) = opened(0);
    stream.work().segment(&segment(1, &[b'a'; 1000]), &mut seen);
    (stream.2.other_acknowledgement, stream.2.last_ns) = (Some(1001), 1);
    for sequence in [101, 201, 301, 401] {
        let late = Segment { time_ns: 10_000_000_000, length: 100, ..segment(sequence, b"aaaa") };
        stream.work().segment(&late, &mut seen);
    }
    assert_eq!((seen.bytes.len(), seen.gaps.len()), (1000, 0));
}

#[test]
fn stream_seen_from_the_middle_waits_for_earlier_segments() {
    let (mut stream, mut seen) = (DirectionState::default(), Received::default());
    stream.work().segment(&segment(1005, b"fgh"), &mut seen);
    stream.work().segment(&segment(1000, b"abcde"), &mut seen);
    assert!(seen.bytes.is_empty() && !stream.0.is_known());
    end_wait(&mut stream, &mut seen);
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
    assert_eq!((seen.bytes.as_slice(), seen.gaps.as_slice()), (&b"azzzy"[..], &[0][..]));
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
