//! The stage: segments (and datagrams) in, sessions and records out.

mod quick;

use sizeleak_frame::{Direction, Segment, Segments, what};
use sizeleak_runtime::{Closed, ConfigureError, Emit, Stage, StageError};

use crate::association::Association;
use crate::finding::Findings;
use crate::notices::notice;
use crate::options::{Limits, Options};
use crate::piece::Piece;
use crate::reassembly::Opening;
use crate::report::Report;
use crate::table::{Flows, Place};
use crate::tracked::Tracked;
use crate::waiting::Waiting;
use quick::steadily;

/// Sizes the TLS records of a gateway's connections.
#[derive(Debug)]
pub struct RecordSizer {
    limits: Limits,
    connections: Flows<Tracked>,
    /// Flows over UDP that carry DTLS or QUIC.
    associations: Flows<Box<Association>>,
    /// Connections of which no more than a SYN was seen, with the sequence numbers of both directions: a flood of them
    /// must not drive out the others.
    opened: Flows<[Option<u32>; 2]>,
    waiting: Waiting,
    findings: Findings,
    report: Report,
    now_ns: i64,
    /// Before this time no flow need be forgotten, as long as none is begun.
    next_expiry_ns: i64,
    rest: Rest,
}

/// Whether connections are kept small in their steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Taken,
    /// To compare with: all there is of a connection is kept, always.
    #[cfg(test)]
    Never,
}

impl RecordSizer {
    /// A sizer with these options.
    ///
    /// # Errors
    /// [`ConfigureError::Usage`] where a limit makes no sense.
    pub fn new(options: &Options) -> Result<Self, ConfigureError> {
        let limits = options.limits()?;
        Ok(Self {
            limits,
            connections: Flows::new(limits.flows),
            associations: Flows::new(limits.flows / 4),
            opened: Flows::new(limits.flows),
            waiting: Waiting::default(),
            findings: Findings::default(),
            report: Report::default(),
            now_ns: i64::MIN,
            next_expiry_ns: i64::MIN,
            rest: Rest::Taken,
        })
    }

