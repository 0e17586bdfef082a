//! The stage: TCP segments and UDP datagrams in, TLS sessions and records out. Segments whose time the rest of the traffic does not
//! confirm wait for it, and a step of all times ends what waits for a time that will not come soon.

mod fast;
mod protocols;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Flow, Frame, Notice, OwnedSegment, PerDirection, Segment, Segments, what};
use sizeleak_platform::runtime::{
    ClockEvent, Closed, ConfigureError, Emit, Node, Runnable, Stage, StageError, StageOptions, StateError,
    TrafficClock, decode_state, describe_odd_time, encode_state,
};

use crate::connection::{Connection, Successor};
use crate::connection_id::KnownConnections;
use crate::datagram_flow::DatagramFlow;
use crate::findings::{Findings, ReadBytes};
use crate::flow_table::{FlowTable, HeldFlows};
use crate::message::FlowEnds;
use crate::options::{Limits, Options};
use crate::reporter::Reporter;
use crate::rivals::WINDOW;

/// How far times may go back, in nanoseconds: the buffers of several interfaces are written with delays of about a
/// second.
const LAG_NS: i64 = 2_000_000_000;

#[derive(Debug, Serialize, Deserialize)]
pub struct RecordSizer {
    #[serde(skip)]
    limits: Limits,
    #[serde(skip)]
    options: Options,
    connections: FlowTable<Connection>,
    /// Flows of datagrams whose protocol is known, or may be.
    datagram_flows: FlowTable<Box<DatagramFlow>>,
    /// The ends of flows whose protocol they may show.
    ends: FlowTable<FlowEnds>,
    quic_connections: KnownConnections,
    /// The sequence numbers of the SYNs of connections without data: a flood of these must not evict the others.
    syns: FlowTable<PerDirection<Option<u32>>>,
    held_flows: HeldFlows,
    /// Empty between two segments.
    #[serde(skip)]
    findings: Findings,
    reporter: Reporter,
    clock: TrafficClock<OwnedSegment>,
    now_ns: i64,
}

