//! How far a direction of a connection has come, which is kept as long as the connection is; and its rivals, runs of
//! segments that do not continue the stream they claim to belong to: forged ones, those of another connection
//! on the same ports, or the stream itself after more bytes were lost than a window holds.
//!
//! A run changes nothing until it is confirmed: the other side acknowledges it, or several of its segments follow each
//! other. Until then its segments are kept, so that nothing of it is lost.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{OwnedSegment, Segment};

use crate::chunk::SEGMENT_OVERHEAD_BYTES;
use crate::record::HEADER;

/// A segment further than this from the next byte is outside any window: no sender has this much in flight.
pub(crate) const WINDOW: i64 = 16 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamPosition {
    pub(crate) next: u32,
    pub(crate) first: u32,
    /// A digest of the random number in the hello that the stream begins with; 0 where that was not seen.
    pub(crate) first_hello: u32,
    /// The sequence number of the last segment accepted, and its first bytes, by which a repetition is recognised.
    pub(crate) last: u32,
    pub(crate) last_bytes: u32,
    /// The greatest acknowledgement number that came with data of this direction, once there was one.
    pub(crate) acknowledgement: u32,
    /// The sequence number at which the last gap starts, once there was one, and its bytes.
    pub(crate) gap_start: u32,
    pub(crate) gap_bytes: u32,
    pub(crate) start: StreamStart,
    pub(crate) acknowledged: Acknowledged,
    pub(crate) has_gap: bool,
    /// Whether the stream has gone on somewhere else: what was acknowledged before says nothing of it.
    pub(crate) has_jumped: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StreamStart {
    #[default]
    Unknown,
    /// It is the first byte that was seen.
    Assumed,
    Syn,
}

/// What data of a direction has acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Acknowledged {
    #[default]
    Nothing,
    ThatMuch,
    /// The data accepted last acknowledges less than the greatest number.
    LessSince,
}

impl StreamPosition {
    pub(crate) fn is_known(self) -> bool {
        self.start != StreamStart::Unknown
    }

    pub(crate) fn saw_syn(self) -> bool {
        self.start == StreamStart::Syn
    }

    /// Takes bytes that are accepted at this sequence number: those of a hello at the start are remembered.
    #[inline]
    pub(crate) fn note_start(&mut self, sequence: u32, payload: &[u8]) {
        if sequence == self.first {
            self.first_hello = hello_digest(payload).unwrap_or(0);
        }
    }

    /// Whether a segment that does not continue the stream begins another one with a hello: before the first byte that
    /// was seen, or with another random number than the stream began with, at its start or, of a `ClientHello`, among
    /// what the other side has received, if it says so (`received`). A `ServerHello` there may be the second of the same
    /// handshake (RFC 8446, section 4.1.4).
    pub(crate) fn begins_anew(self, sequence: u32, payload: &[u8], received: Option<u32>) -> bool {
        let Some(digest) = hello_digest(payload).filter(|_| self.is_known()) else { return false };
        let is_other = self.first_hello != 0 && digest != self.first_hello;
        let is_client = matches!(payload, [_, _, _, _, _, 1, ..]);
        let end = sequence.wrapping_add(payload.len() as u32);
        let is_received = received.is_none_or(|received| received.wrapping_sub(end).cast_signed() >= 0);
        match i64::from(sequence.wrapping_sub(self.first).cast_signed()) {
            before @ ..0 => before >= -WINDOW,
            0 => is_other,
            _ => is_other && is_client && is_received && self.next.wrapping_sub(sequence).cast_signed() > 0,
        }
    }

    #[inline]
    pub(crate) fn remember(&mut self, segment: &Segment<'_>) {
        (self.last, self.last_bytes) = (segment.sequence, first_bytes(segment.payload));
        self.remember_acknowledgement(segment);
    }

    #[inline]
    pub(crate) fn remember_acknowledgement(&mut self, segment: &Segment<'_>) {
        let Some(number) = segment.acknowledgement else { return };
        let advance = i64::from(number.wrapping_sub(self.acknowledgement).cast_signed());
        // Acknowledgements never go back within a connection: one of the two is wrong, or came late.
        if self.acknowledged != Acknowledged::Nothing && (-WINDOW..0).contains(&advance) {
            self.acknowledged = Acknowledged::LessSince;
        } else {
            (self.acknowledgement, self.acknowledged) = (number, Acknowledged::ThatMuch);
        }
    }

    pub(crate) fn acknowledgement(self) -> Option<u32> {
        (self.acknowledged != Acknowledged::Nothing).then_some(self.acknowledgement)
    }

