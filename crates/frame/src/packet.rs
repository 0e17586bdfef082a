//! `packets`: a batch of captured packets. Rows share a few buffers, so that a batch costs two allocations, not hundreds.

use std::fmt::{Debug, Formatter};
use std::slice;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;

use crate::limit::{BATCH_BYTES, BATCH_ROWS};
use crate::store::{Place, Reader, Store};

/// One captured packet; a row of [`Packets`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When it was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// The link type of its interface (the registry of LINKTYPE_ values).
    pub link_type: u16,
    /// Bytes on the wire; more than `data` holds where the snaplen cut it.
    pub original_length: u32,
    /// What was captured of it, link layer first.
    pub data: &'a [u8],
    /// Which of the captures being read it is from, counted from 0.
    pub capture: u32,
    /// Its number in that capture, counted from 1.
    pub number: u64,
}

/// A batch of packets in the order they were captured.
#[derive(Clone, Default)]
pub struct Packets {
    rows: Vec<Row>,
    store: Store,
    data_bytes: usize,
    passed_over: PassedOver,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    time_ns: i64,
    number: u64,
    data: Place,
    original_length: u32,
    capture: u32,
    link_type: u16,
}

/// Packets that a batch stands for without holding them, since the stage that takes it would drop them at once. Only
/// stages of one process leave them out so; in a stream nothing tells of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// How many.
    pub packets: u64,
    /// Bytes of data in them.
    pub bytes: u64,
    /// When the last of them was captured, if it came behind all packets of the batch.
    pub last_ns: Option<i64>,
}

impl Packets {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for so many packets.
    pub fn with_capacity(packets: usize) -> Self {
        Self { rows: Vec::with_capacity(packets.min(BATCH_ROWS)), ..Self::default() }
    }

    /// Adds a packet, copying its data.
    #[inline]
    pub fn push(&mut self, packet: Packet<'_>) {
        let data = self.store.copy(packet.data);
        self.add(&packet, data);
    }

    /// Adds a packet without copying its data, if it lies in `buffer`.
    #[inline]
    pub fn push_shared(&mut self, packet: Packet<'_>, buffer: &Arc<Vec<u8>>) {
        let data = self.store.share(packet.data, buffer);
        self.add(&packet, data);
    }

    #[inline]
    fn add(&mut self, packet: &Packet<'_>, data: Place) {
        self.data_bytes += data.length();
        self.passed_over.last_ns = None;
        let Packet { time_ns, link_type, original_length, capture, number, .. } = *packet;
        self.rows.push(Row { time_ns, number, data, original_length, capture, link_type });
    }

    /// Leaves packets out that come next.
    pub fn pass_over(&mut self, passed_over: PassedOver) {
        self.passed_over.packets += passed_over.packets;
        self.passed_over.bytes += passed_over.bytes;
        self.passed_over.last_ns = passed_over.last_ns.or(self.passed_over.last_ns);
    }

    /// The packets left out.
    pub fn passed_over(&self) -> PassedOver {
        self.passed_over
    }

    /// Makes it fit to wait. Where its data are little of the buffers they share, it copies them: the buffers are wanted
    /// again sooner.
    pub fn detach(&mut self) {
        self.store.detach(self.data_bytes, self.rows.iter_mut().map(|row| &mut row.data));
    }

    /// Whether its data lie in buffers of its reader's.
    pub fn shares_buffers(&self) -> bool {
        self.store.is_shared()
    }

    /// The packets, first one first.
    pub fn iter(&self) -> PacketIter<'_> {
        PacketIter { rows: self.rows.iter(), reader: self.store.reader() }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// How many packets there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of data in all rows together.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Whether the batch has reached the contract's size and is due to be sent.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.data_bytes >= BATCH_BYTES
    }
}

/// The packets of a batch, one after the other.
#[derive(Debug, Clone)]
pub struct PacketIter<'a> {
    rows: slice::Iter<'a, Row>,
    reader: Reader<'a>,
}

impl<'a> PacketIter<'a> {
    /// The next packet, which stays the next one until it is [passed](Self::pass).
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "nobody needs all of it")]
    pub fn peek(&mut self) -> Option<Packet<'a>> {
        let row = self.rows.as_slice().first()?;
        Some(row.packet(self.reader.at(row.data)))
    }

    /// Goes on behind the next packet.
    #[inline]
    pub fn pass(&mut self) {
        self.rows.next();
    }

    /// The data of the packet that comes so many behind the next one. None are told where they lie in another buffer than
    /// those seen last.
    #[inline]
    pub fn data_ahead(&self, packets: usize) -> &'a [u8] {
        self.rows.as_slice().get(packets).map_or(&[], |row| self.reader.near(row.data))
    }
}

impl<'a> Iterator for PacketIter<'a> {
    type Item = Packet<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packet<'a>> {
        let row = self.rows.next()?;
        Some(row.packet(self.reader.at(row.data)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for PacketIter<'_> {}

impl<'a> IntoIterator for &'a Packets {
    type Item = Packet<'a>;
    type IntoIter = PacketIter<'a>;

    fn into_iter(self) -> PacketIter<'a> {
        self.iter()
    }
}

impl Row {
    #[inline]
    fn packet<'a>(&self, data: &'a [u8]) -> Packet<'a> {
        let Self { time_ns, number, original_length, capture, link_type, .. } = *self;
        Packet { time_ns, link_type, original_length, data, capture, number }
    }
}

/// Batches are equal whose packets are, wherever their bytes lie.
impl PartialEq for Packets {
    fn eq(&self, other: &Self) -> bool {
        self.passed_over == other.passed_over && self.iter().eq(other.iter())
    }
}

impl Eq for Packets {}

/// Shows the rows, not the buffers they lie in.
impl Debug for Packets {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Packet<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_tuple(6)?;
        row.serialize_element(&self.time_ns)?;
        row.serialize_element(&self.link_type)?;
        row.serialize_element(&self.original_length)?;
        row.serialize_element(Bytes::new(self.data))?;
        row.serialize_element(&self.capture)?;
        row.serialize_element(&self.number)?;
        row.end()
    }
}

impl Serialize for Packets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Packets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SharedPackets(&Arc::default()).deserialize(deserializer)
    }
}

/// Decodes a batch whose bytes stay in the buffer it is decoded from.
pub(crate) struct SharedPackets<'a>(pub(crate) &'a Arc<Vec<u8>>);

impl<'de> DeserializeSeed<'de> for SharedPackets<'_> {
    type Value = Packets;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Packets, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SharedPackets<'_> {
    type Value = Packets;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of packet rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Packets, A::Error> {
        let mut batch = Packets::new();
        while rows.next_element_seed(RowSeed(&mut batch, self.0))?.is_some() {}
        Ok(batch)
    }
}

/// Decodes a row straight into the batch.
struct RowSeed<'a>(&'a mut Packets, &'a Arc<Vec<u8>>);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a packet row: time_ns, link_type, original_length, data, capture, number")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        let short = |at| A::Error::invalid_length(at, &"a packet row of 6 entries");
        let packet = Packet {
            time_ns: row.next_element()?.ok_or_else(|| short(0))?,
            link_type: row.next_element()?.ok_or_else(|| short(1))?,
            original_length: row.next_element()?.ok_or_else(|| short(2))?,
            data: row.next_element::<&Bytes>()?.ok_or_else(|| short(3))?,
            capture: row.next_element()?.ok_or_else(|| short(4))?,
            number: row.next_element()?.ok_or_else(|| short(5))?,
        };
        self.0.push_shared(packet, self.1);
        while row.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
