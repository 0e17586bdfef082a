//! The state of the stage between two runs: all it knows of its flows.

use sizeleak_frame::OwnedSegment;

use super::{LAG_NS, RecordSizer};
use crate::connection::Connection;
use crate::findings::Findings;
use crate::held_flows::HeldFlows;

impl RecordSizer {
    /// The stage that was read from a state, with the options of this one; `None` if it cannot be in that state.
    pub(super) fn restored(&self, read: Self) -> Option<Self> {
        let is_valid = read.reporter.counters.are_valid()
            && read.reporter.notices.are_valid()
            && read.clock.is_valid(LAG_NS, OwnedSegment::is_valid);
        is_valid.then_some(())?;
        let mut reporter = read.reporter;
        // A maximum, and a summary is of one run.
        reporter.counters.worst_loss_millionths = 0;
        Some(Self {
            limits: self.limits,
            connections: self.connections.restored(read.connections, Connection::is_valid)?,
            udp_flows: self.udp_flows.restored(read.udp_flows, |flow| flow.is_valid())?,
            syns: self.syns.restored(read.syns, |_| true)?,
            held_flows: HeldFlows::restored(read.held_flows)?,
            findings: Findings::default(),
            reporter,
            clock: read.clock,
            now_ns: read.now_ns,
        })
    }
}
