//! One TCP connection: both directions put in order and cut into records, and the TLS session between its ends.
//!
//! Nearly all segments carry application data and come in order. The state for these is in [`Connection`] itself; all
//! other state is in a box that exists only while it is needed.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, OwnedSegment, PerDirection, Segment};

use crate::findings::{Findings, Incident, PayloadUse, TlsEvent, merge_directions};
use crate::framer::{Framer, Framing};
use crate::framing::{self, LengthFramer};
use crate::handshake::HandshakeReader;
use crate::messages::{ConnectionMessages, MessageEnd, MessageSizer};
use crate::options::Limits;
use crate::reassembly::{PendingSegments, Reassembly, StreamContext, SynMeaning};
use crate::record::RecordWalker;
use crate::rivals::{Acknowledged, Rivals, Run, StreamPosition, is_near};
use crate::session::{Negotiation, SessionKeys, TlsSession};
use crate::unseen_bytes::beyond;

/// How long a connection seen from the middle waits for earlier segments, in nanoseconds.
const START_WAIT_NS: i64 = 100_000_000;

const MAX_QUEUED: usize = 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Connection {
    streams: PerDirection<Stream>,
    keys: SessionKeys,
    pub(crate) payload: PayloadUse,
    /// `None` while the connection rests.
    busy: Option<Box<BusyState>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Stream {
    pub(crate) position: StreamPosition,
    pub(crate) walker: RecordWalker,
    /// Whether application data or the end of a handshake came before, without a loss in between.
    pub(crate) follows_data: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct BusyState {
    streams: PerDirection<BusyStream>,
    negotiation: Negotiation,
    /// Events of one direction that wait for segments of the other.
    queue: Vec<TlsEvent>,
    /// What stands for records where none can be read.
    messages: Option<Box<ConnectionMessages>>,
    /// Finds messages of a framing that is declared for the connection, or shows itself.
    declared: Option<Box<LengthFramer>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct BusyStream {
    pending: PendingSegments,
    framing: Framing,
    handshake: HandshakeReader,
    /// Of the direction to the gateway: whether it was reported that the connection shows no record. It is here because
    /// there is room.
    is_reported_not_tls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Directions that end inside a record.
    pub(crate) incomplete: u64,
    /// Whether it had data but no TLS record, and that was not reported yet.
    pub(crate) is_not_tls: bool,
    pub(crate) payload: Option<PayloadUse>,
}

/// The first segments of another connection on the same ports.
#[derive(Debug)]
pub(crate) struct Successor {
    runs: Vec<(Direction, Run)>,
}

impl Successor {
    pub(crate) fn syns(&self) -> PerDirection<Option<u32>> {
        let mut syns = PerDirection::default();
        for (direction, run) in &self.runs {
            *syns.of_mut(*direction) = run.syn;
        }
        syns
    }

    pub(crate) fn segments(&self) -> Vec<Segment<'_>> {
        let mut segments: Vec<_> =
            self.runs.iter().flat_map(|(_, run)| run.segments.iter().map(OwnedSegment::segment)).collect();
        segments.sort_by_key(|segment| segment.time_ns);
        segments
    }
}

impl Connection {
    /// A connection without segments. With `burst_gap_ns`, bursts of segments with at most such pauses stand for
    /// records as long as it shows none.
    pub(crate) fn new(burst_gap_ns: Option<i64>) -> Self {
        let mut connection = Self::default();
        if let Some(gap_ns) = burst_gap_ns {
            connection.parts().2.messages = Some(ConnectionMessages::both(MessageEnd::Silence { gap_ns }));
        }
        connection
    }

    /// Takes a SYN: it opens the connection, repeats the one that has, or is of another connection on the same ports. One
    /// that answers the other side with another number than before shows that both begin another connection, even if that
    /// other SYN has the number of this one. With the same number, the stream has to tell.
    pub(crate) fn syn(&mut self, segment: &Segment<'_>, findings: &mut Findings) {
        let &Segment { direction, sequence, .. } = segment;
        let meaning = self.syn_meaning(segment);
        match meaning {
            // Behind data, it may be of another connection with the same number.
            SynMeaning::Known if self.reassembly(direction).has_data() => self.rivals(direction).repeat_syn(sequence),
            SynMeaning::Known => {}
            SynMeaning::Opens => self.open(direction, sequence, findings),
            // It may be forged.
            SynMeaning::NewConnection => self.rivals(direction).start_with_syn(sequence),
        }
        let Some(asked) = segment.acknowledgement.map(|number| number.wrapping_sub(1)) else { return };
        let other = direction.reversed();
        if meaning == SynMeaning::NewConnection && self.reassembly(other).syn_meaning(asked) == SynMeaning::Known {
            self.rivals(other).start_with_syn(asked);
        }
        match self.rivals(other).answer_syn(asked) {
            Some(true) => self.rivals(direction).repeat_syn(sequence),
            Some(false) => self.rivals(direction).start_with_syn(sequence),
            None => {}
        }
    }

    fn syn_meaning(&mut self, segment: &Segment<'_>) -> SynMeaning {
        let own = self.reassembly(segment.direction).syn_meaning(segment.sequence);
        let other = self.reassembly(segment.direction.reversed());
        // A stream seen from the middle may only lack its SYN; one with data and another SYN is over.
        let belongs = other.position.saw_syn() || !other.has_data() || segment.flags & Segment::ACK != 0;
        if own == SynMeaning::Opens && !belongs { SynMeaning::NewConnection } else { own }
    }

    fn open(&mut self, direction: Direction, sequence: u32, findings: &mut Findings) {
        if !self.reassembly(direction.reversed()).has_data() {
            let (_, keys, busy) = self.parts();
            (*keys, busy.negotiation) = (SessionKeys::clear(), Negotiation::default());
        }
        let (mut reassembly, mut framer) = self.direction(direction, findings);
        framer.saw_syn = true;
        reassembly.open(sequence, &mut framer);
    }

    pub(crate) fn open_both(&mut self, syns: PerDirection<Option<u32>>, findings: &mut Findings) {
        for direction in Direction::BOTH {
            if let Some(sequence) = *syns.of(direction) {
                self.open(direction, sequence, findings);
            }
        }
    }

    fn rivals(&mut self, direction: Direction) -> &mut Rivals {
        &mut self.parts().2.streams.of_mut(direction).pending.rivals
    }

    /// Takes a segment with payload. Returns the segments of another connection on the same ports, once it is confirmed
    /// that there is one.
    pub(crate) fn segment(&mut self, segment: &Segment<'_>, findings: &mut Findings) -> Option<Successor> {
        let (mut reassembly, mut framer) = self.direction(segment.direction, findings);
        let before = framer.sizer().map(|sizer| sizer.taken);
        let run = reassembly.segment(segment, &mut framer);
        if framer.sizer().map(|sizer| sizer.taken) > before {
            // The other side's burst ends, because this one sends.
            let (_, mut framer) = self.direction(segment.direction.reversed(), findings);
            if framer.sizer().is_some_and(|sizer| sizer.end != MessageEnd::Write) {
                framer.end_message();
            }
        }
        Some(self.successor(segment.direction, run?))
    }

    /// Takes the acknowledgement of a segment of this direction, which concerns the other one.
    pub(crate) fn acknowledge(&mut self, segment: &Segment<'_>, findings: &mut Findings) -> Option<Successor> {
        let direction = segment.direction.reversed();
        let (mut reassembly, mut framer) = self.direction(direction, findings);
        let run = reassembly.acknowledge(segment.acknowledgement?, &mut framer)?;
        Some(self.successor(direction, run))
    }

    /// Whether a segment without payload says that bytes are missing of its own direction, by its place, and of the other
    /// one, which it acknowledges: more than a FIN counts as.
    #[inline]
    pub(crate) fn says_missing(&self, segment: &Segment<'_>) -> [bool; 2] {
        let missing = |direction: Direction, number: u32| {
            let position = &self.streams.of(direction).position;
            if position.is_known() { beyond(number, position.next) } else { 0 }
        };
        let is_fin = segment.flags & Segment::FIN != 0;
        let acknowledged = segment.acknowledgement.map_or(0, |number| missing(segment.direction.reversed(), number));
        [missing(segment.direction, segment.sequence) > i64::from(!is_fin), acknowledged > 1]
    }

    /// Takes a segment without payload that says that bytes are missing. While another connection may have begun, it may
    /// be of that.
    pub(crate) fn note_missing(&mut self, segment: &Segment<'_>) {
        let [own, other] = self.says_missing(segment);
        let has_rivals = |busy: &BusyState| busy.streams.both().iter().any(|stream| !stream.pending.rivals.is_empty());
        if self.busy.as_deref().is_some_and(has_rivals) {
            return;
        }
        if own {
            self.reassembly(segment.direction).note_sent(segment);
        }
        let position = &self.streams.of(segment.direction).position;
        let is_of_this = !position.is_known() || is_near(segment.sequence, position.next);
        if let Some(number) = segment.acknowledgement.filter(|_| other && is_of_this) {
            self.reassembly(segment.direction.reversed()).note_received(number, segment.time_ns);
        }
    }

    /// Another connection that was not contradicted, at the end of the traffic.
    pub(crate) fn likely_successor(&mut self, findings: &mut Findings) -> Option<Successor> {
        for direction in Direction::BOTH {
            let busy = self.busy.as_ref();
            if busy.is_some_and(|busy| !busy.streams.of(direction).pending.rivals.is_empty()) {
                let (mut reassembly, mut framer) = self.direction(direction, findings);
                if let Some(run) = reassembly.take_likely(&mut framer) {
                    return Some(self.successor(direction, run));
                }
            }
        }
        None
    }

    /// The connection that a confirmed run starts, with the run of the other direction that it acknowledges.
    fn successor(&mut self, direction: Direction, run: Run) -> Successor {
        let others = self.rivals(direction.reversed()).take_other_connections();
        let acknowledges = |other: &Run| {
            let mut numbers = run.segments.iter().filter_map(|owned| owned.segment().acknowledgement);
            numbers.any(|number| other.covers(number))
        };
        let other = others.into_iter().rev().find(acknowledges);
        Successor {
            runs: vec![(direction, run)].into_iter().chain(other.map(|run| (direction.reversed(), run))).collect(),
        }
    }

    pub(crate) fn expire(&mut self, now_ns: i64, limits: &Limits, findings: &mut Findings) {
        for direction in Direction::BOTH {
            while self.end_of_wait(direction, limits).is_some_and(|end_ns| end_ns <= now_ns) {
                let (mut reassembly, mut framer) = self.direction(direction, findings);
                reassembly.end_wait(&mut framer);
            }
            if self.end_of_message(direction).is_some_and(|end_ns| end_ns <= now_ns) {
                self.direction(direction, findings).1.end_message();
            }
        }
    }

    /// Ends all waits, and drops rivals and incomplete handshake messages.
    pub(crate) fn release(&mut self, time_ns: i64, findings: &mut Findings) {
        for direction in Direction::BOTH {
            let (mut reassembly, mut framer) = self.direction(direction, findings);
            reassembly.release_all(time_ns, &mut framer);
            let (mut reassembly, mut framer) = self.direction(direction, findings);
            reassembly.drop_all(time_ns, &mut framer);
            framer.lose_handshake();
            framer.end_message();
        }
    }

    /// Continues records that have begun at an earlier time, because all times have gone back.
    pub(crate) fn go_back(&mut self, time_ns: i64) {
        for direction in Direction::BOTH {
            let walker = &mut self.streams.of_mut(direction).walker;
            walker.last_ns = walker.last_ns.min(time_ns);
            walker.start_ns = walker.start_ns.min(time_ns);
            let Some(busy) = &mut self.busy else { continue };
            busy.streams.of_mut(direction).pending.go_back(time_ns);
            let sizer = busy.messages.as_mut().and_then(|messages| messages.sizers.of_mut(direction).as_mut());
            if let Some(sizer) = sizer {
                sizer.go_back(time_ns);
            }
        }
    }

    /// Completes what was found: leaves in `findings` what is to be reported now, oldest event first. While a direction
    /// waits for a segment, events since then are queued, so that both directions stay in order.
    pub(crate) fn conclude(&mut self, findings: &mut Findings) {
        let is_tls = self.is_tls();
        let (_, _, busy) = self.parts();
        if is_tls {
            findings.events.retain(|event| !event.is_burst());
        }
        findings.incidents.retain(|(_, incident)| busy.may_report(*incident, is_tls));
        let since_ns = busy.streams.both().iter().filter_map(|stream| stream.pending.since_ns()).min();
        let waits = |event: &TlsEvent| since_ns.is_some_and(|since_ns| event.time_ns >= since_ns);
        let mut known = busy.queue.iter().chain(&findings.events);
        if busy.queue.len() + findings.events.len() < MAX_QUEUED && known.all(waits) {
            return busy.queue.append(&mut findings.events);
        }
        if !busy.queue.is_empty() || findings.events.iter().any(waits) {
            let mut events = std::mem::take(&mut busy.queue);
            events.append(&mut findings.events);
            findings.events = merge_directions(events);
            let waiting = findings.events.iter().position(waits).filter(|_| findings.events.len() < MAX_QUEUED);
            busy.queue = waiting.map_or_else(Vec::new, |first| findings.events.split_off(first));
        }
    }

    pub(crate) fn ending(&mut self) -> Ending {
        let is_tls = self.is_tls();
        let (streams, _, busy) = self.parts();
        let directions = || busy.streams.both().into_iter().zip(streams.both());
        let incomplete = directions().filter(|(busy, stream)| busy.framing.is_inside_record(&stream.walker)).count();
        let has_data = directions().any(|(busy, _)| !matches!(busy.framing, Framing::Unstarted));
        let scanned = |framing: &Framing| if let Framing::HelloScan(scan) = framing { scan.scanned } else { 0 };
        let unscanned: u64 = busy.streams.both().map(|stream| scanned(&stream.framing)).iter().sum();
        let is_not_tls = has_data && busy.may_report_not_tls(is_tls);
        let declared = busy.declared.as_ref();
        let is_inside = |direction: &Direction| declared.is_some_and(|framer| framer.is_inside_message(*direction));
        let incomplete = incomplete + Direction::BOTH.iter().filter(|direction| is_inside(direction)).count();
        let is_sized =
            is_tls || declared.is_some() || busy.messages.as_ref().is_some_and(|messages| messages.reported.is_some());
        let skipped: u64 = Direction::BOTH.iter().filter_map(|at| Some(declared?.skipped(*at))).sum();
        self.payload.lose(if is_tls { unscanned } else { skipped });
        let payload = is_sized.then_some(self.payload);
        Ending { incomplete: incomplete as u64, is_not_tls, payload }
    }

    pub(crate) fn has_protocol(&self) -> bool {
        self.is_tls() || self.busy.as_ref().is_some_and(|busy| busy.declared.is_some())
    }

    /// The connection carries messages of this framing; without one, of Matter on these ports. What came before is in
    /// bursts that stand for records, or lost.
    pub(crate) fn declare(
        &mut self,
        framing: Option<&framing::Framing>,
        matter_ports: &[u16],
        findings: &mut Findings,
    ) {
        for direction in Direction::BOTH {
            let mut framer = self.direction(direction, findings).1;
            if framer.sizer().is_some() {
                framer.end_message();
            } else if let Framing::HelloScan(scan) = framer.framing {
                framer.payload.lose(scan.scanned);
            } else {
                framer.lose_partial_header();
            }
        }
        let (streams, _, busy) = self.parts();
        let unread_ns = RecordWalker::default().last_ns;
        let is_start = |stream: &Stream| stream.position.saw_syn() && stream.walker.last_ns == unread_ns;
        let [to_gateway, from_gateway] = streams.both().map(is_start);
        let from_start = PerDirection { to_gateway, from_gateway };
        busy.declared = Some(match framing {
            Some(framing) => LengthFramer::new(framing.clone(), from_start),
            None => LengthFramer::matter(matter_ports.to_vec(), from_start),
        });
        busy.messages = None;
        // It is no fault that it has none.
        busy.streams.to_gateway.is_reported_not_tls = true;
    }

    /// Whether a record was found in either direction; the other is then TLS too.
    fn is_tls(&self) -> bool {
        self.streams.both().iter().any(|stream| stream.walker.version().is_some())
    }

    /// Whether the next message, of which no header was read, belongs to the handshake of a connection seen from its
    /// SYN.
    pub(crate) fn is_handshake(&mut self, direction: Direction) -> bool {
        let saw_syn = self.streams.both().iter().any(|stream| stream.position.saw_syn());
        let messages = self.busy.as_mut().and_then(|busy| busy.messages.as_mut());
        messages.is_some_and(|messages| messages.turns.message(direction)) && saw_syn
    }

    pub(crate) fn session(&mut self) -> TlsSession<'_> {
        let (_, keys, busy) = self.parts();
        TlsSession { keys, negotiation: &mut busy.negotiation }
    }

    pub(crate) fn deadline(&self, limits: &Limits) -> Option<i64> {
        let ends = |direction| [self.end_of_wait(direction, limits), self.end_of_message(direction)];
        Direction::BOTH.into_iter().flat_map(ends).flatten().min()
    }

    fn end_of_message(&self, direction: Direction) -> Option<i64> {
        self.busy.as_ref()?.messages.as_ref()?.sizers.of(direction).as_ref()?.deadline_ns()
    }

    fn end_of_wait(&self, direction: Direction, limits: &Limits) -> Option<i64> {
        let (busy, stream) = (self.busy.as_ref()?.streams.of(direction), self.streams.of(direction));
        let Some(since_ns) = busy.pending.since_ns() else {
            let record = busy.framing.open_record(&stream.walker)?;
            let received_ns = busy.pending.received_ns(record, stream.position.next)?;
            return Some(received_ns.max(stream.walker.last_ns).saturating_add(limits.hole_wait_ns));
        };
        let awaits_start = !stream.position.is_known();
        let wait_ns = if awaits_start { START_WAIT_NS.min(limits.hole_wait_ns) } else { limits.hole_wait_ns };
        Some(since_ns.saturating_add(wait_ns))
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.busy.as_ref().map_or(0, |busy| busy.held_bytes())
    }

    /// Drops the state that a connection at rest does not need, if it rests: TLS was found, no handshake is under way,
    /// nothing is held, and each direction is between two records, inside application data, or without any data.
    pub(crate) fn rest(&mut self) {
        if self.is_tls() && self.busy.as_ref().is_some_and(|busy| busy.is_idle(&self.streams)) {
            self.busy = None;
            // A session whose handshake is over goes on, even where an end has no data to send.
            for stream in [&mut self.streams.to_gateway, &mut self.streams.from_gateway] {
                stream.follows_data |= self.keys.protection.is_some() && stream.walker.version().is_some();
            }
        }
    }

    #[inline]
    pub(crate) fn at_rest(&mut self, direction: Direction) -> Option<(&mut Stream, SessionKeys, &mut PayloadUse)> {
        if self.busy.is_some() {
            return None;
        }
        Some((self.streams.of_mut(direction), self.keys, &mut self.payload))
    }

    /// All parts of the connection, which does not rest from here on.
    fn parts(&mut self) -> (&mut PerDirection<Stream>, &mut SessionKeys, &mut BusyState) {
        let Self { streams, keys, busy, .. } = self;
        let busy = busy.get_or_insert_with(|| BusyState::of(streams));
        (streams, keys, busy)
    }

    fn reassembly(&mut self, direction: Direction) -> Reassembly<'_> {
        let (streams, _, busy) = self.parts();
        let context = context(streams, busy, direction);
        let position = &mut streams.of_mut(direction).position;
        Reassembly { position, pending: &mut busy.streams.of_mut(direction).pending, context }
    }

    fn direction<'a>(&'a mut self, direction: Direction, findings: &'a mut Findings) -> (Reassembly<'a>, Framer<'a>) {
        let is_tls = self.is_tls();
        let Self { streams, payload, busy, .. } = self;
        let busy = busy.get_or_insert_with(|| BusyState::of(streams));
        let context = context(streams, busy, direction);
        let Stream { position, walker, follows_data } = streams.of_mut(direction);
        let BusyState { streams: busy_streams, messages, declared, .. } = &mut **busy;
        let BusyStream { pending, framing, handshake, .. } = busy_streams.of_mut(direction);
        let saw_syn = position.saw_syn();
        (
            Reassembly { position, pending, context },
            Framer {
                direction,
                saw_syn,
                is_tls,
                walker,
                framing,
                handshake,
                follows_data,
                messages,
                declared,
                payload,
                findings,
            },
        )
    }
}

