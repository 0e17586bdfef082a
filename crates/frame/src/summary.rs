//! `hello` and `summary`: who writes a stream, in which version of the contract, and at its end what each stage did. And
//! `notice`: something a stage skipped, lost or assumed; `deviation`: something that a home does not usually do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Formatter;

use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_bytes::ByteBuf;

/// The last frame of a whole stream, with a row for every stage. A stream without one was cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub stages: Vec<StageSummary>,
}

/// What one stage did. In frames its counters are fields like the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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
    #[serde(flatten)]
    pub counters: BTreeMap<String, u64>,
    /// Service time per frame in nanoseconds: an `HdrHistogram` in V2 format, deflated.
    #[serde(with = "serde_bytes")]
    pub latency: Vec<u8>,
    /// Time a frame waited for the stage in nanoseconds, in the same format.
    #[serde(with = "serde_bytes")]
    pub queue: Vec<u8>,
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

macro_rules! not_counted {
    ($($visit:ident: $value:ty),*) => {$(
        fn $visit<E>(self, _: $value) -> Result<Counter, E> {
            Ok(Counter(None))
        }
    )*};
}

impl<'de> Visitor<'de> for CounterVisitor {
    type Value = Counter;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Counter, E> {
        Ok(Counter(Some(count)))
    }

    not_counted!(visit_i64: i64, visit_bool: bool, visit_f64: f64, visit_str: &str, visit_bytes: &[u8]);

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
    pub fn of(stage: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { schema: SCHEMA, stage: stage.to_owned(), version, upstream: Vec::new() }
    }
}

/// Something that was skipped, lost or assumed. Everything that is dropped has a notice or a counter in `summary`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// When, in nanoseconds since the epoch, in the time of the traffic; `None` if that is unknown.
    pub time_ns: Option<i64>,
    pub stage: Cow<'static, str>,
    /// The flow it is about, if any.
    pub flow: Option<u64>,
    /// What happened: one of [`what`], or an external stage's own word.
    pub what: Cow<'static, str>,
    /// How many bytes it is about, if that makes sense.
    pub bytes: Option<u64>,
    /// One sentence for a person.
    pub detail: Option<String>,
}

impl Notice {
    pub fn new(stage: impl Into<Cow<'static, str>>, what: impl Into<Cow<'static, str>>, detail: String) -> Self {
        let (stage, what) = (stage.into(), what.into());
        Self { time_ns: None, stage, flow: None, what, bytes: None, detail: Some(detail) }
    }
}

/// The words this project's stages use in [`Notice::what`].
pub mod what {
    /// Bytes of a flow are missing from the capture.
    pub const GAP: &str = "gap";
    /// Boundaries of records, or of packets in a capture, were found again after skipped bytes.
    pub const RESYNC: &str = "resync";
    /// Packets that an earlier run with the same state has read.
    pub const REPEATED: &str = "repeated";
    /// Only the beginning is present: of a capture, a connection's last record, a list of candidates.
    pub const TRUNCATED: &str = "truncated";
    /// Bytes that do not follow their format.
    pub const MALFORMED: &str = "malformed";
    /// Too little is known of a home for alarms.
    pub const LEARNING: &str = "learning";
    /// A flow that carries no TLS.
    pub const NOT_TLS: &str = "not_tls";
    /// A connection was seen in a tunnel and also elsewhere.
    pub const ENCAPSULATED: &str = "encapsulated";
    /// A DNS answer was not taken because nobody had asked for it.
    pub const UNASKED: &str = "unasked";
    /// State was evicted because a limit was reached.
    pub const EVICTED: &str = "evicted";
    /// An unsupported link or network layer.
    pub const UNSUPPORTED: &str = "unsupported";
    /// Packets of a protocol that is recognised, but whose messages are not sized.
    pub const NOT_SIZED: &str = "not_sized";
    /// Payload that claims a place in a connection, and that neither an acknowledgement nor further segments confirm.
    pub const UNCONFIRMED: &str = "unconfirmed";
    /// The share of a connection's payload that was not used.
    pub const LOSS: &str = "loss";
    /// Packets that contradict each other: retransmitted bytes that differ, or a hello in the middle of a session.
    pub const CONFLICT: &str = "conflict";
    /// Times that the rest of the traffic contradicts, or a step of all times.
    pub const CLOCK: &str = "clock";
    /// No packet is from or to the gateway.
    pub const ABSENT: &str = "absent";
    /// Something unobserved was assumed to be as in the model.
    pub const ASSUMED: &str = "assumed";
    /// A command without a candidate, or a message that cannot have one.
    pub const UNEXPLAINED: &str = "unexplained";
    /// A flow whose commands no model is for: they have no candidates.
    pub const UNCOVERED: &str = "uncovered";
    /// The commands of a flow do not fit the model that they are asked of.
    pub const MISFIT: &str = "misfit";
    /// The messages of a flow are longer or shorter than those that the model was learned from, or no longer so.
    pub const SHIFTED: &str = "shifted";
    /// A household has other habits than the learned ones: information, no fault.
    pub const HABITS: &str = "habits";
    /// Commands are found with other options than those that the model was learned with.
    pub const OPTIONS: &str = "options";
    /// A stream that ended without its summary.
    pub const CUT: &str = "cut";
    /// The stage ended with an error.
    pub const FAILED: &str = "failed";
    /// Further notices were only counted.
    pub const SUPPRESSED: &str = "suppressed";
}

/// Something that is not as usual, within the false alarms that a user allows; from `detector`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deviation {
    /// When it was beyond what is usual, in nanoseconds since the epoch. What is missing is said at the time it was due.
    pub time_ns: i64,
    /// The gateway's address; empty where no `flow` frame named it.
    pub gateway: String,
    /// What kind it is: `action`, `command`, `burst`, `slow-burst`, `shifted-routine`, `overdue`, `silence` or `stranger`.
    pub what: String,
    /// The share of usual days that are at least as strange, from 0 to 1.
    pub p_value: f64,
    /// What would have been usual, for a person.
    pub expected: String,
    pub seen: String,
    /// The commands that it is about, in order of time.
    pub commands: Vec<CommandAt>,
}

/// A command, by its flow and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandAt {
    pub flow: u64,
    /// When it began, in nanoseconds since the epoch.
    pub time_ns: i64,
}