impl RecordSizer {
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        let (limits, flows) = (options.limits()?, options.max_flows);
        Ok(Self {
            limits,
            connections: FlowTable::new(flows),
            options: options.checked()?,
            datagram_flows: FlowTable::new(flows / 4),
            // `flow-filter` announces no flow again that it has not forgotten itself.
            ends: FlowTable::new(flows.saturating_mul(4)),
            quic_connections: KnownConnections::default(),
            syns: FlowTable::new(flows),
            held_flows: HeldFlows::default(),
            findings: Findings::default(),
            reporter: Reporter::default(),
            clock: TrafficClock::new(LAG_NS),
            now_ns: i64::MIN,
        })
    }

    /// Notes which bytes it reads, for [`RecordSizer::take_read_bytes`]. What it finds is the same, at less speed.
    #[must_use]
    pub fn noting_read_bytes(mut self) -> Self {
        self.findings.read = Some(Vec::new());
        self
    }

    /// The bytes of TCP streams that were read since the last call, by flow. Those that prove a record boundary are
    /// known only once it is proven.
    pub fn take_read_bytes(&mut self) -> Vec<(u64, ReadBytes)> {
        std::mem::take(&mut self.reporter.read)
    }

    /// The bytes of datagrams that were read since the last call, by their places in these; and the sequence numbers of
    /// their rows, which say nothing else. A datagram of an odd time is read later than it came.
    pub fn take_datagram_read_bytes(&mut self) -> Vec<(u32, Range<usize>)> {
        std::mem::take(&mut self.reporter.datagram_read)
    }

    /// Bytes of memory that segments out of order, incomplete hellos and the like need now.
    pub fn held_bytes(&self) -> usize {
        self.held_flows.bytes
    }

    /// Counts a segment or datagram, does the work that is due at its time, and handles it.
    #[inline]
    fn segment(&mut self, segment: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        self.reporter.counters.segment(segment);
        self.now_ns = segment.time_ns;
        self.expire(out)?;
        if segment.flags == 0 {
            return self.datagram(segment, out);
        }
        // What a reset carries is a text about its cause (RFC 9293, section 3.5.3), and no part of the stream.
        let is_reset = segment.flags & Segment::RST != 0;
        let segment = &if is_reset { Segment { length: 0, payload: &[], ..*segment } } else { *segment };
        if segment.length == 0 && segment.flags & Segment::SYN == 0 {
            let says_missing = self.says_missing(segment);
            if says_missing && let Some(connection) = self.connections.find(segment.flow) {
                connection.note_missing(segment);
            }
            // An acknowledgement matters to what is held.
            let matters = (says_missing || self.held_flows.bytes > 0)
                && self.connections.find(segment.flow).is_some_and(|connection| connection.held_bytes() > 0);
            return if matters { self.tcp_segment(segment, out) } else { Ok(()) };
        }
        if self.is_eviction_due() {
            self.evict(out)?;
        }
        self.tcp_segment(segment, out)
    }

    fn tcp_segment(&mut self, segment: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        let findings = &mut self.findings;
        let connection = match self.connections.find(segment.flow) {
            Some(connection) => connection,
            None if segment.length == 0 => {
                self.keep_syn(segment);
                return Ok(());
            }
            None => {
                let syns = self.syns.remove(segment.flow).unwrap_or_default();
                let connection = self.connections.insert(segment.flow, Connection::new(self.limits.burst_gap_ns));
                connection.open_both(plausible_syns(syns, segment), findings);
                connection
            }
        };
        if segment.flags & Segment::SYN != 0 {
            connection.syn(segment, findings);
        }
        if connection.held_bytes() > 0
            && let Some(successor) = connection.acknowledge(segment, findings)
        {
            self.supersede(segment.flow, &successor, segment.time_ns, out)?;
        }
        if segment.length > 0 {
            self.declare(segment);
        }
        if segment.length > 0
            && let Some(connection) = self.connections.find(segment.flow)
            && let Some(successor) = connection.segment(segment, &mut self.findings)
        {
            self.supersede(segment.flow, &successor, segment.time_ns, out)?;
        }
        self.report_and_release(segment.flow, out)
    }

    #[inline]
    fn says_missing(&self, segment: &Segment<'_>) -> bool {
        self.connections.look_up(segment.flow).is_some_and(|connection| connection.says_missing(segment) != [false; 2])
    }

    fn supersede(&mut self, flow: u64, successor: &Successor, time_ns: i64, out: &mut dyn Emit) -> Result<(), Closed> {
        let Some(connection) = self.connections.find(flow) else { return Ok(()) };
        close((flow, connection), time_ns, &mut self.findings, &mut self.reporter, out)?;
        let next = self.connection_after(flow, successor);
        if let Some(connection) = self.connections.find(flow) {
            *connection = next;
        }
        Ok(())
    }

    /// Keeps the SYN of a connection that has no data yet; one that differs from an earlier one replaces it.
    fn keep_syn(&mut self, segment: &Segment<'_>) {
        if self.syns.find(segment.flow).is_none() {
            self.syns.insert(segment.flow, PerDirection::default());
        }
        let Some(syns) = self.syns.find(segment.flow) else { return };
        if syns.of(segment.direction).is_some_and(|sequence| sequence != segment.sequence) {
            *syns = PerDirection::default();
        }
        *syns.of_mut(segment.direction) = Some(segment.sequence);
    }

    fn report_and_release(&mut self, flow: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        if self.report(flow, out)? > self.options.max_flow_bytes {
            self.release(flow, out)?;
        }
        self.release_beyond_limits(out)
    }

    /// Releases what flows hold together beyond the limit, that which waits for longest first.
    fn release_beyond_limits(&mut self, out: &mut dyn Emit) -> Result<(), Closed> {
        while self.held_flows.bytes > self.options.max_bytes {
            let Some(flow) = self.held_flows.first() else { break };
            self.release(flow, out)?;
        }
        Ok(())
    }

    /// Reports what was found in a connection; returns how many bytes it holds. One that needs nothing more rests.
    fn report(&mut self, flow: u64, out: &mut dyn Emit) -> Result<usize, Closed> {
        let Some(connection) = self.connections.find(flow) else { return Ok(0) };
        self.reporter.findings(flow, connection, &mut self.findings, out)?;
        let held = connection.held_bytes();
        self.held_flows.update(flow, connection.deadline(&self.limits), held);
        if held == 0 {
            connection.rest();
        }
        Ok(held)
    }

    #[inline]
    fn expire(&mut self, out: &mut dyn Emit) -> Result<(), Closed> {
        while let Some(flow) = self.held_flows.overdue(self.now_ns) {
            if let Some(connection) = self.connections.find(flow) {
                connection.expire(self.now_ns, &self.limits, &mut self.findings);
                self.report(flow, out)?;
            } else {
                self.release(flow, out)?;
            }
        }
        Ok(())
    }

    /// Gives up all that a flow holds, because memory is needed.
    fn release(&mut self, flow: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        let mut held = 0;
        if let Some(connection) = self.connections.find(flow) {
            held = connection.held_bytes() as u64;
            connection.release(self.now_ns, &mut self.findings);
            self.reporter.findings(flow, connection, &mut self.findings, out)?;
        } else if let Some(known) = self.datagram_flows.find(flow) {
            held = known.held_bytes() as u64;
            known.release();
        }
        self.held_flows.update(flow, None, 0);
        self.reporter.counters.evicted_bytes += held;
        let detail = format!("{held} bytes were held back for missing ones: they are not waited for any longer");
        self.reporter.notice(flow, self.now_ns, (what::EVICTED, Some(held), detail), out)
    }

    #[inline]
    fn is_eviction_due(&mut self) -> bool {
        let (now_ns, timeout_ns) = (self.now_ns, self.limits.idle_timeout_ns);
        self.connections.is_full()
            || self.connections.is_sweep_due(now_ns, timeout_ns)
            || self.syns.is_full()
            || self.syns.is_sweep_due(now_ns, timeout_ns)
    }

    #[cold]
    fn evict(&mut self, out: &mut dyn Emit) -> Result<(), Closed> {
        let (now_ns, timeout_ns) = (self.now_ns, self.limits.idle_timeout_ns);
        if self.syns.is_full() {
            self.reporter.counters.idle_flows += self.syns.evict_oldest().len() as u64;
        }
        if self.syns.is_sweep_due(now_ns, timeout_ns) {
            self.reporter.counters.idle_flows += self.syns.evict_idle(now_ns).len() as u64;
        }
        if self.connections.is_sweep_due(now_ns, timeout_ns) {
            let idle = self.connections.evict_idle(now_ns);
            self.reporter.counters.idle_flows += idle.len() as u64;
            self.end(idle, out)?;
        }
        if !self.connections.is_full() {
            return Ok(());
        }
        let oldest = self.connections.evict_oldest();
        if self.reporter.counters.evicted_flows == 0 {
            let detail = format!(
                "more than {} flows at once (`max-flows`): those silent for longest are forgotten; more of these are \
                 only counted",
                self.options.max_flows
            );
            out.emit(Notice { time_ns: Some(now_ns), ..Notice::new(Self::NAME, what::EVICTED, detail) }.into())?;
        }
        self.reporter.counters.evicted_flows += oldest.len() as u64;
        self.end(oldest, out)
    }

    fn end(
        &mut self,
        connections: impl IntoIterator<Item = (u64, Connection)>,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        for (flow, mut connection) in connections {
            while let Some(successor) = connection.likely_successor(&mut self.findings) {
                close((flow, &mut connection), self.now_ns, &mut self.findings, &mut self.reporter, out)?;
                connection = self.connection_after(flow, &successor);
            }
            close((flow, &mut connection), self.now_ns, &mut self.findings, &mut self.reporter, out)?;
            self.held_flows.update(flow, None, 0);
        }
        Ok(())
    }
}