    /// Notes that a gap starts at the next byte, of this number of bytes, or 0 where it is unknown.
    pub(crate) fn start_gap(&mut self, bytes: u64) {
        (self.gap_start, self.gap_bytes, self.has_gap) = (self.next, bytes as u32, self.is_known());
    }

    pub(crate) fn is_gap_start(self, sequence: u32) -> bool {
        self.has_gap && self.gap_start == sequence
    }
}

pub(crate) fn is_near(one: u32, other: u32) -> bool {
    i64::from(one.wrapping_sub(other).cast_signed()).abs() <= WINDOW
}

/// The first five bytes of a payload in short: those of a record header, where one starts there. 0 where they were not
/// captured.
#[inline]
pub(crate) fn first_bytes(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |[kind, major, minor, high, low]: &[u8; HEADER]| {
        u32::from_be_bytes([*kind, major ^ minor, *high, *low])
    })
}

/// A digest of the first random bytes of the `ClientHello` or `ServerHello` that a payload begins with, never 0. Two
/// handshakes differ in it (RFC 8446 section 4.1.2).
fn hello_digest(payload: &[u8]) -> Option<u32> {
    let (&[22, 3 | 1, _, _, _, 1 | 2, ..], hello) = payload.split_first_chunk::<11>()? else { return None };
    // Four of them may be a time (RFC 5246 section 7.4.1.2). The others may be cut off, or in the next segment.
    let words = hello.first_chunk::<8>()?.as_chunks::<4>().0;
    Some(words.iter().fold(1, |digest: u32, word| (digest.rotate_left(5) ^ u32::from_be_bytes(*word)).max(1)))
}

/// The number of runs kept for a direction; the oldest makes room.
const MAX_RUNS: usize = 4;

/// The number of pieces that confirm a run without an acknowledgement if they follow each other. A SYN is one of them.
const PROOF: usize = 3;

/// The number of segments kept of a run; one that is longer and not confirmed is dropped.
const MAX_SEGMENTS: usize = 32;

const RUN_OVERHEAD_BYTES: usize = 128;

/// Where a run says that the stream continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Claim {
    /// At another place of the same connection.
    Elsewhere,
    /// At bytes that were given up as missing, and are counted as lost. It is what comes too late, unless more follows there.
    Gap,
    /// Among bytes that the other side has received long ago. It is a late retransmission, unless the other side
    /// acknowledges it anew.
    Again,
    /// At the last segment accepted, with other bytes.
    Contradiction,
    OtherConnection,
}

/// Segments that follow each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) claim: Claim,
    /// The sequence number of the SYN it starts with, if it does.
    pub(crate) syn: Option<u32>,
    pub(crate) start: u32,
    /// The sequence number behind its last byte.
    pub(crate) next: u32,
    pub(crate) segments: Vec<OwnedSegment>,
    is_acknowledged: bool,
    /// Whether its SYN has the number of the present connection, so that its data may be repetitions too.
    may_repeat: bool,
    /// Whether it has other bytes at a place of the present stream.
    differs: bool,
}

impl Run {
    fn new(claim: Claim, segment: &Segment<'_>, sequence: u32) -> Self {
        let next = sequence.wrapping_add(segment.length);
        let segments = vec![OwnedSegment::of(segment)];
        let (syn, is_acknowledged, may_repeat, differs) = (None, false, false, false);
        Self { claim, syn, start: sequence, next, segments, is_acknowledged, may_repeat, differs }
    }

    /// Whether the other side may acknowledge it by this number.
    pub(crate) fn covers(&self, acknowledgement: u32) -> bool {
        let offset = acknowledgement.wrapping_sub(self.start);
        let least = u32::from(self.syn.is_none());
        (least..=self.next.wrapping_sub(self.start)).contains(&offset)
    }

    /// Whether it is a handshake of TCP that was answered, and waits for its first data.
    fn awaits_data(&self) -> bool {
        self.syn.is_some() && self.is_acknowledged && !self.may_repeat && self.segments.is_empty()
    }

    /// Whether it is a handshake of TLS that begins another connection, and what follows it.
    fn begins_with_hello(&self) -> bool {
        let is_hello = |first: &OwnedSegment| hello_digest(first.segment().payload).is_some();
        self.claim == Claim::OtherConnection && self.segments.first().is_some_and(is_hello)
    }

    fn is_confirmed(&self, needs_acknowledgement: bool) -> bool {
        let pieces = self.segments.len() + usize::from(self.syn.is_some());
        let needs_acknowledgement = match self.claim {
            Claim::Again => true,
            Claim::OtherConnection => needs_acknowledgement,
            Claim::Elsewhere | Claim::Gap | Claim::Contradiction => false,
        };
        !self.segments.is_empty() && (self.is_acknowledged || (pieces >= PROOF && !needs_acknowledgement))
    }

