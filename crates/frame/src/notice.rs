//! `notice`: something a stage skipped, lost or assumed; and `deviation`: something that a home does not usually do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

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
    /// What a stage says of no flow in particular, at no known time.
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
