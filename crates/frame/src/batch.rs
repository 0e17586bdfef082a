//! Batches of rows: `packets`, captured ones, and `segments`, a gateway's TCP segments and UDP datagrams; and a segment
//! that owns its payload. The rows share a few buffers, so that a batch costs a few allocations, not hundreds.

use std::fmt::{Debug, Formatter};
use std::slice;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Direction;
use crate::extent::{BATCH_ROWS, BatchLimit};
use crate::row_bytes::{RowBytes, RowCursor, RowLocation};

/// A row as a batch stores it: everything but its bytes, and where those are.
pub trait Row: Copy + Debug {
    type Item<'a>: Copy + Debug + PartialEq;

    fn new(item: &Self::Item<'_>, location: RowLocation) -> Self;

    fn location(&self) -> RowLocation;

    fn item<'a>(&self, bytes: &'a [u8]) -> Self::Item<'a>;

    fn bytes<'i>(item: &'i Self::Item<'_>) -> &'i [u8];
}

/// A batch of rows in capture order.
#[derive(Clone)]
pub struct Batch<R> {
    rows: Vec<R>,
    bytes: RowBytes,
    data_bytes: usize,
    /// Nothing in batches of other rows than packets.
    skipped: SkippedPackets,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Self { rows: Vec::new(), bytes: RowBytes::default(), data_bytes: 0, skipped: SkippedPackets::default() }
    }
}

impl<R: Row> Batch<R> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_capacity(rows: usize) -> Self {
        Self { rows: Vec::with_capacity(rows.min(BATCH_ROWS)), ..Self::default() }
    }

    #[inline]
    pub fn push(&mut self, item: R::Item<'_>) {
        let location = self.bytes.copy(R::bytes(&item));
        self.add(&item, location);
    }

    /// Adds a row; its bytes are not copied if they are part of `buffer`.
    #[inline]
    pub fn push_shared(&mut self, item: R::Item<'_>, buffer: &Arc<Vec<u8>>) {
        let location = self.bytes.share(R::bytes(&item), buffer);
        self.add(&item, location);
    }

    /// Adds a row whose bytes are part of a row of `other`; they are not copied if `other` shares them.
    #[inline]
    pub fn push_from<Q>(&mut self, item: R::Item<'_>, other: &Batch<Q>) {
        let location = self.bytes.share_from(R::bytes(&item), &other.bytes);
        self.add(&item, location);
    }

    #[inline]
    fn add(&mut self, item: &R::Item<'_>, location: RowLocation) {
        self.data_bytes += location.length();
        self.skipped.last_ns = None;
        self.rows.push(R::new(item, location));
    }

    /// Copies the bytes of a small batch, so that the buffers it shares are free for the next read.
    pub fn detach(&mut self) {
        let Some(shared) = self.bytes.detach(self.data_bytes) else { return };
        for row in &mut self.rows {
            let bytes = shared.at(row.location());
            *row = R::new(&row.item(bytes), self.bytes.copy(bytes));
        }
    }

    pub fn shares_buffers(&self) -> bool {
        self.bytes.is_shared()
    }

    pub fn iter(&self) -> BatchIter<'_, R> {
        BatchIter { rows: self.rows.iter(), cursor: self.bytes.cursor() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Bytes of memory it takes, without the buffers it shares.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.rows.capacity() * size_of::<R>() + self.bytes.memory_bytes()
    }

    pub fn is_full(&self, limit: BatchLimit) -> bool {
        self.rows.len() >= BATCH_ROWS || self.data_bytes >= limit.bytes()
    }
}

#[derive(Debug, Clone)]
pub struct BatchIter<'a, R> {
    rows: slice::Iter<'a, R>,
    cursor: RowCursor<'a>,
}

impl<'a, R: Row> BatchIter<'a, R> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "callers use only some entries of a row")]
    pub fn peek(&mut self) -> Option<R::Item<'a>> {
        let row = self.rows.as_slice().first()?;
        Some(row.item(self.cursor.at(row.location())))
    }

    #[inline]
    pub fn advance(&mut self) {
        self.rows.next();
    }
}

