//! The fast path: TCP segments over Ethernet and IPv4 whose flow is already known. Without it the output is the same; a
//! property test in `filter` holds it to the general parsers and the flow table.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_frame::{BatchIter, Packet, PacketRow, Segment};
use sizeleak_packet::fast::{Endpoints, TcpSegment};

use crate::flow_table::FlowRef;
use crate::output::{FilterCounters, SegmentWriter};

/// Enough for ten thousand flows, more than most gateways have at a time. The table takes 1 MiB.
const MAX_ENTRIES: usize = 28_000;

/// Flows by the endpoints of a segment. All entries are of one generation of the flow table, during which none is
/// evicted.
#[derive(Debug, Default)]
pub(crate) struct FlowCache {
    flows: HashMap<Endpoints, FlowRef, RandomState>,
    generation: u32,
}

impl FlowCache {
    /// Writes segments of cached flows, up to the first other packet, or until the batch is full.
    ///
    /// Never inlined, so that the loop keeps its variables in registers.
    #[inline(never)]
    pub(crate) fn write_segments(
        &self,
        generation: u32,
        packets: &mut BatchIter<'_, PacketRow>,
        writer: &mut SegmentWriter<'_>,
        counters: &mut FilterCounters,
    ) {
        if generation != self.generation {
            return;
        }
        let (before, mut last_ns) = (packets.len(), None);
        while !writer.is_full()
            && let Some(packet) = packets.peek()
        {
            let Some(segment) = TcpSegment::read(packet.link_type, packet.data, packet.original_length) else { break };
            let Some(FlowRef { flow, direction }) = self.flows.get(&segment.endpoints).copied() else { break };
            let TcpSegment { sequence, flags, acknowledgement, payload, .. } = segment;
            let (time_ns, length, payload) = (packet.time_ns, payload.length(), payload.data());
            writer.push(Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement });
            last_ns = Some(packet.time_ns);
            packets.advance();
        }
        counters.count_gateway_packets((before - packets.len()) as u64, last_ns);
    }

    pub(crate) fn insert(&mut self, packet: &Packet<'_>, flow: FlowRef, generation: u32) {
        let Some(segment) = TcpSegment::read(packet.link_type, packet.data, packet.original_length) else { return };
        if generation != self.generation || self.flows.len() >= MAX_ENTRIES {
            self.flows.clear();
            self.generation = generation;
        }
        self.flows.insert(segment.endpoints, flow);
    }
}
