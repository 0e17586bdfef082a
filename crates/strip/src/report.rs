//! What became of a capture.

/// What became of a capture, in packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripReport {
    /// Packets that were let out.
    pub packets: u64,
    /// Packets that were left out, because they are not the gateway's.
    pub dropped_packets: u64,
    /// Captured bytes of payload that stay: record headers, hellos, and DNS messages on request.
    pub kept_bytes: u64,
    /// Captured bytes that became zero.
    pub zeroed_bytes: u64,
    /// Segments of the gateway that came in fragments of IP: of these, everything became zero.
    pub fragmented_segments: u64,
    /// Flows of the gateway in which other records are found than before; at least, if there are more than 60,000 flows.
    pub differing_flows: u64,
    /// Flows in which the same records are found, with other notices.
    pub differing_notices: u64,
}
