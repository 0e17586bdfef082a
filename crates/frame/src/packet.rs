//! `packets`: a batch of captured packets.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::batch::{Batch, BatchIter, Row};
use crate::row_bytes::RowLocation;

/// One captured packet; a row of [`Packets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// The link type of its interface (the registry of LINKTYPE_ values).
    pub link_type: u16,
    /// Bytes on the wire; more than `data` holds if the snaplen cut it.
    pub original_length: u32,
    /// The captured bytes, from the link layer on.
    pub data: &'a [u8],
    /// The index of its capture among those being read.
    pub capture: u32,
    /// Its number in that capture, counted from 1.
    pub number: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct PacketRow {
    time_ns: i64,
    number: u64,
    data: RowLocation,
    original_length: u32,
    capture: u32,
    link_type: u16,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Packets {
    rows: Batch<PacketRow>,
    skipped: SkippedPackets,
}

/// Packets that a batch counts without holding them, because the next stage would drop them at once. Only stages of one
/// process skip packets; a frame stream says nothing of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedPackets {
    pub packets: u64,
    pub bytes: u64,
    /// When the last of them was captured, if it came after all packets of the batch.
    pub last_ns: Option<i64>,
}

impl Packets {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_capacity(packets: usize) -> Self {
        Self { rows: Batch::with_capacity(packets), skipped: SkippedPackets::default() }
    }

    /// Adds a packet and copies its data.
    #[inline]
    pub fn push(&mut self, packet: Packet<'_>) {
        self.skipped.last_ns = None;
        self.rows.push(packet);
    }

    /// Adds a packet; its data are not copied if they are part of `buffer`.
    #[inline]
    pub fn push_shared(&mut self, packet: Packet<'_>, buffer: &Arc<Vec<u8>>) {
        self.skipped.last_ns = None;
        self.rows.push_shared(packet, buffer);
    }

    pub fn skip_packets(&mut self, skipped: SkippedPackets) {
        self.skipped.packets += skipped.packets;
        self.skipped.bytes += skipped.bytes;
        self.skipped.last_ns = skipped.last_ns.or(self.skipped.last_ns);
    }

    pub fn skipped_packets(&self) -> SkippedPackets {
        self.skipped
    }
}

impl Deref for Packets {
    type Target = Batch<PacketRow>;

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

impl DerefMut for Packets {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.rows
    }
}

impl<'a> IntoIterator for &'a Packets {
    type Item = Packet<'a>;
    type IntoIter = BatchIter<'a, PacketRow>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Row for PacketRow {
    type Item<'a> = Packet<'a>;

    #[inline]
    fn new(packet: &Packet<'_>, data: RowLocation) -> Self {
        let Packet { time_ns, link_type, original_length, capture, number, .. } = *packet;
        Self { time_ns, number, data, original_length, capture, link_type }
    }

    #[inline]
    fn location(&self) -> RowLocation {
        self.data
    }

    #[inline]
    fn item<'a>(&self, data: &'a [u8]) -> Packet<'a> {
        let Self { time_ns, number, original_length, capture, link_type, .. } = *self;
        Packet { time_ns, link_type, original_length, data, capture, number }
    }

    #[inline]
    fn bytes<'i>(packet: &'i Packet<'_>) -> &'i [u8] {
        packet.data
    }
}