    /// Bytes of memory that segments out of order, incomplete hellos and the like hold now.
    pub fn held_bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// Goes on with what is left of a segment of a connection that was steady up to there.
    #[cold]
    fn go_on_in_full(&mut self, segment: &Segment<'_>, rest: Piece<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        if let Some(tracked) = self.connections.find(segment.flow) {
            tracked.connection().go_on(segment.direction, rest, &mut self.findings);
        }
        self.settle(segment.flow, out)
    }

    #[inline(never)]
    fn any_segment(&mut self, segment: &Segment<'_>, place: Place, out: &mut dyn Emit) -> Result<(), Closed> {
        self.report.hidden(segment);
        if segment.flags == 0 {
            return self.datagram(segment, out);
        }
        while let Some(flow) = self.waiting.overdue(segment.time_ns) {
            self.expire(flow, out)?;
        }
        let is_syn = segment.flags & Segment::SYN != 0;
        if segment.length == 0 && !is_syn {
            return Ok(());
        }
        if self.is_crowded() {
            self.make_room(out)?;
        }
        self.data(segment, place, is_syn, out)?;
        let most_ns = self.limits.idle_timeout_ns;
        self.next_expiry_ns = self.connections.calm_until(most_ns).min(self.opened.calm_until(most_ns));
        Ok(())
    }

    /// Takes a segment with data, or a SYN.
    fn data(&mut self, segment: &Segment<'_>, place: Place, is_syn: bool, out: &mut dyn Emit) -> Result<(), Closed> {
        if is_syn {
            if segment.length == 0 && self.connections.find(segment.flow).is_none() {
                self.remember_opening(segment);
                return Ok(());
            }
            self.syn(segment, out)?;
            if segment.length == 0 {
                return self.settle(segment.flow, out);
            }
        }
        let tracked = match self.connections.find_from(place, segment.flow) {
            Some(tracked) => tracked,
            None => begin(&mut self.connections, &mut self.opened, segment.flow, &mut self.findings),
        };
        if !is_syn && let Some(rest) = steadily(tracked, segment, &mut self.report, out) {
            let rest = rest?;
            return if rest.is_empty() { Ok(()) } else { self.go_on_in_full(segment, rest.piece(segment), out) };
        }
        tracked.connection().data(segment, &mut self.findings);
        self.settle(segment.flow, out)
    }

    /// Reports what was found in a flow and takes note of what it holds now. Makes it let go of what is too much, and rest if
    /// it holds nothing.
    #[inline(never)]
    fn settle(&mut self, flow: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        let Some(tracked) = self.connections.find(flow) else { return Ok(()) };
        let connection = tracked.connection();
        self.report.found(flow, connection, &mut self.findings, out)?;
        let held = connection.held();
        self.waiting.update(flow, connection.deadline(&self.limits), held);
        if held > self.limits.flow_bytes {
            self.release(flow, out)?;
        } else if held == 0 && self.rest == Rest::Taken {
            tracked.rest();
        }
        while self.waiting.bytes() > self.limits.bytes {
            let Some(flow) = self.waiting.first() else { break };
            self.release(flow, out)?;
        }
        Ok(())
    }

    /// Takes a datagram: rows of UDP have no flags, those of TCP always have one.
    fn datagram(&mut self, datagram: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        self.report.counts.datagrams += 1;
        if self.associations.is_full() {
            self.report.counts.idle_flows += self.associations.make_room().len() as u64;
        }
        if self.associations.is_older(self.now_ns, self.limits.idle_timeout_ns) {
            self.report.counts.idle_flows += self.associations.forget_silent(self.now_ns).len() as u64;
        }
        if self.associations.find(datagram.flow).is_none() {
            if !Association::is_known_kind(datagram) {
                self.report.counts.other_datagrams += 1;
                return Ok(());
            }
            self.associations.insert(datagram.flow, Box::default());
        }
        let Some(association) = self.associations.find(datagram.flow) else { return Ok(()) };
        self.report.datagram(datagram, association, out)
    }

    /// Remembers a SYN of a connection that has no data yet.
    fn remember_opening(&mut self, segment: &Segment<'_>) {
        let at = usize::from(segment.direction.number());
        if self.opened.find(segment.flow).is_none() {
            self.opened.insert(segment.flow, [None; 2]);
        }
        let Some(opened) = self.opened.find(segment.flow) else { return };
        let Some(own) = opened.get(at).copied() else { return };
        if own.is_some_and(|sequence| sequence != segment.sequence) {
            *opened = [None; 2];
        }
        if let Some(place) = opened.get_mut(at) {
            *place = Some(segment.sequence);
        }
    }

    /// Takes a SYN of a connection that is known, or has data with it.
    fn syn(&mut self, segment: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        let tracked = match self.connections.find(segment.flow) {
            Some(tracked) => tracked,
            None => begin(&mut self.connections, &mut self.opened, segment.flow, &mut self.findings),
        };
        let connection = tracked.connection();
        match connection.opening(segment) {
            Opening::Known => return Ok(()),
            Opening::First => {}
            Opening::Another => {
                connection.release(&mut self.findings);
                self.report.found(segment.flow, connection, &mut self.findings, out)?;
                self.report.ended(segment.flow, segment.time_ns, connection, out)?;
                *tracked = Tracked::default();
            }
        }
        tracked.connection().open(segment.direction, segment.sequence, &mut self.findings);
        Ok(())
    }

    /// Gives up what a flow has waited for too long.
    fn expire(&mut self, flow: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        let Some(tracked) = self.connections.find(flow) else {
            self.waiting.update(flow, None, 0);
            return Ok(());
        };
        let connection = tracked.connection();
        connection.expire(self.now_ns, &self.limits, &mut self.findings);
        self.report.found(flow, connection, &mut self.findings, out)?;
        let held = connection.held();
        self.waiting.update(flow, connection.deadline(&self.limits), held);
        if held == 0 && self.rest == Rest::Taken {
            tracked.rest();
        }
        Ok(())
    }

    /// Gives up all a flow holds, because memory is needed.
    fn release(&mut self, flow: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        let held = match self.connections.find(flow) {
            Some(tracked) => {
                let connection = tracked.connection();
                let held = connection.held();
                connection.release(&mut self.findings);
                self.report.found(flow, connection, &mut self.findings, out)?;
                held as u64
            }
            None => 0,
        };
        self.waiting.update(flow, None, 0);
        self.report.counts.evicted_bytes += held;
        let detail = format!("{held} bytes were held back for missing ones: they are not waited for any longer");
        self.report.notices.tell(
            (flow, self.now_ns, self.report.counts.segments),
            (what::EVICTED, Some(held), detail),
            out,
        )
    }

    /// Whether there are too many flows, or some may be silent for too long.
    fn is_crowded(&mut self) -> bool {
        let (now_ns, timeout_ns) = (self.now_ns, self.limits.idle_timeout_ns);
        self.connections.is_full()
            || self.connections.is_older(now_ns, timeout_ns)
            || self.opened.is_full()
            || self.opened.is_older(now_ns, timeout_ns)
    }

    /// Forgets flows where there are too many, or those silent for too long.
    #[cold]
    fn make_room(&mut self, out: &mut dyn Emit) -> Result<(), Closed> {
        if self.opened.is_full() {
            self.report.counts.idle_flows += self.opened.make_room().len() as u64;
        }
        if self.opened.is_older(self.now_ns, self.limits.idle_timeout_ns) {
            self.report.counts.idle_flows += self.opened.forget_silent(self.now_ns).len() as u64;
        }
        if self.connections.is_older(self.now_ns, self.limits.idle_timeout_ns) {
            let forgotten = self.connections.forget_silent(self.now_ns);
            self.report.counts.idle_flows += forgotten.len() as u64;
            self.end(forgotten, out)?;
        }
        if !self.connections.is_full() {
            return Ok(());
        }
        let forgotten = self.connections.make_room();
        let most = self.limits.flows;
        if self.report.counts.evicted_flows == 0 {
            let detail = format!(
                "more than {most} flows at once (`max-flows`): those silent for longest are forgotten; more of these are only \
                 counted"
            );
            out.emit(notice(what::EVICTED, Some(self.now_ns), None, None, detail).into())?;
        }
        self.report.counts.evicted_flows += forgotten.len() as u64;
        self.end(forgotten, out)
    }

    fn end(&mut self, connections: Vec<(u64, Tracked)>, out: &mut dyn Emit) -> Result<(), Closed> {
        for (flow, mut tracked) in connections {
            let connection = tracked.connection();
            connection.release(&mut self.findings);
            self.report.found(flow, connection, &mut self.findings, out)?;
            self.report.ended(flow, self.now_ns, connection, out)?;
            self.waiting.update(flow, None, 0);
        }
        Ok(())
    }
}