fn context(streams: &PerDirection<Stream>, busy: &BusyState, direction: Direction) -> StreamContext {
    let (own, other) = (streams.of(direction), streams.of(direction.reversed()).position);
    let framing = &busy.streams.of(direction).framing;
    StreamContext {
        other_next: other.is_known().then_some(other.next),
        other_acknowledgement: other.acknowledgement(),
        is_acknowledgement_doubted: other.acknowledged == Acknowledged::LessSince,
        last_ns: own.walker.last_ns,
        record: framing.open_record(&own.walker),
        is_searching: framing.is_searching(),
    }
}

impl BusyState {
    fn of(streams: &PerDirection<Stream>) -> Box<Self> {
        let at_rest = |stream: &Stream| BusyStream {
            pending: PendingSegments::default(),
            framing: Framing::of(&stream.walker),
            handshake: HandshakeReader::default(),
            is_reported_not_tls: false,
        };
        Box::new(Self {
            streams: PerDirection {
                to_gateway: at_rest(&streams.to_gateway),
                from_gateway: at_rest(&streams.from_gateway),
            },
            negotiation: Negotiation::default(),
            queue: Vec::new(),
            messages: None,
            declared: None,
        })
    }

    fn is_idle(&self, streams: &PerDirection<Stream>) -> bool {
        let are_streams_idle = self.streams.both().into_iter().zip(streams.both()).all(|(busy, stream)| {
            busy.pending.is_idle() && busy.handshake.is_idle() && busy.framing.is_idle(&stream.walker)
        });
        self.queue.is_empty() && self.negotiation.is_idle() && are_streams_idle
    }

