//! Which protocol a flow carries: by the ends that were declared for it, its first bytes, or a connection that it continues.

use sizeleak_frame::{Flow, Segment, Transport};
use sizeleak_platform::runtime::{Closed, Emit};

use super::RecordSizer;
use crate::chunk::Chunk;
use crate::connection::{Connection, Successor};
use crate::connection_id::{KnownConnections, Sign};
use crate::datagram_flow::{DatagramFlow, ProtocolFlow, Told};
use crate::findings::{Findings, ReadBytes};
use crate::flow_table::FlowTable;
use crate::matter;
use crate::message::{FlowEnds, Found};
use crate::options::{Limits, Options};

impl RecordSizer {
    /// Handles a datagram. Rows of UDP have no flags; those of TCP always have at least one.
    pub(super) fn datagram(&mut self, datagram: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        self.reporter.counters.datagrams += 1;
        if self.datagram_flows.is_full() {
            let oldest = self.datagram_flows.evict_oldest();
            self.reporter.counters.idle_flows += oldest.len() as u64;
            self.end_datagrams(oldest, out)?;
        }
        if self.datagram_flows.is_sweep_due(self.now_ns, self.limits.idle_timeout_ns) {
            let idle = self.datagram_flows.evict_idle(self.now_ns);
            self.reporter.counters.idle_flows += idle.len() as u64;
            self.end_datagrams(idle, out)?;
        }
        let &Segment { flow, time_ns, direction, .. } = datagram;
        let (chunk, mut found) = (Chunk::of(datagram), Found::default());
        // Asked for each datagram, so that they are not forgotten as long as the flow is in use.
        let told = told(&mut self.ends, flow, &self.options, &self.limits);
        let known = self.datagram_flows.find(flow);
        let held = known.as_ref().map_or(0, |known| known.held_bytes());
        let mut is_taken = known.is_some_and(|known| known.take(direction, chunk, told, &mut found));
        if !is_taken {
            let begun = begun(&self.quic_connections, &mut self.datagram_flows, flow, &chunk, told);
            // What may be anything may be in the clear, of which no byte is to be kept for others.
            if let Some(begun) = begun.filter(|begun| begun.is_certain() || self.findings.read.is_none()) {
                if self.datagram_flows.find(flow).is_none() {
                    self.datagram_flows.insert(flow, Box::new(DatagramFlow::new(told)));
                }
                let known = self.datagram_flows.find(flow);
                is_taken = known.is_some_and(|known| known.begin(begun, (direction, chunk), told, &mut found));
            }
        }
        self.reporter.counters.other_datagrams += u64::from(!is_taken);
        if self.findings.read.is_some() {
            self.reporter.datagram_read.extend(found.read.drain(..).map(|place| (datagram.sequence, place)));
        }
        let signs: Vec<Sign> = std::mem::take(&mut found.ids).into_iter().map(Sign::Id).collect();
        if !signs.is_empty() {
            let service = told.ends.map(|ends| Sign::Service(ends.service));
            signs.into_iter().chain(service).for_each(|sign| self.quic_connections.insert(sign, flow));
        }
        if let Some(known) = self.datagram_flows.find(flow) {
            known.count(chunk.length(), is_taken);
            let (before, held) = (held, known.held_bytes());
            if held != before {
                let deadline_ns = time_ns.saturating_add(self.limits.hole_wait_ns);
                self.held_flows.update(flow, Some(deadline_ns), held);
            }
        }
        self.reporter.found(flow, time_ns, found, out)?;
        self.release_beyond_limits(out)
    }

    pub(super) fn end_datagrams(
        &mut self,
        flows: impl IntoIterator<Item = (u64, Box<DatagramFlow>)>,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        for (flow, known) in flows {
            self.held_flows.update(flow, None, 0);
            if let Some(payload) = known.payload() {
                self.reporter.payload_use(flow, self.now_ns, payload, out)?;
            }
            self.reporter.holes(flow, self.now_ns, known.holes(), out)?;
        }
        Ok(())
    }

    /// Learns the ends of a flow, where they decide how it is read.
    pub(super) fn flow(&mut self, flow: &Flow) {
        let &Flow { transport, gateway_port, service, .. } = flow;
        let ends = FlowEnds { transport, gateway_port, service };
        let is_declared =
            self.options.framing_of(&ends).is_some() || matter::is_matter(&ends, &self.options.matter_port);
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

    pub(super) fn declare(&mut self, segment: &Segment<'_>) {
        if let Some(connection) = self.connections.find(segment.flow) {
            let told = told(&mut self.ends, segment.flow, &self.options, &self.limits);
            told.declare(connection, segment, &mut self.findings);
        }
    }

    pub(super) fn connection_after(&mut self, flow: u64, successor: &Successor) -> Connection {
        let told = told(&mut self.ends, flow, &self.options, &self.limits);
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

/// The flow that a datagram begins, if it may be of a known protocol: one that goes on there from other ports, or another.
fn begun(
    connections: &KnownConnections,
    flows: &mut FlowTable<Box<DatagramFlow>>,
    flow: u64,
    chunk: &Chunk<'_>,
    told: Told<'_>,
) -> Option<ProtocolFlow> {
    let shown = connections.flow(chunk.payload, told.ends.map(|ends| ends.service)).filter(|(_, other)| *other != flow);
    let moved = shown.and_then(|(sign, other)| match flows.find(other)?.protocol()? {
        ProtocolFlow::Quic(known) => Some(ProtocolFlow::Quic(known.moved(sign, &told.options.quic_cid))),
        _ => None,
    });
    moved.or_else(|| ProtocolFlow::begin(chunk, told))
}

fn told<'a>(ends: &'a mut FlowTable<FlowEnds>, flow: u64, options: &'a Options, limits: &Limits) -> Told<'a> {
    Told { ends: ends.find(flow).map(|ends| &*ends), options, wait_ns: limits.hole_wait_ns }
}

impl Told<'_> {
    /// Finds a framing for a connection that shows no records: one that is declared for its ports, or shown by its bytes.
    fn declare(&self, connection: &mut Connection, segment: &Segment<'_>, findings: &mut Findings) {
        if connection.has_protocol() {
            return;
        }
        let Options { framing, matter_port: ports, .. } = self.options;
        let (payload, length) = (segment.payload, segment.length.into());
        let shown = || framing.iter().find(|framing| framing.is_shown_by(payload, length));
        if let Some(framing) = self.ends.and_then(|ends| self.options.framing_of(ends)).or_else(shown) {
            if let (Some(read), Some(bytes)) = (&mut findings.read, framing.beginning_of(payload)) {
                let Segment { direction, sequence, .. } = *segment;
                read.push(ReadBytes { direction, sequence, bytes: bytes.into() });
            }
            return connection.declare(Some(framing), ports, findings);
        }
        if self.ends.is_some_and(|ends| matter::is_matter(ends, ports)) {
            connection.declare(None, ports, findings);
        }
    }
}