fn close(
    (flow, connection): (u64, &mut Connection),
    time_ns: i64,
    findings: &mut Findings,
    reporter: &mut Reporter,
    out: &mut dyn Emit,
) -> Result<(), Closed> {
    connection.release(time_ns, findings);
    reporter.findings(flow, connection, findings, out)?;
    reporter.ending(flow, time_ns, connection.ending(), out)
}

/// Those SYNs that the first data of a connection may follow: others may be forged.
fn plausible_syns(syns: PerDirection<Option<u32>>, data: &Segment<'_>) -> PerDirection<Option<u32>> {
    let mut plausible = PerDirection::default();
    let next = [Some(data.sequence), data.acknowledgement];
    for (direction, next) in [data.direction, data.direction.reversed()].into_iter().zip(next) {
        // An acknowledgement number of 0 says nothing.
        let is_near = |syn: &u32| next.is_none_or(|next| next == 0 || next.wrapping_sub(*syn) <= WINDOW as u32);
        *plausible.of_mut(direction) = syns.of(direction).filter(is_near);
    }
    plausible
}

#[derive(Debug)]
pub enum SizerInput {
    /// A flow: its ends may show its protocol, and it is passed on.
    Flow(Box<Flow>),
    Segments(Box<Segments>),
}

impl From<Segments> for SizerInput {
    fn from(segments: Segments) -> Self {
        Self::Segments(Box::new(segments))
    }
}

