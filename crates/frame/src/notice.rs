//! `notice`: what a stage could not use, or thinks the reader should know.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Something that was skipped, lost or assumed. Nothing is dropped without one, or without a counter in `summary`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// When, in nanoseconds since the epoch of the traffic (not of the clock); `None` where no time is known.
    pub time_ns: Option<i64>,
    /// The stage that noticed.
    pub stage: Cow<'static, str>,
    /// The flow it is about, if one.
    pub flow: Option<u64>,
    /// What happened, one of [`what`] or a foreign stage's own word.
    pub what: Cow<'static, str>,
    /// How many bytes it is about, where that means something.
    pub bytes: Option<u64>,
    /// One sentence for a person.
    pub detail: Option<String>,
}

/// The words this project's stages use in [`Notice::what`].
pub mod what {
    /// Bytes of a flow that the capture does not hold.
    pub const GAP: &str = "gap";
    /// Record boundaries were found again after bytes that had to be skipped.
    pub const RESYNC: &str = "resync";
    /// Only the beginning is there: of a capture, of a connection's last record, of a list of candidates.
    pub const TRUNCATED: &str = "truncated";
    /// Bytes that do not follow their format.
    pub const MALFORMED: &str = "malformed";
    /// A flow that carries no TLS.
    pub const NOT_TLS: &str = "not_tls";
    /// State that was dropped because a limit was reached.
    pub const EVICTED: &str = "evicted";
    /// A link or network layer that is not read.
    pub const UNSUPPORTED: &str = "unsupported";
    /// Retransmitted bytes that differ from the first ones.
    pub const CONFLICT: &str = "conflict";
    /// A gateway that is in no packet.
    pub const ABSENT: &str = "absent";
    /// Something not seen that was taken to be as the model says.
    pub const ASSUMED: &str = "assumed";
    /// A command no candidate explains, or a message none can explain.
    pub const UNEXPLAINED: &str = "unexplained";
    /// A stream that ended without its summary.
    pub const CUT: &str = "cut";
    /// The stage ended with an error.
    pub const FAILED: &str = "failed";
    /// More notices than a stage tells; these were only counted.
    pub const SUPPRESSED: &str = "suppressed";
}
