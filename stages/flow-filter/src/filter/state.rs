//! The state of the stage between two runs: all it knows of its flows.

use sizeleak_platform::runtime::{StateError, decode_state, encode_state};

use super::FlowFilter;
use crate::counters::FilterCounters;
use crate::flow_table::FlowTable;
use crate::ip_reassembly::IpReassembly;
use crate::seen_addresses::SeenAddresses;
use crate::services::ServiceSelection;

/// What outlasts a batch; the cache of flows only saves time.
type State = (ServiceSelection, FlowTable, [IpReassembly; 2], SeenAddresses, FilterCounters);

impl FlowFilter {
    /// The state as bytes.
    pub(super) fn state(&self) -> Result<Vec<u8>, StateError> {
        let Self { services, flows, gateway_fragments, other_fragments, seen, counters, .. } = self;
        encode_state(&(services, flows, [gateway_fragments, other_fragments], seen, counters))
    }

    /// Continues from a state.
    pub(super) fn continue_from(&mut self, state: &[u8]) -> Result<(), StateError> {
        self.take(decode_state(state)?).ok_or(StateError::Impossible)
    }

    /// Takes a state that was read; `None` if a filter with these options cannot be in it.
    fn take(&mut self, (services, flows, [gateways, others], seen, counters): State) -> Option<()> {
        (seen.are_valid() && counters.are_valid()).then_some(())?;
        self.services = self.services.restored(services)?;
        self.flows = self.flows.restored(flows)?;
        self.gateway_fragments = self.gateway_fragments.restored(gateways)?;
        self.other_fragments = self.other_fragments.restored(others)?;
        (self.seen, self.counters) = (seen, counters);
        if self.counters.gateway_packets > 0 {
            self.prefilter.activate();
        }
        Some(())
    }
}
