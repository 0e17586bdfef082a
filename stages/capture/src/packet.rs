//! A packet as a capture holds it, and who takes packets from a reader.

use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    /// A LINKTYPE_ value.
    pub link_type: u16,
    pub original_length: u32,
    /// The captured bytes, link layer first.
    pub data: &'a [u8],
}

impl CapturedPacket<'_> {
    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        self.data.len() < self.original_length as usize
    }
}

/// Takes packets straight from the buffer of a reader.
pub(crate) trait PacketVisitor {
    /// Takes packets from the front of `bytes`, which are part of `buffer`, until it wants no more or none is left.
    /// `parse` returns the first packet of the bytes and the bytes behind it; `None` where no whole packet follows.
    fn visit<'a>(
        &mut self,
        bytes: &'a [u8],
        buffer: &Arc<Vec<u8>>,
        parse: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> Visited;
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Visited {
    pub(crate) packets: u64,
    /// Bytes of the buffer, headers included.
    pub(crate) bytes: usize,
    /// The time of the last packet taken, or of one before if none was.
    pub(crate) last_ns: Option<i64>,
}
