//! `segments`: a batch of a gateway's TCP segments and UDP datagrams. Rows share one buffer, as in `packets`.

use std::fmt::Formatter;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;

use crate::Direction;
use crate::limit::{BATCH_BYTES, BATCH_ROWS};

/// One TCP segment, or a UDP datagram with no flags and sequence 0; a row of [`Segments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// When it was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// The flow it belongs to.
    pub flow: u64,
    /// Which way it travels.
    pub direction: Direction,
    /// The sequence number of its first byte (RFC 9293, section 3.4).
    pub sequence: u32,
    /// The TCP flags as on the wire: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
    pub flags: u8,
    /// Bytes of payload on the wire.
    pub length: u32,
    /// What was captured of the payload; shorter than `length` where the snaplen cut it.
    pub payload: &'a [u8],
}

impl Segment<'_> {
    /// The FIN flag.
    pub const FIN: u8 = 1;
    /// The SYN flag.
    pub const SYN: u8 = 2;
    /// The RST flag.
    pub const RST: u8 = 4;
    /// The ACK flag.
    pub const ACK: u8 = 16;
}

/// A batch of segments in the order they were captured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments {
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    time_ns: i64,
    flow: u64,
    direction: Direction,
    sequence: u32,
    flags: u8,
    length: u32,
    payload: Range<usize>,
}

impl Segments {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a segment, copying its payload.
    pub fn push(&mut self, segment: Segment<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(segment.payload);
        self.rows.push(Row {
            time_ns: segment.time_ns,
            flow: segment.flow,
            direction: segment.direction,
            sequence: segment.sequence,
            flags: segment.flags,
            length: segment.length,
            payload: start..self.bytes.len(),
        });
    }

    /// The segments, first one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Segment<'_>> {
        self.rows.iter().map(|row| Segment {
            time_ns: row.time_ns,
            flow: row.flow,
            direction: row.direction,
            sequence: row.sequence,
            flags: row.flags,
            length: row.length,
            payload: self.bytes.get(row.payload.clone()).unwrap_or_default(),
        })
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of payload in all rows together.
    pub fn data_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the batch has reached the contract's size and is due to be sent.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.bytes.len() >= BATCH_BYTES
    }
}

impl Serialize for Segment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_tuple(7)?;
        row.serialize_element(&self.time_ns)?;
        row.serialize_element(&self.flow)?;
        row.serialize_element(&self.direction.number())?;
        row.serialize_element(&self.sequence)?;
        row.serialize_element(&self.flags)?;
        row.serialize_element(&self.length)?;
        row.serialize_element(Bytes::new(self.payload))?;
        row.end()
    }
}

impl Serialize for Segments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Segments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(BatchVisitor)
    }
}

struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Segments;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of segment rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Segments, A::Error> {
        let mut batch = Segments::new();
        while rows.next_element_seed(RowSeed(&mut batch))?.is_some() {}
        Ok(batch)
    }
}

/// Decodes a row straight into the batch's buffer.
struct RowSeed<'a>(&'a mut Segments);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a segment row: time_ns, flow, direction, sequence, flags, length, payload")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        let short = |at| A::Error::invalid_length(at, &"a segment row of 7 entries");
        self.0.push(Segment {
            time_ns: row.next_element()?.ok_or_else(|| short(0))?,
            flow: row.next_element()?.ok_or_else(|| short(1))?,
            direction: direction(row.next_element()?.ok_or_else(|| short(2))?)?,
            sequence: row.next_element()?.ok_or_else(|| short(3))?,
            flags: row.next_element()?.ok_or_else(|| short(4))?,
            length: row.next_element()?.ok_or_else(|| short(5))?,
            payload: row.next_element::<&Bytes>()?.ok_or_else(|| short(6))?,
        });
        while row.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

fn direction<E: Error>(number: u8) -> Result<Direction, E> {
    Direction::from_number(number)
        .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number.into()), &"direction 0 or 1"))
}
