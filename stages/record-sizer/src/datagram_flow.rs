//! A UDP or ESP flow by its protocol, which its datagrams show.
//!
//! No datagram decides for good: it may be forged, or look like another protocol by chance. The port's own protocol is the
//! first guess; another is a rival until more datagrams in a row are of it than of what came before.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, PerDirection, Protocol, Transport};

use crate::chunk::Chunk;
use crate::dtls::DtlsFlow;
use crate::findings::PayloadUse;
use crate::matter::{MatterFlow, is_matter};
use crate::message::{FlowEnds, FlowEvent, Found};
use crate::numbered::Holes;
use crate::options::Options;
use crate::quic::{QuicFlow, is_quic};
use crate::tunnels::{TunnelFlow, is_wireguard};

/// The most datagrams that speak for a protocol: one more of another in a row, and it is that. So many are held.
const MOST: u8 = 16;

/// What was told of a flow, and how long messages may be held, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told<'a> {
    pub(crate) ends: Option<&'a FlowEnds>,
    pub(crate) options: &'a Options,
    pub(crate) wait_ns: i64,
}

impl Told<'_> {
    fn own_protocol(self) -> Option<Protocol> {
        let ends = self.ends?;
        match () {
            () if ends.transport == Transport::Esp => Some(Protocol::Esp),
            () if is_matter(ends, &self.options.matter_port) => Some(Protocol::Matter),
            () if is_wireguard(ends) => Some(Protocol::WireGuard),
            () if is_quic(ends, &self.options.quic_port) => Some(Protocol::Quic),
            () => None,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DatagramFlow {
    current: Option<Guess>,
    /// How many more datagrams speak for that than for the rival.
    weight: u8,
    directions: PerDirection<bool>,
    rival: Option<Guess>,
    payload: PayloadUse,
}

/// What a flow may be, and what is to be reported if it is believed.
#[derive(Debug, Serialize, Deserialize)]
struct Guess {
    flow: ProtocolFlow,
    session: Option<FlowEvent>,
    /// What was found in the last datagrams, and when.
    held: Vec<(i64, Vec<FlowEvent>)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ProtocolFlow {
    Dtls(DtlsFlow),
    Quic(QuicFlow),
    Matter(MatterFlow),
    WireGuard(TunnelFlow),
    Esp(TunnelFlow),
}

impl Guess {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        let is_taken = self.flow.take(direction, chunk, found);
        let session = found.events.iter().rfind(|event| matches!(event, FlowEvent::Session(_)));
        self.session = session.cloned().or(self.session.take());
        is_taken
    }
}

impl DatagramFlow {
    /// A flow of which no datagram was taken. Its port speaks for a protocol as one datagram does.
    pub(crate) fn new(told: Told<'_>) -> Self {
        Self { weight: told.own_protocol().is_some().into(), ..Self::default() }
    }

    pub(crate) fn protocol(&self) -> Option<&ProtocolFlow> {
        self.current.as_ref().map(|current| &current.flow)
    }

    /// Takes a datagram; false if it is of no protocol that this may be of.
    pub(crate) fn take(&mut self, direction: Direction, chunk: Chunk<'_>, told: Told<'_>, found: &mut Found) -> bool {
        // Without its fixed bit, a packet of QUIC may be anybody's.
        let is_anybodys = chunk.payload.first().is_some_and(|first| first & 0xc0 == 0)
            && self.protocol().is_some_and(ProtocolFlow::is_quic);
        let is_anothers = is_anybodys
            && ProtocolFlow::begin(&chunk, told).is_some_and(|begun| begun.is_certain() && !begun.is_quic());
        if !is_anothers && self.current.as_mut().is_some_and(|current| current.take(direction, chunk, found)) {
            self.confirm(direction, told);
            self.rival.iter_mut().for_each(|rival| rival.held.clear());
            return true;
        }
        let mut taken = Found::default();
        let is_rivals = self.rival.as_mut().is_some_and(|rival| rival.take(direction, chunk, &mut taken));
        is_rivals && self.challenge((direction, chunk.time_ns), told, taken, found)
    }

    /// Takes a datagram that may be of a protocol that is neither the present one nor the rival.
    pub(crate) fn begin(
        &mut self,
        begun: ProtocolFlow,
        (direction, chunk): (Direction, Chunk<'_>),
        told: Told<'_>,
        found: &mut Found,
    ) -> bool {
        if self.current.iter().chain(&self.rival).any(|known| known.flow.protocol() == begun.protocol()) {
            return false;
        }
        let mut taken = Found::default();
        let is_taken = self
            .rival
            .insert(Guess { flow: begun, session: None, held: Vec::new() })
            .take(direction, chunk, &mut taken);
        self.challenge((direction, chunk.time_ns), told, taken, found) && is_taken
    }

    /// Lets the rival, which has taken a datagram, take the place of the present protocol, if no more speaks for that. What
    /// its port says is not outnumbered.
    fn challenge(
        &mut self,
        (direction, time_ns): (Direction, i64),
        told: Told<'_>,
        taken: Found,
        found: &mut Found,
    ) -> bool {
        let Some(rival) = &mut self.rival else { return false };
        let is_own = told.own_protocol() == Some(rival.flow.protocol());
        if rival.held.len() > MOST.into() {
            rival.held.remove(0);
        }
        rival.held.push((time_ns, taken.events));
        found.read.extend(taken.read);
        if !is_own && (!rival.flow.is_certain() || self.weight > 0) {
            self.weight -= u8::from(rival.flow.is_certain());
            return false;
        }
        // Later than this after others, messages would be of another time.
        let is_recent = |(held_ns, _): &(i64, _)| *held_ns >= time_ns.saturating_sub(told.wait_ns);
        let held: Vec<_> = std::mem::take(&mut rival.held).into_iter().filter(is_recent).collect();
        (found.recognised, found.ids, found.repeated) = (held.len() as u64 - 1, taken.ids, taken.repeated);
        let events: Vec<_> = held.into_iter().flat_map(|(_, events)| events).collect();
        let session = rival.session.clone().filter(|session| !events.contains(session));
        found.events.extend(session.into_iter().chain(events));
        std::mem::swap(&mut self.current, &mut self.rival);
        (self.weight, self.directions, self.payload) = (0, PerDirection::default(), PayloadUse::default());
        self.confirm(direction, told);
        true
    }

    /// Counts a datagram of the present protocol. Those of one end may all be forged.
    fn confirm(&mut self, direction: Direction, told: Told<'_>) {
        *self.directions.of_mut(direction) = true;
        let is_own = self.protocol().map(ProtocolFlow::protocol) == told.own_protocol();
        let weight = if self.directions.all(|has_one| *has_one) { self.weight.saturating_add(1) } else { 0 };
        self.weight = weight.clamp(is_own.into(), MOST);
    }

    pub(crate) fn count(&mut self, bytes: u64, is_taken: bool) {
        if self.current.is_some() {
            self.payload.doubt(bytes);
            self.payload.find(if is_taken { bytes } else { 0 });
        }
    }

    /// What of its payload was used, if it is of QUIC, which shares its ports with nothing.
    pub(crate) fn payload(&self) -> Option<PayloadUse> {
        self.protocol().filter(|current| current.is_quic()).map(|_| self.payload)
    }

    /// How many of its messages are missing by their numbers, where these are in the clear.
    pub(crate) fn holes(&self) -> PerDirection<Holes> {
        match self.protocol() {
            Some(ProtocolFlow::Dtls(flow)) => flow.holes(),
            Some(ProtocolFlow::Matter(flow)) => flow.seen.holes(),
            Some(ProtocolFlow::WireGuard(flow) | ProtocolFlow::Esp(flow)) => flow.seen.holes(),
            Some(ProtocolFlow::Quic(_)) | None => PerDirection::default(),
        }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let of_guess = |guess: &Guess| {
            let events: usize = guess.held.iter().map(|(_, events)| 1 + events.len()).sum();
            events * size_of::<FlowEvent>()
                + if let ProtocolFlow::Quic(flow) = &guess.flow { flow.held_bytes() } else { 0 }
        };
        self.current.iter().chain(&self.rival).map(of_guess).sum()
    }

    pub(crate) fn release(&mut self) {
        for guess in self.current.iter_mut().chain(&mut self.rival) {
            guess.held = Vec::new();
            if let ProtocolFlow::Quic(flow) = &mut guess.flow {
                flow.release();
            }
        }
    }
}

impl ProtocolFlow {
    /// A flow that begins with this datagram, if its protocol is one of these. Ports decide before shapes, and of shapes
    /// those that say most. Nearly every datagram may be a packet of ESP, whose port others use as well.
    pub(crate) fn begin(chunk: &Chunk<'_>, Told { ends, options, .. }: Told<'_>) -> Option<Self> {
        MatterFlow::begin(chunk, ends, &options.matter_port)
            .map(Self::Matter)
            .or_else(|| TunnelFlow::begin_wireguard(chunk, ends).map(Self::WireGuard))
            .or_else(|| DtlsFlow::begin(chunk).map(Self::Dtls))
            .or_else(|| QuicFlow::begin(chunk, ends, options).map(Self::Quic))
            .or_else(|| TunnelFlow::begin_esp(chunk, ends).map(Self::Esp))
    }

    /// Whether datagrams have shown its protocol, more than a port can.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Quic(flow) => flow.is_certain(),
            Self::Dtls(flow) => flow.is_certain(),
            Self::Matter(_) | Self::WireGuard(_) | Self::Esp(_) => true,
        }
    }

    fn protocol(&self) -> Protocol {
        match self {
            Self::Dtls(_) => Protocol::Dtls,
            Self::Quic(_) => Protocol::Quic,
            Self::Matter(_) => Protocol::Matter,
            Self::WireGuard(_) => Protocol::WireGuard,
            Self::Esp(_) => Protocol::Esp,
        }
    }

    fn is_quic(&self) -> bool {
        matches!(self, Self::Quic(_))
    }

    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        match self {
            Self::Dtls(flow) => flow.take(direction, chunk, found),
            Self::Quic(flow) => flow.take(direction, chunk, found),
            Self::Matter(flow) => flow.take(direction, chunk, found),
            Self::WireGuard(flow) => flow.take_wireguard(direction, chunk, found),
            Self::Esp(flow) => flow.take_esp(direction, chunk, found),
        }
    }
}
