//! Which bytes of payload the sizer reads: record headers, headers of handshake messages, and hellos. It never looks at
//! the meaning of any other.

use sizeleak_frame::Direction;

/// Bytes of a TCP stream that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBytes {
    pub flow: u64,
    pub direction: Direction,
    /// The sequence number of the first of them.
    pub sequence: u32,
    pub bytes: Box<[u8]>,
}