impl TryFrom<Frame> for SizerInput {
    type Error = Frame;

    fn try_from(frame: Frame) -> Result<Self, Frame> {
        match frame {
            Frame::Flow(flow) => Ok(Self::Flow(flow)),
            Frame::Segments(segments) => Ok(Self::Segments(segments)),
            other => Err(other),
        }
    }
}

impl Stage for RecordSizer {
    const NAME: &'static str = "record-sizer";
    type Input = SizerInput;

    fn process(&mut self, input: SizerInput, out: &mut dyn Emit) -> Result<(), StageError> {
        let segments = match input {
            SizerInput::Flow(flow) => {
                self.flow(&flow);
                return Ok(out.emit(Frame::Flow(flow))?);
            }
            SizerInput::Segments(segments) => segments,
        };
        let mut segments = segments.iter();
        loop {
            if let Some(rest) = self.take_data(&mut segments, out)? {
                self.tcp_segment(&rest, out)?;
                continue;
            }
            let Some(segment) = segments.next() else { return Ok(()) };
            if self.clock.follows(segment.flow, segment.time_ns) {
                self.segment(&segment, out)?;
            } else {
                self.segment_of_odd_time(&segment, out)?;
            }
        }
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.clock.finish();
        self.clock_events(out)?;
        let connections = self.connections.drain();
        self.end(connections, out)?;
        let datagram_flows = self.datagram_flows.drain();
        self.end_datagrams(datagram_flows, out)?;
        let suppressed = self.reporter.notices.suppressed;
        if suppressed > 0 {
            let detail = format!("{suppressed} more notices were only counted");
            let notice = Notice::new(Self::NAME, what::SUPPRESSED, detail);
            out.emit(Notice { time_ns: Some(self.now_ns), ..notice }.into())?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.reporter.counters.all();
        counters.push(("suppressed_notices", self.reporter.notices.suppressed));
        counters
    }

    fn save(&self) -> Result<Option<Vec<u8>>, StateError> {
        encode_state(self).map(Some)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let read: Self = decode_state(state)?;
        *self = Self { limits: self.limits, options: std::mem::take(&mut self.options), ..read };
        // A maximum, and a summary is of one run.
        self.reporter.counters.worst_loss_millionths = 0;
        Ok(())
    }
}

impl StageOptions for Options {
    const NAME: &'static str = "record-sizer";
    const ABOUT: &'static str = "Sizes of encrypted messages: records of TLS, and messages of other protocols";
    const EXAMPLES: &'static [&'static str] =
        &["capture home.pcap | flow-filter --gateway 192.168.1.20 | record-sizer | sizeleak frames --kind record"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        Ok(Box::new(Node::new(RecordSizer::new(self)?)))
    }
}

impl RecordSizer {
    #[cold]
    fn segment_of_odd_time(&mut self, segment: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        self.clock.add(segment.flow, segment.time_ns, OwnedSegment::of(segment));
        self.clock_events(out)
    }

    fn clock_events(&mut self, out: &mut dyn Emit) -> Result<(), Closed> {
        while let Some(event) = self.clock.next_event() {
            match event {
                ClockEvent::Item { item, ahead_ns } => {
                    let segment = item.segment();
                    let time_ns = segment.time_ns.saturating_sub(ahead_ns);
                    self.segment(&Segment { time_ns, ..segment }, out)?;
                }
                ClockEvent::Odd { flow, time_ns, ahead_ns } => {
                    self.reporter.counters.odd_times += 1;
                    self.reporter.notice(flow, time_ns, (what::CLOCK, None, describe_odd_time(ahead_ns)), out)?;
                }
                ClockEvent::Step { from_ns, to_ns, .. } if to_ns < from_ns => self.go_back(to_ns, out)?,
                // A silence.
                ClockEvent::Step { .. } => {}
            }
        }
        Ok(())
    }

    /// Ends all that waits for a time that will not come soon, because all times have gone back.
    fn go_back(&mut self, to_ns: i64, out: &mut dyn Emit) -> Result<(), Closed> {
        self.reporter.counters.clock_steps += 1;
        self.now_ns = i64::MAX;
        self.expire(out)?;
        self.now_ns = to_ns;
        self.connections.restart_time().for_each(|connection| connection.go_back(to_ns));
        self.syns.restart_time().for_each(drop);
        self.datagram_flows.restart_time().for_each(drop);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