    fn payload_bytes(&self) -> u32 {
        self.segments.iter().fold(0, |bytes: u32, owned| bytes.saturating_add(owned.segment().length))
    }

    fn memory_bytes(&self) -> usize {
        let segments = self.segments.iter().map(|owned| SEGMENT_OVERHEAD_BYTES + owned.segment().payload.len());
        RUN_OVERHEAD_BYTES + segments.sum::<usize>()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rivals {
    runs: Vec<Run>,
    dropped: Dropped,
}

/// What was dropped and not reported yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dropped {
    /// Bytes of payload that nothing confirmed.
    pub(crate) bytes: u32,
    /// Segments that have turned out to be retransmissions.
    pub(crate) retransmitted: u32,
}

impl Rivals {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.runs.iter().map(Run::memory_bytes).sum()
    }

    /// Takes a segment if it continues or repeats a run, given the sequence number of its first byte.
    pub(crate) fn extend(&mut self, segment: &Segment<'_>, sequence: u32) -> bool {
        let mut kept = self.runs.iter().flat_map(|run| &run.segments).map(OwnedSegment::segment);
        let bytes = |of: &Segment<'_>| (of.sequence, of.length);
        if kept.any(|kept| bytes(&kept) == bytes(segment) && kept.payload == segment.payload) {
            return true;
        }
        let Some(index) = self.runs.iter().rposition(|run| run.next == sequence && !run.may_repeat) else {
            return false;
        };
        if self.runs.get(index).is_some_and(|run| run.segments.len() >= MAX_SEGMENTS) {
            let run = self.runs.remove(index);
            self.dropped.add(&run);
            return false;
        }
        if let Some(run) = self.runs.get_mut(index) {
            run.next = sequence.wrapping_add(segment.length);
            run.segments.push(OwnedSegment::of(segment));
        }
        true
    }

    pub(crate) fn start(&mut self, claim: Claim, segment: &Segment<'_>, sequence: u32) {
        self.add(Run::new(claim, segment, sequence));
    }

    pub(crate) fn start_confirmed(&mut self, claim: Claim, segment: &Segment<'_>, sequence: u32) {
        self.add(Run { is_acknowledged: true, ..Run::new(claim, segment, sequence) });
    }

    pub(crate) fn start_with_syn(&mut self, sequence: u32) {
        self.repeat_syn(sequence);
        if let Some(run) = self.with_syn(sequence) {
            run.may_repeat = false;
        }
    }

    /// Starts a run with a SYN that the present connection may have begun with.
    pub(crate) fn repeat_syn(&mut self, sequence: u32) {
        if self.with_syn(sequence).is_some() {
            return;
        }
        let (claim, start, segments) = (Claim::OtherConnection, sequence.wrapping_add(1), Vec::new());
        let (syn, is_acknowledged, may_repeat, differs) = (Some(sequence), false, true, false);
        self.add(Run { claim, syn, start, next: start, segments, is_acknowledged, may_repeat, differs });
    }