/// Begins a connection, with the SYNs that were seen of it.
fn begin<'a>(
    connections: &'a mut Flows<Tracked>,
    opened: &mut Flows<[Option<u32>; 2]>,
    flow: u64,
    findings: &mut Findings,
) -> &'a mut Tracked {
    let tracked = connections.insert(flow, Tracked::default());
    for (direction, sequence) in Direction::BOTH.into_iter().zip(opened.remove(flow).unwrap_or_default()) {
        if let Some(sequence) = sequence {
            tracked.connection().open(direction, sequence, findings);
        }
    }
    tracked
}

impl Stage for RecordSizer {
    const NAME: &'static str = "record-sizer";
    type Input = Segments;

    fn process(&mut self, segments: Segments, out: &mut dyn Emit) -> Result<(), StageError> {
        let places = self.places(&segments);
        Ok(self.segments(&mut segments.iter().zip(places), out)?)
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        let connections = self.connections.drain();
        self.end(connections, out)?;
        if self.report.notices.suppressed > 0 {
            let detail = format!("{} more notices were only counted", self.report.notices.suppressed);
            let bytes = None;
            out.emit(notice(what::SUPPRESSED, Some(self.now_ns), None, bytes, detail).into())?;
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = self.report.counts.all();
        counters.push(("suppressed_notices", self.report.notices.suppressed));
        counters
    }
}

#[cfg(test)]
mod tests;