    fn held_bytes(&self) -> usize {
        // A queue that grows is given room in powers of two; how much it has depends on its past.
        let queued = if self.queue.is_empty() { 0 } else { self.queue.len().next_power_of_two() };
        let streams = self.streams.both().map(|stream| stream.pending.bytes() + stream.handshake.held_bytes());
        let sizers = self.messages.iter().flat_map(|messages| messages.sizers.both());
        let messages: usize = sizers.flatten().map(MessageSizer::held_bytes).sum();
        streams.iter().sum::<usize>() + messages + queued * size_of::<TlsEvent>()
    }

    /// Whether to report an incident: what stands for records once, and that there are none not after that.
    fn may_report(&mut self, incident: Incident, is_tls: bool) -> bool {
        match incident {
            Incident::NotTls | Incident::OpenVpn => self.may_report_not_tls(is_tls),
            Incident::SizedBySegments(end) => {
                let is_new = self.messages.as_mut().is_some_and(|messages| messages.is_new(end));
                // That says it.
                _ = self.may_report_not_tls(is_tls);
                is_new
            }
            _ => true,
        }
    }

    fn may_report_not_tls(&mut self, is_tls: bool) -> bool {
        !is_tls && !std::mem::replace(&mut self.streams.to_gateway.is_reported_not_tls, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_memory_of_a_connection_holds() {
        let (resting, busy) = (size_of::<Connection>(), size_of::<BusyState>());
        assert!(resting <= 160 && busy <= 352, "{resting} bytes, and {busy} while busy");
    }
}
