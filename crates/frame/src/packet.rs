//! `packets`: a batch of captured packets. Rows share a few buffers, so that a batch costs a few allocations, not hundreds.

mod appender;
mod iter;

use std::fmt::{Debug, Formatter};
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::Bytes;

use crate::limit::{BATCH_BYTES, BATCH_ROWS};
use crate::store::{OWN, Place, Store};

pub use appender::PacketAppender;
pub use iter::PacketIter;

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
    runs: Vec<Run>,
    store: Store,
    data_bytes: usize,
    passed_over: SkippedPackets,
}

/// What differs from packet to packet, in few bytes: in a process they go from one core to another.
#[derive(Debug, Clone, Copy)]
struct Row {
    /// Nanoseconds behind the first packet of its run.
    after_ns: u32,
    /// Where its data begin in the buffer of its run, and how long they are.
    start: u32,
    length: u32,
    original_length: u32,
}

/// What packets that follow each other have in common.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The row of the first of them, when it was captured, and its number.
    from: usize,
    time_ns: i64,
    number: u64,
    /// Where their data are.
    buffer: u32,
    capture: u32,
    link_type: u16,
}

/// Packets that a batch stands for without holding them, since the stage that takes it would drop them at once. Only
/// stages of one process leave them out so; in a stream nothing tells of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedPackets {
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

    /// To add packets of one capture that follow each other, behind the one with this number: without copying their data where
    /// these lie in `buffer`.
    pub fn appender<'a>(
        &'a mut self,
        capture: u32,
        number: u64,
        buffer: Option<&'a Arc<Vec<u8>>>,
    ) -> PacketAppender<'a> {
        PacketAppender::new(self, capture, number, buffer)
    }

    fn add(&mut self, packet: &Packet<'_>, Place { buffer, start, length }: Place) {
        self.data_bytes += length as usize;
        self.passed_over.last_ns = None;
        let Packet { time_ns, link_type, original_length, capture, number, .. } = *packet;
        let from = self.rows.len();
        let after_ns = self.runs.last().and_then(|run| run.holds(packet, buffer, from)).unwrap_or_else(|| {
            self.runs.push(Run { from, time_ns, number, buffer, capture, link_type });
            0
        });
        debug_assert!(self.runs.last().is_some_and(|run| run.time_ns + i64::from(after_ns) == time_ns));
        self.rows.push(Row { after_ns, start, length, original_length });
    }

    /// Leaves packets out that come next.
    pub fn skip_packets(&mut self, passed_over: SkippedPackets) {
        self.passed_over.packets += passed_over.packets;
        self.passed_over.bytes += passed_over.bytes;
        self.passed_over.last_ns = passed_over.last_ns.or(self.passed_over.last_ns);
    }

    /// The packets left out.
    pub fn skipped_packets(&self) -> SkippedPackets {
        self.passed_over
    }

    /// Makes it fit to wait. Where its data are little of the buffers they share, it copies them: the buffers are wanted
    /// again sooner.
    pub fn detach(&mut self) {
        let Some(shared) = self.store.detach(self.data_bytes) else { return };
        let ends = self.runs.iter().skip(1).map(|run| run.from).chain([self.rows.len()]).collect::<Vec<_>>();
        let mut rows = self.rows.iter_mut();
        for (run, end) in self.runs.iter_mut().zip(ends) {
            for row in rows.by_ref().take(end - run.from) {
                row.start = self.store.copy(shared.at(row.place(run.buffer))).start;
            }
            run.buffer = OWN;
        }
    }

    /// Whether its data lie in buffers of its reader's.
    pub fn shares_buffers(&self) -> bool {
        self.store.is_shared()
    }

    /// The packets, first one first.
    pub fn iter(&self) -> PacketIter<'_> {
        PacketIter::new(self)
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

    /// Bytes of memory it takes, without the buffers it shares: for those who hold many.
    pub fn memory_bytes(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<Row>() + self.runs.capacity() * size_of::<Run>();
        size_of::<Self>() + rows + self.store.memory_bytes()
    }

    /// Whether the batch has reached the contract's size and is due to be sent.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.data_bytes >= BATCH_BYTES
    }
}

impl Row {
    /// Where its data are in this buffer.
    #[inline]
    fn place(&self, buffer: u32) -> Place {
        Place { buffer, start: self.start, length: self.length }
    }
}

impl Run {
    /// When a packet comes behind the first one of the run, in nanoseconds, if it has all else in common with it and is to be
    /// in the row `at`.
    #[inline]
    fn holds(&self, packet: &Packet<'_>, buffer: u32, at: usize) -> Option<u32> {
        let is_next = packet.number.wrapping_sub(self.number) == (at - self.from) as u64;
        let is_same_kind =
            (packet.capture, packet.link_type, buffer) == (self.capture, self.link_type, self.buffer) && is_next;
        u32::try_from(packet.time_ns.checked_sub(self.time_ns)?).ok().filter(|_| is_same_kind)
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

#[cfg(test)]
mod tests;
