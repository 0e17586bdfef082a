//! Which protocol a flow carries: by the ends that were declared for it, its first bytes, or a connection that it continues.

use sizeleak_frame::{Flow, Segment, Transport};
use sizeleak_platform::runtime::{Closed, Emit};

use super::RecordSizer;
use crate::chunk::Chunk;
use crate::connection::{Connection, Successor};
use crate::datagram_flow::DatagramFlow;
use crate::findings::{Findings, StreamBytes};
use crate::matter;
use crate::message::{FlowEnds, Found, MessageFramer};
use crate::options::Declared;
use crate::quic::known_connections::Sign;

impl RecordSizer {
    /// Handles a datagram. Rows of UDP have no flags; those of TCP always have at least one.
    pub(super) fn datagram(&mut self, datagram: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        let counters = &mut self.reporter.counters;
        counters.datagrams += 1;
        if self.datagram_flows.is_full() {
            counters.idle_flows += self.datagram_flows.evict_oldest().len() as u64;
        }
        if self.datagram_flows.is_sweep_due(self.now_ns, self.limits.idle_timeout_ns) {
            counters.idle_flows += self.datagram_flows.evict_idle(self.now_ns).len() as u64;
        }
        let &Segment { flow, time_ns, direction, .. } = datagram;
        let (chunk, mut found) = (Chunk::of(datagram), Found::default());
        // Asked for each datagram, so that they are not forgotten as long as the flow is in use.
        let ends = self.ends.find(flow).copied();
        let known = self.datagram_flows.find(flow);
        let is_taken = known.is_some_and(|known| known.take(direction, chunk, &mut found))
            || self.begin(flow, ends.as_ref(), &chunk).is_some_and(|begun| begun.take(direction, chunk, &mut found));
        self.reporter.counters.other_datagrams += u64::from(!is_taken);
        let signs: Vec<Sign> = std::mem::take(&mut found.ids).into_iter().map(Sign::Id).collect();
        if !signs.is_empty() {
            let service = ends.map(|ends| Sign::Service(ends.service));
            signs.into_iter().chain(service).for_each(|sign| self.quic_connections.insert(sign, flow));
        }
        self.reporter.found(flow, time_ns, found, out)
    }

    /// The flow that a datagram begins, unless it is of no known protocol, or the flow has one: one datagram that may be
    /// forged ends no session.
    fn begin(&mut self, flow: u64, ends: Option<&FlowEnds>, chunk: &Chunk<'_>) -> Option<&mut DatagramFlow> {
        let known = self.datagram_flows.find(flow).map(|known| known.is_certain());
        if known == Some(true) {
            return None;
        }
        let shown = self
            .quic_connections
            .flow(chunk.payload, ends.map(|ends| ends.service))
            .filter(|(_, other)| *other != flow);
        let moved = shown.and_then(|(sign, other)| match &**self.datagram_flows.find(other)? {
            DatagramFlow::Quic(known) => Some(DatagramFlow::Quic(known.moved(sign, &self.declared.quic_ids))),
            _ => None,
        });
        let begun = moved.or_else(|| DatagramFlow::begin(chunk, ends, &self.declared))?;
        // What only may be QUIC may be anything in the clear, of which no byte is to be kept for others.
        let is_read_for_others = self.findings.read.is_some();
        if !begun.is_certain() && (is_read_for_others || known.is_some()) {
            return None;
        }
        Some(self.datagram_flows.insert(flow, Box::new(begun)))
    }

    /// Learns the ends of a flow, where they decide how it is read.
    pub(super) fn flow(&mut self, flow: &Flow) {
        let &Flow { transport, gateway_port, service, .. } = flow;
        let ends = FlowEnds { transport, gateway_port, service };
        let is_declared =
            self.declared.framing(&ends).is_some() || matter::is_matter(&ends, &self.declared.matter_ports);
        if flow.transport == Transport::Tcp && !is_declared {
            return;
        }
        if self.ends.is_full() {
            self.reporter.counters.evicted_flows += self.ends.evict_oldest().len() as u64;
        }
        if self.ends.find(flow.flow).is_none() {
            self.ends.insert(flow.flow, ends);
        }
    }

    /// Finds a framing for the connection of a segment, if it shows no records.
    pub(super) fn declare(&mut self, segment: &Segment<'_>) {
        if let Some(connection) = self.connections.find(segment.flow) {
            let told = Told { declared: &self.declared, ends: self.ends.find(segment.flow).map(|ends| &*ends) };
            told.declare(connection, segment, &mut self.findings);
        }
    }

    /// The connection that takes the place of one of this flow.
    pub(super) fn connection_after(&mut self, flow: u64, successor: &Successor) -> Connection {
        let told = Told { declared: &self.declared, ends: self.ends.find(flow).map(|ends| &*ends) };
        let mut connection = Connection::new(self.limits.burst_gap_ns);
        connection.open_both(successor.syns(), &mut self.findings);
        for segment in successor.segments() {
            told.declare(&mut connection, &segment, &mut self.findings);
            // Whatever does not fit stays in its rivals.
            connection.segment(&segment, &mut self.findings);
        }
        connection
    }
}

/// What was said of a flow's protocol.
struct Told<'a> {
    declared: &'a Declared,
    ends: Option<&'a FlowEnds>,
}

impl Told<'_> {
    /// Finds a framing for a connection that shows no records: one that is declared for its ports, or shown by its bytes.
    fn declare(&self, connection: &mut Connection, segment: &Segment<'_>, findings: &mut Findings) {
        if connection.has_protocol() {
            return;
        }
        let Declared { framings, matter_ports: ports, .. } = self.declared;
        let (payload, length) = (segment.payload, segment.length.into());
        let shown = || framings.iter().find(|framing| framing.is_shown_by(payload, length));
        if let Some(framing) = self.ends.and_then(|ends| self.declared.framing(ends)).or_else(shown) {
            if let (Some(read), Some(bytes)) = (&mut findings.read, framing.beginning_of(payload)) {
                let Segment { direction, sequence, .. } = *segment;
                read.push(StreamBytes { direction, sequence, bytes: bytes.into() });
            }
            return connection.declare(Some(framing), ports);
        }
        if self.ends.is_some_and(|ends| matter::is_matter(ends, ports)) {
            connection.declare(None, ports);
        }
    }
}
