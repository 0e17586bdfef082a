//! `packets`: a batch of captured packets. Rows share one buffer, so that a batch costs two allocations, not hundreds.

use std::fmt::Formatter;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;

use crate::limit::{BATCH_BYTES, BATCH_ROWS};

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packets {
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    time_ns: i64,
    link_type: u16,
    original_length: u32,
    data: Range<usize>,
    capture: u32,
    number: u64,
}

impl Packets {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a packet, copying its data.
    pub fn push(&mut self, packet: Packet<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet.data);
        self.rows.push(Row {
            time_ns: packet.time_ns,
            link_type: packet.link_type,
            original_length: packet.original_length,
            data: start..self.bytes.len(),
            capture: packet.capture,
            number: packet.number,
        });
    }

    /// The packets, first one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Packet<'_>> {
        self.rows.iter().map(|row| Packet {
            time_ns: row.time_ns,
            link_type: row.link_type,
            original_length: row.original_length,
            data: self.bytes.get(row.data.clone()).unwrap_or_default(),
            capture: row.capture,
            number: row.number,
        })
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
        self.bytes.len()
    }

    /// Whether the batch has reached the contract's size and is due to be sent.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.bytes.len() >= BATCH_BYTES
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
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Packets;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of packet rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Packets, A::Error> {
        let mut batch = Packets::new();
        while rows.next_element_seed(RowSeed(&mut batch))?.is_some() {}
        Ok(batch)
    }
}

/// Decodes a row straight into the batch's buffer.
struct RowSeed<'a>(&'a mut Packets);

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
        self.0.push(Packet {
            time_ns: row.next_element()?.ok_or_else(|| short(0))?,
            link_type: row.next_element()?.ok_or_else(|| short(1))?,
            original_length: row.next_element()?.ok_or_else(|| short(2))?,
            data: row.next_element::<&Bytes>()?.ok_or_else(|| short(3))?,
            capture: row.next_element()?.ok_or_else(|| short(4))?,
            number: row.next_element()?.ok_or_else(|| short(5))?,
        });
        while row.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