impl<'a, R: Row> Iterator for BatchIter<'a, R> {
    type Item = R::Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<R::Item<'a>> {
        let item = self.peek()?;
        self.advance();
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl<R: Row> ExactSizeIterator for BatchIter<'_, R> {}

impl<'a, R: Row> IntoIterator for &'a Batch<R> {
    type Item = R::Item<'a>;
    type IntoIter = BatchIter<'a, R>;

    fn into_iter(self) -> BatchIter<'a, R> {
        self.iter()
    }
}

/// Batches are equal if their rows and what they skip are equal, wherever the bytes are stored.
impl<R: Row> PartialEq for Batch<R> {
    fn eq(&self, other: &Self) -> bool {
        self.skipped == other.skipped && self.iter().eq(other.iter())
    }
}

impl<R: Row> Debug for Batch<R> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

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

pub type Packets = Batch<PacketRow>;

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
    pub fn skip_packets(&mut self, skipped: SkippedPackets) {
        self.skipped.packets += skipped.packets;
        self.skipped.bytes += skipped.bytes;
        self.skipped.last_ns = skipped.last_ns.or(self.skipped.last_ns);
    }

    pub fn skipped_packets(&self) -> SkippedPackets {
        self.skipped
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

/// One TCP segment, or a UDP datagram with no flags and sequence 0; a row of [`Segments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// When it was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    pub flow: u64,
    pub direction: Direction,
    /// The sequence number of its first byte (RFC 9293, section 3.4).
    pub sequence: u32,
    /// The TCP flags as on the wire: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Bytes of payload on the wire.
    pub length: u32,
    /// The captured payload; shorter than `length` if the snaplen cut it.
    pub payload: &'a [u8],
    /// The acknowledgement number: the sequence number of the next byte that its sender expects from the other side
    /// (RFC 9293, section 3.1). `None` in datagrams, without the ACK flag, and in streams of older programs.
    pub acknowledgement: Option<u32>,
}

impl Segment<'_> {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const RST: u8 = 4;
    pub const PSH: u8 = 8;
    pub const ACK: u8 = 16;
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct SegmentRow {
    time_ns: i64,
    flow: u64,
    #[serde(skip)]
    payload: RowLocation,
    sequence: u32,
    length: u32,
    acknowledgement: u32,
    direction: Direction,
    flags: u8,
    has_acknowledgement: bool,
}

pub type Segments = Batch<SegmentRow>;

impl Row for SegmentRow {
    type Item<'a> = Segment<'a>;

    #[inline]
    fn new(segment: &Segment<'_>, payload: RowLocation) -> Self {
        let Segment { time_ns, flow, direction, sequence, flags, length, acknowledgement, .. } = *segment;
        let has_acknowledgement = acknowledgement.is_some();
        let acknowledgement = acknowledgement.unwrap_or_default();
        Self { time_ns, flow, payload, sequence, length, acknowledgement, direction, flags, has_acknowledgement }
    }

    #[inline]
    fn location(&self) -> RowLocation {
        self.payload
    }

    #[inline]
    fn item<'a>(&self, payload: &'a [u8]) -> Segment<'a> {
        let Self { time_ns, flow, sequence, length, direction, flags, .. } = *self;
        let acknowledgement = self.has_acknowledgement.then_some(self.acknowledgement);
        Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement }
    }

    #[inline]
    fn bytes<'i>(segment: &'i Segment<'_>) -> &'i [u8] {
        segment.payload
    }
}

/// What a [`Segment`] holds, with a copy of its payload, for stages that keep segments. Its serialized form is part of
/// saved states, not of the contract.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OwnedSegment {
    row: SegmentRow,
    #[serde(with = "serde_bytes")]
    payload: Box<[u8]>,
}

impl OwnedSegment {
    pub fn of(segment: &Segment<'_>) -> Self {
        Self { row: SegmentRow::new(segment, RowLocation::default()), payload: segment.payload.into() }
    }

    pub fn segment(&self) -> Segment<'_> {
        self.row.item(&self.payload)
    }
}