    fn with_syn(&mut self, sequence: u32) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.syn == Some(sequence))
    }

    /// The run that starts with a SYN of this sequence number was answered by a SYN. Whether it may be a repetition;
    /// `None` if there is no such run.
    pub(crate) fn answer_syn(&mut self, sequence: u32) -> Option<bool> {
        let run = self.with_syn(sequence)?;
        run.is_acknowledged = true;
        Some(run.may_repeat)
    }

    /// Whether a segment with this sequence number is of another connection, even if it continues the present stream, too:
    /// the first data behind a handshake of TCP that was answered, or what follows a hello, if that or this has other bytes
    /// at a place of the stream (`differs`).
    pub(crate) fn await_data_at(&mut self, sequence: u32, differs: bool) -> bool {
        self.runs.iter_mut().filter(|run| run.next == sequence).any(|run| {
            run.differs |= differs;
            run.awaits_data() || run.differs && run.begins_with_hello()
        })
    }

    fn add(&mut self, run: Run) {
        if self.runs.len() >= MAX_RUNS {
            let oldest = self.runs.remove(0);
            self.dropped.add(&oldest);
        }
        self.runs.push(run);
    }

    /// The other side acknowledges everything before this number; `next` is what it acknowledges if it has received
    /// exactly what was accepted.
    pub(crate) fn acknowledge(&mut self, acknowledgement: u32, next: u32) {
        for run in self.runs.iter_mut().filter(|_| acknowledgement != next) {
            run.is_acknowledged |= match run.claim {
                // Both versions start at the same byte: only their ends differ.
                Claim::Contradiction => acknowledgement == run.next,
                Claim::Elsewhere | Claim::Gap | Claim::Again | Claim::OtherConnection => run.covers(acknowledgement),
            };
        }
    }

    /// Removes a run that is confirmed: the other side acknowledges it, or it has several pieces that follow each other. Of
    /// another connection, pieces are not enough if it `needs_acknowledgement`.
    pub(crate) fn take_confirmed(&mut self, needs_acknowledgement: bool) -> Option<Run> {
        let index = self.runs.iter().position(|run| run.is_confirmed(needs_acknowledgement))?;
        Some(self.runs.remove(index))
    }

    /// Removes the last run that consists of at least two pieces: at the end of the traffic nothing contradicts it.
    pub(crate) fn take_likely(&mut self) -> Option<Run> {
        let is_likely = |run: &Run| {
            let pieces = run.segments.len() + usize::from(run.syn.is_some());
            !run.segments.is_empty() && pieces > 1 && run.claim != Claim::Again
        };
        let index = self.runs.iter().rposition(is_likely)?;
        Some(self.runs.remove(index))
    }

    pub(crate) fn take_other_connections(&mut self) -> Vec<Run> {
        self.runs.extract_if(.., |run| run.claim == Claim::OtherConnection).collect()
    }

    pub(crate) fn drop_all(&mut self) {
        for run in self.runs.drain(..) {
            self.dropped.add(&run);
        }
    }

    pub(crate) fn take_dropped(&mut self) -> Dropped {
        std::mem::take(&mut self.dropped)
    }
}

impl Dropped {
    fn add(&mut self, run: &Run) {
        if matches!(run.claim, Claim::Again | Claim::Gap) {
            self.retransmitted = self.retransmitted.saturating_add(run.segments.len() as u32);
        } else {
            self.bytes = self.bytes.saturating_add(run.payload_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Direction;

    use super::*;

    fn data(sequence: u32, length: u32) -> Segment<'static> {
        Segment {
            time_ns: 1,
            flow: 1,
            direction: Direction::ToGateway,
            sequence,
            flags: Segment::ACK,
            length,
            payload: &[],
            acknowledgement: None,
        }
    }

    #[test]
    fn three_pieces_that_follow_each_other_confirm_a_run_and_repetitions_do_not() {
        let mut rivals = Rivals::default();
        rivals.start(Claim::Elsewhere, &data(100, 10), 100);
        for _ in 0..5 {
            assert!(rivals.extend(&data(100, 10), 100));
        }
        assert!(!rivals.extend(&data(120, 10), 120));
        assert!(rivals.extend(&data(110, 10), 110));
        assert!(rivals.take_confirmed(false).is_none());
        assert!(rivals.extend(&data(120, 5), 120));
        let run = rivals.take_confirmed(false).unwrap();
        assert_eq!((run.start, run.next, run.segments.len()), (100, 125, 3));
    }

    #[test]
    fn acknowledged_syn_waits_for_its_data() {
        let mut rivals = Rivals::default();
        rivals.start_with_syn(u32::MAX);
        rivals.acknowledge(0, 5000);
        assert!(rivals.take_confirmed(false).is_none());
        assert!(rivals.extend(&data(0, 10), 0));
        assert_eq!(
            rivals.take_confirmed(false).map(|run| (run.syn, run.start, run.next)),
            Some((Some(u32::MAX), 0, 10))
        );
    }

    #[test]
    fn acknowledgement_of_what_was_accepted_confirms_no_run() {
        let mut rivals = Rivals::default();
        rivals.start(Claim::Contradiction, &data(100, 10), 100);
        rivals.acknowledge(105, 105);
        rivals.acknowledge(104, 105);
        assert!(rivals.take_confirmed(false).is_none());
        rivals.acknowledge(110, 105);
        assert!(rivals.take_confirmed(false).is_some());
    }

    #[test]
    fn the_oldest_run_makes_room_and_its_bytes_are_counted() {
        let mut rivals = Rivals::default();
        for number in 0..6 {
            rivals.start(Claim::Elsewhere, &data(number * 1000, 10), number * 1000);
        }
        let dropped = |bytes| Dropped { bytes, retransmitted: 0 };
        assert_eq!((rivals.runs.len(), rivals.take_dropped()), (MAX_RUNS, dropped(20)));
        rivals.drop_all();
        let taken = [rivals.take_dropped(), rivals.take_dropped()];
        assert_eq!((rivals.is_empty(), taken), (true, [dropped(40), dropped(0)]));
    }
}
