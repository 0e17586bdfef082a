//! One TCP connection: both directions put in order and framed, and the session between them.

use sizeleak_frame::{Direction, Segment};

use crate::finding::{Event, Findings, Incident, merge};
use crate::framer::{Framed, Framer};
use crate::handshake::{ClientHello, Hello, Messages};
use crate::options::Limits;
use crate::piece::Piece;
use crate::reassembly::{Opening, Ordered, Reassembly};
use crate::record::Sized;
use crate::session::Session;
use crate::steady::{Steady, SteadyStream, StreamSnapshot};

/// A connection seen from the middle waits so long for segments that should have come first, in nanoseconds.
const BEGINNING_WITHIN: i64 = 100_000_000;

/// So many events wait for the other direction at most.
const MOST_QUEUED: usize = 1024;

/// The state of a connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    to_gateway: Stream,
    from_gateway: Stream,
    session: Session,
    /// What happened in one direction while the other waits.
    queue: Vec<Event>,
    called_not_tls: bool,
}

#[derive(Debug, Default)]
struct Stream {
    reassembly: Reassembly,
    framer: Option<Framer>,
    messages: Messages,
    /// When the last of what is in order was captured.
    latest_ns: Option<i64>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Directions that end inside a record.
    pub(crate) incomplete: u64,
    /// Whether payload was seen, but no record.
    pub(crate) without_tls: bool,
}

impl Connection {
    /// The session between the two ends.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// What a SYN means to the connection: another one needs a new state.
    pub(crate) fn opening(&self, segment: &Segment<'_>) -> Opening {
        let own = self.stream(segment.direction).reassembly.opening(segment.sequence);
        let other = &self.stream(segment.direction.reversed()).reassembly;
        match own {
            // A stream seen from its middle may only have lost its SYN; one that has data and another SYN is over.
            Opening::First if other.saw_beginning() || !other.has_data() => Opening::First,
            Opening::First if segment.flags & Segment::ACK != 0 => Opening::First,
            Opening::First => Opening::Another,
            other => other,
        }
    }

    /// Begins a direction.
    pub(crate) fn open(&mut self, direction: Direction, sequence: u32, findings: &mut Findings) {
        if !self.stream(direction.reversed()).reassembly.has_data() {
            self.session = Session::from_beginning();
        }
        let (reassembly, mut lane) = self.stream_mut(direction).split(direction, findings);
        lane.opened = true;
        reassembly.open(sequence, &mut lane);
    }

    /// Takes what is left of a piece that is next in its direction.
    pub(crate) fn go_on(&mut self, direction: Direction, piece: Piece<'_>, findings: &mut Findings) {
        let (_, mut lane) = self.stream_mut(direction).split(direction, findings);
        lane.piece(piece);
    }

    /// What there is to it, if it is in its steady state.
    pub(crate) fn steady(&self) -> Option<Steady> {
        if !self.queue.is_empty() || !self.is_tls() {
            return None;
        }
        let [to_gateway, from_gateway] = [&self.to_gateway, &self.from_gateway].map(Stream::steady);
        Some(Steady::new(to_gateway?, from_gateway?, self.session.agreement()?))
    }

    /// Takes a segment with payload.
    #[inline]
    pub(crate) fn data(&mut self, segment: &Segment<'_>, findings: &mut Findings) {
        let (reassembly, mut lane) = self.stream_mut(segment.direction).split(segment.direction, findings);
        reassembly.take(segment, &mut lane);
    }

    /// Gives up what has waited too long at this time.
    pub(crate) fn expire(&mut self, now_ns: i64, limits: &Limits, findings: &mut Findings) {
        for direction in Direction::BOTH {
            while self.stream(direction).deadline(limits).is_some_and(|deadline| deadline <= now_ns) {
                self.give_up(direction, findings);
            }
        }
    }

    /// Gives up everything that waits or is held.
    pub(crate) fn release(&mut self, findings: &mut Findings) {
        for direction in Direction::BOTH {
            while self.give_up(direction, findings) {}
            self.stream_mut(direction).messages.lost();
        }
    }

    /// Ends the connection, after [`release`](Self::release).
    pub(crate) fn ending(&self) -> Ending {
        let streams = [&self.to_gateway, &self.from_gateway];
        let framers = || streams.iter().filter_map(|stream| stream.framer.as_ref());
        Ending {
            incomplete: framers().filter(|framer| framer.is_inside()).count() as u64,
            without_tls: framers().count() > 0 && !self.is_tls(),
        }
    }

    /// Whether a record was found in either direction.
    pub(crate) fn is_tls(&self) -> bool {
        [&self.to_gateway, &self.from_gateway].iter().any(|stream| stream.framer.as_ref().is_some_and(Framer::is_tls))
    }

    /// Whether to call it no TLS: where no record was found, and once only.
    pub(crate) fn may_be_called_not_tls(&mut self) -> bool {
        !self.is_tls() && !std::mem::replace(&mut self.called_not_tls, true)
    }

    /// When the first of what waits has waited too long.
    pub(crate) fn deadline(&self, limits: &Limits) -> Option<i64> {
        let deadlines = [self.to_gateway.deadline(limits), self.from_gateway.deadline(limits)];
        deadlines.into_iter().flatten().min()
    }

