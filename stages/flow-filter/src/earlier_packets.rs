//! Packets that a run before this one has read already, where a run continues a state over a capture once more.

use sizeleak_frame::{BatchIter, Packet, PacketRow};

/// How much later than its neighbours a packet may stand in a capture: cards with several queues and buffers of capture
/// programs reorder by milliseconds. A run that begins no earlier than this before the state ends is a new capture.
const MAX_LATE_NS: i64 = 1_000_000_000;

/// Passes over the beginning of a run whose packets are not later than the state that it continues.
///
/// A state knows the time of its last packet, and not which packets it has seen. Captures follow each other in time, so
/// those that begin before that time are read a second time as far as it.
#[derive(Debug, Default)]
pub(crate) struct EarlierPackets {
    /// The time of the last packet of the state, until a later one has come.
    until_ns: Option<i64>,
    passed_over: u64,
}

impl EarlierPackets {
    /// The packets that a state with this last packet has seen.
    pub(crate) fn until(last_ns: Option<i64>) -> Self {
        Self { until_ns: last_ns, passed_over: 0 }
    }

    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn has_seen(&self, time_ns: i64) -> bool {
        let margin = if self.passed_over == 0 { MAX_LATE_NS } else { 0 };
        self.until_ns.is_some_and(|until| time_ns <= until.saturating_sub(margin))
    }

    pub(crate) fn pass_over<'a>(&mut self, packets: &mut BatchIter<'a, PacketRow>) -> Option<Packet<'a>> {
        let before = self.passed_over;
        let first = packets.peek();
        while self.until_ns.is_some()
            && let Some(packet) = packets.peek()
        {
            if self.has_seen(packet.time_ns) {
                self.passed_over += 1;
                packets.advance();
            } else {
                self.until_ns = None;
            }
        }
        first.filter(|_| before == 0 && self.passed_over > 0)
    }
}
