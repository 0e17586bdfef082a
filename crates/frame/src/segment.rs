//! `segments`: a batch of a gateway's TCP segments and UDP datagrams. Rows share buffers, as in `packets`.

use std::fmt::{Debug, Formatter};
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Unexpected, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;

use crate::limit::{BATCH_ROWS, BatchLimit};
use crate::store::{Place, Store};
use crate::{Direction, Packets};

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
#[derive(Clone, Default)]
pub struct Segments {
    rows: Vec<Row>,
    store: Store,
    data_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    time_ns: i64,
    flow: u64,
    payload: Place,
    sequence: u32,
    length: u32,
    direction: Direction,
    flags: u8,
}

impl Segments {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch with room for so many segments.
    pub fn with_capacity(segments: usize) -> Self {
        Self { rows: Vec::with_capacity(segments.min(BATCH_ROWS)), ..Self::default() }
    }

    /// Adds a segment, copying its payload.
    #[inline]
    pub fn push(&mut self, segment: Segment<'_>) {
        let payload = self.store.copy(segment.payload);
        self.add(&segment, payload);
    }

    /// Adds a segment of one of these packets, without copying its payload where they share theirs with their reader.
    #[inline]
    pub fn push_from(&mut self, segment: Segment<'_>, packets: &Packets) {
        let payload = self.store.take_over(segment.payload, packets.store());
        self.add(&segment, payload);
    }

    /// Adds a segment without copying its payload, if it lies in `buffer`.
    #[inline]
    pub(crate) fn push_shared(&mut self, segment: Segment<'_>, buffer: &Arc<Vec<u8>>) {
        let payload = self.store.share(segment.payload, buffer);
        self.add(&segment, payload);
    }

    #[inline]
    fn add(&mut self, segment: &Segment<'_>, payload: Place) {
        self.data_bytes += payload.length();
        let Segment { time_ns, flow, direction, sequence, flags, length, .. } = *segment;
        self.rows.push(Row { time_ns, flow, payload, sequence, length, direction, flags });
    }

    /// Makes it fit to wait. Where its payloads are little of the buffers they share, it copies them: the buffers are wanted
    /// again sooner.
    pub fn detach(&mut self) {
        let Some(shared) = self.store.detach(self.data_bytes) else { return };
        for row in &mut self.rows {
            row.payload = self.store.copy(shared.at(row.payload));
        }
    }

    /// Whether its payloads lie in buffers of its reader's.
    pub fn shares_buffers(&self) -> bool {
        self.store.is_shared()
    }

    /// The segments, first one first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Segment<'_>> {
        let mut reader = self.store.reader();
        self.rows.iter().map(move |row| Segment {
            time_ns: row.time_ns,
            flow: row.flow,
            direction: row.direction,
            sequence: row.sequence,
            flags: row.flags,
            length: row.length,
            payload: reader.at(row.payload),
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
        self.data_bytes
    }

    /// Whether the batch has reached its size and is due to be sent.
    pub fn is_full(&self, batches: BatchLimit) -> bool {
        self.rows.len() >= BATCH_ROWS || self.data_bytes >= batches.bytes()
    }
}

/// Batches are equal whose segments are, wherever their bytes lie.
impl PartialEq for Segments {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Segments {}

/// Shows the rows, not the buffers they lie in.
impl Debug for Segments {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
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
        SharedSegments(&Arc::default()).deserialize(deserializer)
    }
}

/// Decodes a batch whose bytes stay in the buffer it is decoded from.
pub(crate) struct SharedSegments<'a>(pub(crate) &'a Arc<Vec<u8>>);

impl<'de> DeserializeSeed<'de> for SharedSegments<'_> {
    type Value = Segments;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Segments, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for SharedSegments<'_> {
    type Value = Segments;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of segment rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Segments, A::Error> {
        let mut batch = Segments::new();
        while rows.next_element_seed(RowSeed(&mut batch, self.0))?.is_some() {}
        Ok(batch)
    }
}

/// Decodes a row straight into the batch.
struct RowSeed<'a>(&'a mut Segments, &'a Arc<Vec<u8>>);

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
        let segment = Segment {
            time_ns: row.next_element()?.ok_or_else(|| short(0))?,
            flow: row.next_element()?.ok_or_else(|| short(1))?,
            direction: direction(row.next_element()?.ok_or_else(|| short(2))?)?,
            sequence: row.next_element()?.ok_or_else(|| short(3))?,
            flags: row.next_element()?.ok_or_else(|| short(4))?,
            length: row.next_element()?.ok_or_else(|| short(5))?,
            payload: row.next_element::<&Bytes>()?.ok_or_else(|| short(6))?,
        };
        self.0.push_shared(segment, self.1);
        while row.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

fn direction<E: Error>(number: u8) -> Result<Direction, E> {
    Direction::from_number(number)
        .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number.into()), &"direction 0 or 1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;
    use crate::store::LARGE;

    /// Segments of so many bytes that lie in a reader's buffer, and that buffer.
    fn shared(payloads: &[usize]) -> (Segments, Arc<Vec<u8>>) {
        let buffer = Arc::new((0..payloads.iter().sum()).map(|at: usize| at as u8).collect::<Vec<u8>>());
        let (mut packets, mut segments, mut rest) = (Packets::new(), Segments::new(), &buffer[..]);
        for (length, number) in payloads.iter().zip(1..) {
            let (data, behind) = rest.split_at(*length);
            rest = behind;
            packets.push_shared(
                Packet { time_ns: 0, link_type: 1, original_length: *length as u32, data, capture: 0, number },
                &buffer,
            );
            let (direction, sequence, length) = (Direction::ToGateway, number as u32, data.len() as u32);
            let segment =
                Segment { time_ns: 5, flow: number, direction, sequence, flags: Segment::ACK, length, payload: data };
            segments.push_from(segment, &packets);
        }
        (segments, buffer)
    }

    #[test]
    fn few_bytes_are_copied_out_of_their_buffer_and_many_stay() {
        for (payloads, stay) in [(vec![], false), (vec![3, 0, LARGE - 4], false), (vec![LARGE - 7, 7], true)] {
            let (mut segments, buffer) = shared(&payloads);
            let before = segments.clone();
            segments.detach();
            assert_eq!(segments, before);
            drop(before);
            assert_eq!((segments.shares_buffers(), Arc::strong_count(&buffer)), (stay, 1 + usize::from(stay)));
        }
    }
}