    /// Bytes of memory that are held for a while only.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        let streams = self.to_gateway.held() + self.from_gateway.held();
        streams + self.queue.capacity() * size_of::<Event>()
    }

    /// The events to act on now, oldest first: none while a direction waits, so that the two stay in order.
    pub(crate) fn settle(&mut self, findings: &mut Findings) {
        let waits = self.to_gateway.reassembly.held() > 0 || self.from_gateway.reassembly.held() > 0;
        if waits && self.queue.len() < MOST_QUEUED {
            self.queue.append(&mut findings.events);
        } else if !self.queue.is_empty() {
            let mut events = std::mem::take(&mut self.queue);
            events.append(&mut findings.events);
            findings.events = merge(events);
        }
    }

    fn give_up(&mut self, direction: Direction, findings: &mut Findings) -> bool {
        let (reassembly, mut lane) = self.stream_mut(direction).split(direction, findings);
        reassembly.give_up(&mut lane)
    }

    fn stream(&self, direction: Direction) -> &Stream {
        if direction == Direction::ToGateway { &self.to_gateway } else { &self.from_gateway }
    }

    fn stream_mut(&mut self, direction: Direction) -> &mut Stream {
        if direction == Direction::ToGateway { &mut self.to_gateway } else { &mut self.from_gateway }
    }
}

/// A connection that leaves its steady state.
impl From<Steady> for Connection {
    fn from(steady: Steady) -> Self {
        let ([to_gateway, from_gateway], agreement) = steady.into_standing();
        Self {
            to_gateway: to_gateway.into(),
            from_gateway: from_gateway.into(),
            session: Session::after(agreement),
            ..Self::default()
        }
    }
}

impl From<StreamSnapshot> for Stream {
    fn from(StreamSnapshot { position, latest_ns, walk }: StreamSnapshot) -> Self {
        let framer = walk.map(|(minor, walker)| Framer::in_step(minor, walker));
        Self { reassembly: Reassembly::standing_at(position), framer, latest_ns, ..Self::default() }
    }
}

impl Stream {
    fn steady(&self) -> Option<SteadyStream> {
        let walk = match &self.framer {
            Some(framer) => Some(framer.walker().map(|(minor, walker)| (minor, *walker))?),
            None => None,
        };
        let position = self.reassembly.position().filter(|_| self.messages.is_between())?;
        SteadyStream::of(&StreamSnapshot { position, latest_ns: self.latest_ns, walk })
    }

    fn deadline(&self, limits: &Limits) -> Option<i64> {
        let patience = if self.reassembly.is_unanchored() { BEGINNING_WITHIN } else { limits.hole_wait_ns };
        self.reassembly.waits_since().map(|since| since.saturating_add(patience.min(limits.hole_wait_ns)))
    }

    fn held(&self) -> usize {
        self.reassembly.held() + self.messages.held()
    }

    fn split<'a>(
        &'a mut self,
        direction: Direction,
        findings: &'a mut Findings,
    ) -> (&'a mut Reassembly, FramerInput<'a>) {
        let opened = self.reassembly.saw_beginning();
        let sink = Sink { messages: &mut self.messages, direction, findings };
        (&mut self.reassembly, FramerInput { framer: &mut self.framer, opened, latest_ns: &mut self.latest_ns, sink })
    }
}

/// Leads what reassembly puts in order to the framer.
struct FramerInput<'a> {
    framer: &'a mut Option<Framer>,
    opened: bool,
    latest_ns: &'a mut Option<i64>,
    sink: Sink<'a>,
}

/// Leads what the framer finds to the findings.
struct Sink<'a> {
    messages: &'a mut Messages,
    direction: Direction,
    findings: &'a mut Findings,
}

impl Ordered for FramerInput<'_> {
    #[inline]
    fn piece(&mut self, mut piece: Piece<'_>) {
        // What came too early is there for its reader when all before it is: so time goes the way of the stream.
        piece.time_ns = self.latest_ns.map_or(piece.time_ns, |latest| latest.max(piece.time_ns));
        *self.latest_ns = Some(piece.time_ns);
        framer(self.framer, self.opened).piece(piece, &mut self.sink);
    }

    fn gap(&mut self, length: u64, time_ns: i64) {
        self.sink.findings.tell(time_ns, Incident::Gap { bytes: length });
        framer(self.framer, self.opened).gap(length, &mut self.sink);
    }

    fn conflict(&mut self, time_ns: i64) {
        self.sink.findings.tell(time_ns, Incident::Conflict);
    }

    fn repeated(&mut self) {
        self.sink.findings.repeated += 1;
    }

    fn early(&mut self) {
        self.sink.findings.early += 1;
    }
}

#[inline]
fn framer(framer: &mut Option<Framer>, opened: bool) -> &mut Framer {
    framer.get_or_insert_with(|| if opened { Framer::at_beginning() } else { Framer::in_the_middle() })
}

impl Framed for Sink<'_> {
    fn handshake(&mut self, bytes: &[u8], time_ns: i64) {
        let (direction, events) = (self.direction, &mut self.findings.events);
        self.messages.take(bytes, |hello| events.push(Event::Hello { time_ns, direction, hello: Box::new(hello) }));
    }

    fn handshake_lost(&mut self) {
        self.messages.lost();
    }

    fn old_hello(&mut self, time_ns: i64) {
        let hello = Box::new(Hello::Client(ClientHello::default()));
        self.findings.events.push(Event::Hello { time_ns, direction: self.direction, hello });
    }

    #[inline]
    fn record(&mut self, record: Sized) {
        self.messages.end_of_record();
        self.findings.events.push(Event::Record { direction: self.direction, record });
    }

    fn found(&mut self, skipped: u64, time_ns: i64) {
        self.messages.restart();
        self.findings.tell(time_ns, Incident::Resync { skipped });
    }

    fn malformed(&mut self, time_ns: i64) {
        self.findings.tell(time_ns, Incident::Malformed);
    }

    fn not_tls(&mut self, time_ns: i64) {
        self.findings.tell(time_ns, Incident::NotTls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the documented limit of memory is reckoned with, where something goes on in all connections.
    #[test]
    fn a_connection_is_small() {
        let bytes = size_of::<Connection>();
        assert!(bytes <= 320, "{bytes} bytes");
    }
}
