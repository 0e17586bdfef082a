//! Puts the segments of one direction of a TCP connection in order: chunks of the stream, and gaps where bytes are
//! missing.
//!
//! Segments in order pass straight through; early ones are held. Data that continues what was accepted is always new;
//! where it differs from held data, it wins; between held data, the first wins (RFC 9293 leaves the choice open).
//!
//! A gap is given up when its time is over, but only if what follows it is confirmed: the other side acknowledges it,
//! or several segments follow each other. A segment that does not fit the stream at all becomes a run of
//! [`Rivals`](crate::rivals::Rivals), which takes over once it is confirmed.
//!
//! The first byte of a connection seen from the middle is unknown: its first segments wait briefly for earlier ones.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{OwnedSegment, Segment};

use crate::chunk::{Chunk, HeldSegments};
use crate::findings::{Conflict, Incident};
use crate::record::{OpenRecord, has_whole_records};
use crate::rivals::{Claim, Dropped, Rivals, Run, StreamPosition, StreamStart, WINDOW, first_bytes, is_near};
use crate::unseen_bytes::UnseenBytes;

/// After this many segments, a connection seen from the middle starts at the first of them.
const FIRST_SEGMENTS: usize = 4;

/// The number of held segments that are believed without an acknowledgement if they follow each other.
const PROOF: usize = 3;

/// The same where the capture holds no acknowledgements of the other side.
const UNACKNOWLEDGED_PROOF: usize = 2;

/// Data that the other side acknowledged this long ago, in nanoseconds, is seldom retransmitted: only where its sender
/// does not receive the acknowledgements.
const OLD_NS: i64 = 3_000_000_000;

/// Where positions start: far enough above zero for segments that precede the first one.
const ORIGIN: u64 = 1 << 32;

pub(crate) trait OrderedStream {
    fn chunk(&mut self, chunk: Chunk<'_>);
    /// The next `length` bytes of the stream are missing; zero where their number is unknown.
    fn gap(&mut self, length: u64, time_ns: i64);
    /// Something else about what comes next, or about a segment that is not used.
    fn incident(&mut self, time_ns: i64, incident: Incident);
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PendingSegments {
    held: HeldSegments,
    /// While segments are held: the position of the next byte, or of the first held one while the first byte is
    /// unknown. Sequence numbers stand for the positions nearest to it.
    near: u64,
    pub(crate) rivals: Rivals,
    /// The last acknowledgement number of the other side while segments are held, once there was one.
    acknowledged: u32,
    has_acknowledged: bool,
    /// Whether the wait is over, but nothing confirms what is held.
    is_doubted: bool,
    /// Whether data continued the stream while others were held.
    has_continued: bool,
    unseen: Option<Box<UnseenBytes>>,
}

/// What a direction has to know of its connection besides its own segments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamContext {
    /// The sequence number of the other direction's next byte, where it is known.
    pub(crate) other_next: Option<u32>,
    pub(crate) other_acknowledgement: Option<u32>,
    pub(crate) is_acknowledgement_doubted: bool,
    /// When the last byte of this direction was captured.
    pub(crate) last_ns: i64,
    pub(crate) record: Option<OpenRecord>,
    /// Whether record boundaries are looked for: the last segments are no records.
    pub(crate) is_searching: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SynMeaning {
    /// A repetition, or the late SYN of what was seen before it.
    Known,
    Opens,
    NewConnection,
}

impl PendingSegments {
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && self.rivals.is_empty() && self.unseen.is_none()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.held.bytes() + self.rivals.memory_bytes() + usize::from(self.unseen.is_some())
    }

    /// When the other side was seen to have received the last byte of an open record, while that is missing and nothing is
    /// held.
    pub(crate) fn received_ns(&self, record: OpenRecord, next: u32) -> Option<i64> {
        let unseen = self.unseen.as_ref().filter(|_| self.held.is_empty())?;
        unseen.received_before(next.wrapping_add(record.left()?), next)
    }

    pub(crate) fn go_back(&mut self, time_ns: i64) {
        self.unseen.iter_mut().for_each(|unseen| unseen.go_back(time_ns));
    }

    /// When the first of the held segments was captured, while missing bytes are waited for.
    pub(crate) fn since_ns(&self) -> Option<i64> {
        self.held.first().filter(|_| !self.is_doubted).map(|(_, time_ns)| time_ns)
    }
}

#[derive(Debug)]
pub(crate) struct Reassembly<'a> {
    pub(crate) position: &'a mut StreamPosition,
    pub(crate) pending: &'a mut PendingSegments,
    pub(crate) context: StreamContext,
}

