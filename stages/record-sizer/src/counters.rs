//! What the stage counts, for its row of `summary`.

use sizeleak_frame::Segment;

/// The counters of `record-sizer`.
#[derive(Debug, Default)]
pub(crate) struct SizerCounters {
    /// Segments and datagrams; not part of `summary`.
    pub(crate) segments: u64,
    pub(crate) records: u64,
    pub(crate) sessions: u64,
    pub(crate) retransmitted: u64,
    pub(crate) out_of_order: u64,
    pub(crate) conflicts: u64,
    pub(crate) gaps: u64,
    pub(crate) gap_bytes: u64,
    pub(crate) resyncs: u64,
    pub(crate) skipped_bytes: u64,
    pub(crate) malformed: u64,
    pub(crate) not_tls: u64,
    pub(crate) truncated: u64,
    /// Bytes of payload that the snaplen cut off.
    pub(crate) hidden_bytes: u64,
    pub(crate) datagrams: u64,
    pub(crate) other_datagrams: u64,
    pub(crate) quic_flows: u64,
    pub(crate) evicted_flows: u64,
    pub(crate) idle_flows: u64,
    pub(crate) evicted_bytes: u64,
}

impl SizerCounters {
    /// Counts a segment or datagram.
    #[inline]
    pub(crate) fn segment(&mut self, segment: &Segment<'_>) {
        self.segments += 1;
        let hidden = u64::from(segment.length).saturating_sub(segment.payload.len() as u64);
        self.hidden_bytes = self.hidden_bytes.saturating_add(hidden);
    }

    /// Each with its name in `summary`.
    pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("records", self.records),
            ("sessions", self.sessions),
            ("retransmitted", self.retransmitted),
            ("out_of_order", self.out_of_order),
            ("conflicts", self.conflicts),
            ("gaps", self.gaps),
            ("gap_bytes", self.gap_bytes),
            ("resyncs", self.resyncs),
            ("skipped_bytes", self.skipped_bytes),
            ("malformed", self.malformed),
            ("not_tls", self.not_tls),
            ("truncated", self.truncated),
            ("hidden_bytes", self.hidden_bytes),
            ("datagrams", self.datagrams),
            ("other_datagrams", self.other_datagrams),
            ("quic_flows", self.quic_flows),
            ("evicted_flows", self.evicted_flows),
            ("idle_flows", self.idle_flows),
            ("evicted_bytes", self.evicted_bytes),
        ]
    }
}
