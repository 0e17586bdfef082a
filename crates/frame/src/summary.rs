//! `hello` and `summary`: who writes a stream, in which version of the contract, and at its end what each stage did.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Formatter;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

/// The last frame of a whole stream, with a row for every stage. A stream without one was cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub stages: Vec<StageSummary>,
}

/// What one stage did. In frames its counters are fields like the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageSummary {
    pub stage: String,
    /// Frames it consumed; each row of a batch counts.
    pub frames_in: u64,
    /// Frames it made; each row of a batch counts.
    pub frames_out: u64,
    /// Bytes of traffic in the consumed frames: captured bytes of packets, payload bytes of segments, lengths of
    /// records, sizes of commands; for `capture` the bytes of the files.
    pub bytes_in: u64,
    /// Further counters of the stage, by name.
    pub counters: BTreeMap<String, u64>,
    /// Service time per frame in nanoseconds: an `HdrHistogram` in V2 format, deflated.
    pub latency: Vec<u8>,
    /// Time a frame waited for the stage in nanoseconds, in the same format.
    pub queue: Vec<u8>,
}

impl Serialize for StageSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(6 + self.counters.len()))?;
        map.serialize_entry("stage", &self.stage)?;
        map.serialize_entry("frames_in", &self.frames_in)?;
        map.serialize_entry("frames_out", &self.frames_out)?;
        map.serialize_entry("bytes_in", &self.bytes_in)?;
        for (name, count) in &self.counters {
            map.serialize_entry(name, count)?;
        }
        map.serialize_entry("latency", Bytes::new(&self.latency))?;
        map.serialize_entry("queue", Bytes::new(&self.queue))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for StageSummary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StageSummaryVisitor)
    }
}

struct StageSummaryVisitor;

impl<'de> Visitor<'de> for StageSummaryVisitor {
    type Value = StageSummary;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a stage's summary")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StageSummary, A::Error> {
        let mut summary = StageSummary::default();
        let mut stage = None;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match &*name {
                "stage" => stage = Some(map.next_value()?),
                "frames_in" => summary.frames_in = map.next_value()?,
                "frames_out" => summary.frames_out = map.next_value()?,
                "bytes_in" => summary.bytes_in = map.next_value()?,
                "latency" => summary.latency = map.next_value::<ByteBuf>()?.into_vec(),
                "queue" => summary.queue = map.next_value::<ByteBuf>()?.into_vec(),
                _ => {
                    if let Counter(Some(count)) = map.next_value()? {
                        summary.counters.insert(name.into_owned(), count);
                    }
                }
            }
        }
        summary.stage = stage.ok_or_else(|| A::Error::missing_field("stage"))?;
        Ok(summary)
    }
}

/// The value of an unknown field: kept if it is a count, else read past. An untagged enum would hold all of it first: half a
/// gigabyte for a frame of 15 MB.
struct Counter(Option<u64>);

impl<'de> Deserialize<'de> for Counter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CounterVisitor)
    }
}

struct CounterVisitor;

impl<'de> Visitor<'de> for CounterVisitor {
    type Value = Counter;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Counter, E> {
        Ok(Counter(Some(count)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_unit<E>(self) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_none<E>(self) -> Result<Counter, E> {
        Ok(Counter(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Counter, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Counter(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counter, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Counter(None))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Counter, D::Error> {
        // A MessagePack extension value arrives this way.
        deserializer.deserialize_any(IgnoredAny).map(|_| Counter(None))
    }
}

/// The version of the frame contract. It alone decides whether two stages are compatible.
pub const SCHEMA: u32 = 1;

/// The first frame of every stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The contract's version, [`SCHEMA`].
    pub schema: u32,
    /// The stage that writes this stream.
    pub stage: String,
    /// The version of the program that writes it; for people only.
    pub version: String,
    /// The stages before it, in order.
    pub upstream: Vec<String>,
}

impl Hello {
    /// What a stream of this stage begins with, as this version writes it and where no stage comes before.
    pub fn of(stage: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema: SCHEMA, stage: stage.to_owned(), version, upstream: Vec::new() }
    }
}