impl Reassembly<'_> {
    pub(crate) fn syn_meaning(&self, sequence: u32) -> SynMeaning {
        let first = sequence.wrapping_add(1);
        let is_close = || self.position_of(first).abs_diff(self.near(first)) <= WINDOW as u64;
        match self.position.is_known() {
            true if self.position.first == first => SynMeaning::Known,
            false if is_close() => SynMeaning::Opens,
            _ => SynMeaning::NewConnection,
        }
    }

    pub(crate) fn open(&mut self, sequence: u32, out: &mut impl OrderedStream) {
        let first = sequence.wrapping_add(1);
        let next = self.position_of(first);
        *self.position = StreamPosition { next: first, first, start: StreamStart::Syn, ..*self.position };
        self.pending.held.drop_before(next);
        self.release_from(next, out);
    }

    pub(crate) fn has_data(&self) -> bool {
        !self.pending.held.is_empty() || (self.position.is_known() && self.position.next != self.position.first)
    }

    /// Takes a segment with payload. Returns the first segments of another connection on the same ports, once it is
    /// confirmed that there is one.
    #[inline]
    pub(crate) fn segment(&mut self, segment: &Segment<'_>, out: &mut impl OrderedStream) -> Option<Run> {
        let is_syn = segment.flags & Segment::SYN != 0;
        let sequence = segment.sequence.wrapping_add(is_syn.into());
        let chunk = Chunk::of(segment);
        let is_next = self.position.is_known() && sequence == self.position.next;
        if is_next && !is_syn && self.pending.is_idle() && !chunk.may_be_padding {
            self.position.note_start(sequence, segment.payload);
            self.position.next = sequence.wrapping_add(segment.length);
            self.position.remember(segment);
            out.chunk(chunk);
            return None;
        }
        self.place(segment, sequence, out);
        self.take_over(out)
    }

    /// Takes a segment that is not simply the next one.
    fn place(&mut self, segment: &Segment<'_>, sequence: u32, out: &mut impl OrderedStream) {
        if self.position.begins_anew(sequence, segment.payload, self.context.other_acknowledgement) {
            return self.another_handshake(segment, sequence);
        }
        // What comes with a SYN is of the connection that this opens.
        let is_opening = segment.flags & Segment::SYN != 0 && sequence != self.position.first;
        let differs = self.has_other_bytes_within(segment, sequence);
        let is_another = self.pending.rivals.await_data_at(sequence, differs) || is_opening;
        if !is_another && self.position.is_known() && self.continues(segment, sequence) {
            return self.put_in_order(segment, sequence, out);
        }
        if self.pending.rivals.extend(segment, sequence) {
            return;
        }
        let is_known = self.position.is_known();
        let next = if is_known { self.position.next } else { self.near(sequence) as u32 };
        match i64::from(sequence.wrapping_sub(next).cast_signed()) {
            _ if !self.acknowledges_other_side(segment) => {
                self.pending.rivals.start(Claim::OtherConnection, segment, sequence);
            }
            distance if distance.abs() > WINDOW => self.pending.rivals.start(Claim::Elsewhere, segment, sequence),
            _ if !is_known => self.hold_until_start(segment, sequence, out),
            // Bytes before it are missing.
            1.. => self.put_in_order(segment, sequence, out),
            _ if self.contradicts(segment, sequence) => self.contradiction(segment, sequence, out),
            _ if self.position.is_gap_start(sequence) => self.pending.rivals.start(Claim::Gap, segment, sequence),
            _ if self.is_acknowledged_for_long(segment, sequence) => {
                self.pending.rivals.start(Claim::Again, segment, sequence);
            }
            // It brings nothing new.
            _ => out.incident(segment.time_ns, Incident::Retransmitted),
        }
    }

    /// Takes the first segment of another connection whose numbers are those of this one, or near them. Where its SYN was
    /// seen, that is a part of it.
    fn another_handshake(&mut self, segment: &Segment<'_>, sequence: u32) {
        let syn = sequence.wrapping_sub(1);
        let rivals = &mut self.pending.rivals;
        if rivals.answer_syn(syn).is_some() {
            rivals.start_with_syn(syn);
        }
        if !rivals.extend(segment, sequence) {
            rivals.start(Claim::OtherConnection, segment, sequence);
        }
    }

    /// Whether a segment brings the next byte, and does not repeat the last segment with other bytes.
    fn continues(&self, segment: &Segment<'_>, sequence: u32) -> bool {
        let before = self.position.next.wrapping_sub(sequence);
        before < segment.length && !self.contradicts(segment, sequence)
    }

    /// Whether a segment starts where the last one or the present record did, with other bytes, or has whole records where
    /// the stream has none.
    fn contradicts(&self, segment: &Segment<'_>, sequence: u32) -> bool {
        let StreamPosition { next, last, last_bytes, .. } = *self.position;
        let bytes = first_bytes(segment.payload);
        if bytes == 0 || sequence == next {
            return false;
        }
        if sequence == last && last_bytes != 0 {
            return bytes != last_bytes;
        }
        let before = next.wrapping_sub(sequence);
        match self.context.record {
            Some(record) => record.bytes == before && !record.begins(segment.payload),
            None => self.context.is_searching && before < segment.length && has_whole_records(segment),
        }
    }

    /// Whether a segment reaches over the place where the last one started, with other bytes there.
    fn has_other_bytes_within(&self, segment: &Segment<'_>, sequence: u32) -> bool {
        let StreamPosition { last, last_bytes, .. } = *self.position;
        let at_last = first_bytes(segment.payload.get(last.wrapping_sub(sequence) as usize..).unwrap_or_default());
        at_last != 0 && last_bytes != 0 && at_last != last_bytes
    }

    /// Whether a segment acknowledges what the other side may have sent (RFC 5961, section 5.2). Somebody who cannot
    /// see the connection does not know that. The first number of a direction is believed: some captures hold none that
    /// is right.
    fn acknowledges_other_side(&self, segment: &Segment<'_>) -> bool {
        let (Some(number), Some(own)) = (segment.acknowledgement, self.position.acknowledgement()) else { return true };
        is_near(number, own) || self.context.other_next.is_some_and(|next| is_near(number, next))
    }

    /// Whether the other side's acknowledgements say what it has received.
    fn is_acknowledged(&self) -> bool {
        let number = self.context.other_acknowledgement;
        self.position.is_known() && number.is_some_and(|number| is_near(number, self.position.next))
    }

    /// Whether a segment stands where the other side has received bytes long ago, as what another connection sends on
    /// the same ports may. A probe that keeps the connection alive repeats one byte. Where the snaplen cut even a
    /// record's header nothing tells other bytes from a late retransmission, which is more likely.
    fn is_acknowledged_for_long(&self, segment: &Segment<'_>, sequence: u32) -> bool {
        let end = sequence.wrapping_add(segment.length);
        let is_received = |received: u32| received.wrapping_sub(end).cast_signed() >= 0;
        segment.length > 1
            && first_bytes(segment.payload) != 0
            && segment.time_ns.saturating_sub(self.context.last_ns) > OLD_NS
            && self.context.other_acknowledgement.is_some_and(is_received)
    }

    /// Takes a segment that stands in the place of the last one and differs from it. Where that one left the stream
    /// inside a record, or outside of any, and this one ends a record, this one is right.
    fn contradiction(&mut self, segment: &Segment<'_>, sequence: u32, out: &mut impl OrderedStream) {
        let next = sequence.wrapping_add(segment.length);
        let is_received = self.context.other_acknowledgement == Some(self.position.next);
        if (self.context.record.is_some() || self.context.is_searching) && has_whole_records(segment) {
            self.pending.rivals.start_confirmed(Claim::Contradiction, segment, sequence);
        } else if next == self.position.next || is_received {
            out.incident(segment.time_ns, Incident::Conflict(Conflict::Kept));
        } else {
            self.pending.rivals.start(Claim::Contradiction, segment, sequence);
        }
    }

    /// Lets a confirmed run take over, if there is one; returns it if it belongs to another connection.
    fn take_over(&mut self, out: &mut impl OrderedStream) -> Option<Run> {
        // Where acknowledgements were captured, so were those of another connection.
        let needs_acknowledgement = self.is_acknowledged();
        if let Some(run) = self.pending.rivals.take_confirmed(needs_acknowledgement) {
            if run.claim == Claim::OtherConnection {
                return Some(run);
            }
            self.continue_with(&run, out);
        }
        self.report_dropped(self.context.last_ns, out);
        None
    }

    fn continue_with(&mut self, run: &Run, out: &mut impl OrderedStream) {
        let Some(first) = run.segments.first() else { return };
        let time_ns = first.segment().time_ns;
        self.release_all(time_ns, out);
        self.pending.held.drop_all();
        if run.claim == Claim::Contradiction {
            out.incident(time_ns, Incident::Conflict(Conflict::Replaced));
        } else {
            if self.position.is_gap_start(run.start) {
                out.incident(time_ns, Incident::NotMissing { bytes: self.position.gap_bytes.into() });
            }
            self.position.start_gap(0);
            out.gap(0, time_ns);
            (self.position.has_jumped, self.pending.unseen) = (true, None);
        }
        if !self.position.is_known() {
            (self.position.first, self.position.start) = (run.start, StreamStart::Assumed);
        }
        for segment in run.segments.iter().map(OwnedSegment::segment) {
            self.position.remember(&segment);
            out.chunk(Chunk::of(&segment));
        }
        (self.position.next, self.pending.near) = (run.next, ORIGIN + u64::from(run.next));
    }

    /// The other side expects this sequence number next. Returns the first segments of another connection, if that
    /// confirms that there is one.
    pub(crate) fn acknowledge(&mut self, acknowledgement: u32, out: &mut impl OrderedStream) -> Option<Run> {
        if self.acknowledges_held(acknowledgement) {
            let pending = &mut *self.pending;
            (pending.acknowledged, pending.has_acknowledged, pending.is_doubted) = (acknowledgement, true, false);
        }
        self.pending.rivals.acknowledge(acknowledgement, self.position.next);
        self.take_over(out)
    }

    fn put_in_order(&mut self, segment: &Segment<'_>, sequence: u32, out: &mut impl OrderedStream) {
        let next = self.position_of(self.position.next);
        let distance = i64::from(sequence.wrapping_sub(self.position.next).cast_signed());
        let start = next.saturating_add_signed(distance);
        if start > next {
            out.incident(segment.time_ns, Incident::OutOfOrder);
        } else {
            // Whatever contradicts the stream is refuted while the stream goes on.
            self.pending.rivals.drop_all();
            self.pending.has_continued = true;
            let payload = segment.payload.get((next - start) as usize..).unwrap_or_default();
            self.position.remember(&Segment { sequence: self.position.next, payload, ..*segment });
        }
        self.hold(start, Chunk::of(segment), out);
        self.release_from(next, out);
    }

    fn hold_until_start(&mut self, segment: &Segment<'_>, sequence: u32, out: &mut impl OrderedStream) {
        let start = self.position_of(sequence);
        self.position.remember_acknowledgement(segment);
        self.hold(start, Chunk::of(segment), out);
        if self.pending.held.len() >= FIRST_SEGMENTS {
            self.start_at_first_held(out);
        }
    }

    /// Ends the wait for missing bytes: gives up the first gap if what follows it is confirmed, and starts to doubt
    /// what is held if not. Or ends the wait for an earlier first byte, or for the end of a record.
    pub(crate) fn end_wait(&mut self, out: &mut impl OrderedStream) {
        if self.pending.held.is_empty() {
            self.give_up_received_record(out);
        } else if !self.position.is_known() {
            self.start_at_first_held(out);
        } else if self.is_confirmed() {
            self.give_up_gap(out);
        } else {
            self.pending.is_doubted = true;
        }
    }

    /// Ends all waits, because the connection is over or memory is needed: what nothing confirms is dropped where the
    /// stream has gone on without it.
    pub(crate) fn release_all(&mut self, time_ns: i64, out: &mut impl OrderedStream) {
        if !self.position.is_known() {
            self.start_at_first_held(out);
        }
        while !self.pending.held.is_all_padding() {
            if !self.pending.has_continued || self.is_confirmed() {
                self.give_up_gap(out);
            } else {
                let bytes = self.pending.held.drop_all();
                out.incident(time_ns, Incident::Unconfirmed { bytes });
            }
        }
        self.forget_doubts();
        if self.pending.held.is_empty() {
            self.give_up_unseen(time_ns, out);
        }
    }

    /// Takes what may be padding, after which nothing came, for data inside a record, and drops all else.
    pub(crate) fn drop_all(&mut self, time_ns: i64, out: &mut impl OrderedStream) {
        let mut next = self.position_of(self.position.next);
        while self.context.record.is_some()
            && let Some(held) = self.pending.held.take_at(next)
        {
            out.chunk(held.chunk());
            next += held.chunk().length();
        }
        self.position.next = next as u32;
        self.pending.held.drop_all();
        self.pending.rivals.drop_all();
        self.report_dropped(time_ns, out);
    }

    fn report_dropped(&mut self, time_ns: i64, out: &mut impl OrderedStream) {
        let Dropped { bytes, retransmitted } = self.pending.rivals.take_dropped();
        for _ in 0..retransmitted {
            out.incident(time_ns, Incident::Retransmitted);
        }
        if bytes > 0 {
            out.incident(time_ns, Incident::Unconfirmed { bytes: bytes.into() });
        }
    }

    /// Notes that a segment without payload of this side says that bytes are missing before it.
    pub(crate) fn note_sent(&mut self, segment: &Segment<'_>) {
        if self.acknowledges_other_side(segment) {
            self.pending.unseen.get_or_insert_default().add_sent(segment, self.position.next);
        }
    }

    /// Notes that the other side, in a segment without payload, acknowledges bytes that are missing.
    pub(crate) fn note_received(&mut self, acknowledgement: u32, time_ns: i64) {
        self.pending.unseen.get_or_insert_default().add_received(acknowledgement, time_ns, self.position.next);
    }

    /// Gives up the bytes behind those that were seen, if it is confirmed that there are any.
    fn give_up_unseen(&mut self, time_ns: i64, out: &mut impl OrderedStream) {
        let unseen = self.pending.unseen.take().map_or_else(UnseenBytes::default, |unseen| *unseen);
        let is_doubted = self.position.has_jumped || self.context.is_acknowledgement_doubted;
        let accepted = self.context.other_acknowledgement.filter(|_| !is_doubted);
        let missing = match self.context {
            StreamContext { other_next: None, other_acknowledgement: None, .. } if unseen.is_unanswered() => {
                unseen.sent_twice(self.position.next)
            }
            _ => unseen.missing(accepted, self.position.next),
        };
        if missing > 0 && self.position.is_known() {
            self.position.start_gap(missing);
            out.gap(missing, if unseen.is_unanswered() { time_ns } else { unseen.received_ns });
            self.position.next = self.position.next.wrapping_add(missing as u32);
        }
    }

    /// Gives up the rest of the open record, if the other side has it.
    fn give_up_received_record(&mut self, out: &mut impl OrderedStream) {
        let Some(record) = self.context.record else { return };
        let received_ns = self.pending.received_ns(record, self.position.next);
        if let Some((time_ns, left)) = received_ns.zip(record.left()) {
            self.position.start_gap(left.into());
            out.gap(left.into(), time_ns);
            self.release_from(self.position_of(self.position.next.wrapping_add(left)), out);
        }
    }

    /// Continues with the run that is most likely right, at the end of the traffic; returns it if it belongs to another
    /// connection.
    pub(crate) fn take_likely(&mut self, out: &mut impl OrderedStream) -> Option<Run> {
        let run = self.pending.rivals.take_likely()?;
        if run.claim == Claim::OtherConnection {
            return Some(run);
        }
        self.continue_with(&run, out);
        None
    }

    /// Whether the first held segments are believed although bytes are missing before them.
    fn is_confirmed(&self) -> bool {
        let PendingSegments { acknowledged, has_acknowledged, .. } = *self.pending;
        let by = [has_acknowledged.then_some(acknowledged), self.context.other_acknowledgement];
        by.into_iter().flatten().any(|number| self.acknowledges_held(number)) || self.pending.held.has_run(self.proof())
    }

    fn acknowledges_held(&self, acknowledgement: u32) -> bool {
        let Some((start, _)) = self.pending.held.first() else { return false };
        let beyond = i64::from(acknowledgement.wrapping_sub(start as u32).cast_signed());
        (1..=WINDOW).contains(&beyond)
    }

    fn proof(&self) -> usize {
        if self.is_acknowledged() { PROOF } else { UNACKNOWLEDGED_PROOF }
    }

    fn start_at_first_held(&mut self, out: &mut impl OrderedStream) {
        let Some((start, _)) = self.pending.held.first() else { return };
        let first = start as u32;
        *self.position = StreamPosition { next: first, first, start: StreamStart::Assumed, ..*self.position };
        self.release_from(start, out);
    }

    fn give_up_gap(&mut self, out: &mut impl OrderedStream) {
        let next = self.position_of(self.position.next);
        let mut behind = next;
        while self.pending.held.is_all_padding()
            && let Some(held) = self.pending.held.take_at(behind)
        {
            // Padding is not acknowledged.
            behind = behind.saturating_add(held.chunk().length());
            out.chunk(held.chunk());
        }
        if behind > next {
            return self.release_from(behind, out);
        }
        let Some((start, time_ns)) = self.pending.held.first() else { return };
        let bytes = start.saturating_sub(next);
        self.position.start_gap(bytes);
        out.gap(bytes, time_ns);
        self.release_from(start, out);
    }

    fn forget_doubts(&mut self) {
        let PendingSegments { has_acknowledged, is_doubted, has_continued, .. } = &mut *self.pending;
        (*has_acknowledged, *is_doubted, *has_continued) = (false, false, false);
    }

    /// Holds those bytes of a chunk that are not held yet.
    fn hold(&mut self, start: u64, mut chunk: Chunk<'_>, out: &mut impl OrderedStream) {
        if self.pending.held.is_empty() {
            self.pending.near = start;
        }
        let mut at = start;
        let may_be_padding = chunk.may_be_padding;
        if self.position.is_known() && start <= self.position_of(self.position.next) && !may_be_padding {
            // What continues the stream is believed rather than what came early.
            for _ in 0..self.pending.held.remove_differing(start, chunk) {
                out.incident(chunk.time_ns, Incident::Conflict(Conflict::Kept));
            }
        }
        if self.position.is_known() {
            at += chunk.advance(self.position_of(self.position.next).saturating_sub(at)).1;
        }
        while !chunk.is_empty() {
            if let Some(mut held) = self.pending.held.rest_from(at) {
                let (before, is_padding) = (chunk, held.may_be_padding);
                let (first, covered) = held.advance(chunk.length());
                let (second, _) = chunk.advance(covered);
                if first.iter().zip(second).any(|(first, second)| first != second) {
                    if is_padding {
                        self.pending.held.remove_at(at);
                        chunk = before;
                        continue;
                    }
                    if !may_be_padding {
                        out.incident(chunk.time_ns, Incident::Conflict(Conflict::Kept));
                    }
                }
                at += covered;
                continue;
            }
            let room = self.pending.held.next_start(at).map_or(u64::MAX, |next| next - at);
            self.pending.held.insert(at, chunk.first(room));
            at += chunk.advance(room).1;
        }
        if self.pending.is_doubted && self.pending.held.run_at(start) >= self.proof() {
            self.pending.is_doubted = false;
        }
    }

    /// Passes on the held segments that continue the stream from this position, which is its next one. What may be
    /// padding stays until something follows it or stands in its place.
    fn release_from(&mut self, mut next: u64, out: &mut impl OrderedStream) {
        while !self.pending.held.is_all_padding()
            && let Some(held) = self.pending.held.take_at(next)
        {
            let chunk = held.chunk();
            if chunk.starts_segment {
                (self.position.last, self.position.last_bytes) = (chunk.sequence, first_bytes(chunk.payload));
            }
            self.position.note_start(chunk.sequence, chunk.payload);
            next += chunk.length();
            out.chunk(chunk);
        }
        self.position.next = next as u32;
        self.pending.near = next;
        if let Some(unseen) = &mut self.pending.unseen {
            unseen.forget_before(next as u32);
            self.pending.unseen.take_if(|unseen| unseen.is_empty());
        }
        if self.pending.held.is_empty() {
            self.forget_doubts();
        } else if self.pending.held.is_all_padding() {
            // Nothing is known to be missing.
            self.pending.is_doubted = true;
        }
    }

    fn position_of(&self, sequence: u32) -> u64 {
        let near = self.near(sequence);
        near.saturating_add_signed(sequence.wrapping_sub(near as u32).cast_signed().into())
    }

    /// A position near the stream's present one: any will do while nothing is held.
    fn near(&self, sequence: u32) -> u64 {
        if self.pending.held.is_empty() { ORIGIN + u64::from(sequence) } else { self.pending.near }
    }
}

#[cfg(test)]
mod tests;
