//! What the stage counts, for its row of `summary`, and how much payload of a connection was used.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Segment;
use sizeleak_platform::counters;

counters! {
    SizerCounters
    first {
        /// Segments and datagrams; not part of `summary`.
        pub(crate) segments: u64,
    }
    // Flows found with times that the rest of the traffic contradicts, and how often all times went back; records that
    // stand for segments of which no header was captured, and for bursts without TLS.
    rare { odd_times clock_steps segment_records burst_records }
    counted {
        records sessions retransmitted out_of_order conflicts gaps gap_bytes resyncs skipped_bytes malformed not_tls
        truncated unconfirmed_bytes payload_bytes lost_bytes worst_loss_millionths hidden_bytes datagrams
        other_datagrams evicted_flows idle_flows evicted_bytes
    }
    last {}
}

impl SizerCounters {
    /// Counts a segment or datagram, and what the snaplen cut off its payload.
    #[inline]
    pub(crate) fn segment(&mut self, segment: &Segment<'_>) {
        self.segments += 1;
        let hidden = u64::from(segment.length).saturating_sub(segment.payload.len() as u64);
        self.hidden_bytes = self.hidden_bytes.saturating_add(hidden);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PayloadUse {
    /// Bytes of its streams, captured or not, and of packets that nothing confirmed. Where a gap has no known length,
    /// what is missing does not count.
    pub(crate) sent: u64,
    /// Those of them that belong to no record or message, since its header is missing, hidden, or was not found.
    pub(crate) lost: u64,
}

impl PayloadUse {
    /// Adds bytes that belong to nothing so far.
    pub(crate) fn lose(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Takes bytes back that belong to a record after all.
    pub(crate) fn find(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_sub(bytes);
    }

    /// Adds bytes of which it is not known whether they belong to it.
    pub(crate) fn doubt(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
        self.lose(bytes);
    }

    pub(crate) fn lost_millionths(self) -> u64 {
        let whole = u128::from(self.sent.max(self.lost)).max(1);
        (u128::from(self.lost) * 1_000_000 / whole) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_at_most_all() {
        let share = |sent, lost| PayloadUse { sent, lost }.lost_millionths();
        assert_eq!(
            (share(0, 0), share(200, 1), share(10, 400), share(u64::MAX, u64::MAX)),
            (0, 5000, 1_000_000, 1_000_000)
        );
    }
}
