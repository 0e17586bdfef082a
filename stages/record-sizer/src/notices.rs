//! Notices: their wording, and limits to their number, so that hostile traffic cannot make more output than input.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Notice, what};
use sizeleak_platform::runtime::{Closed, Emit};

use crate::findings::{Conflict, Incident};
use crate::messages::MessageEnd;

/// The number of notices about one flow.
const MAX_PER_FLOW: u32 = 64;

/// The number of flows whose notices are counted one by one.
const MAX_FLOWS: usize = 4096;

/// The number of notices for any traffic; each [`SEGMENTS_PER_NOTICE`] segments allow another.
const BASE_ALLOWANCE: u64 = 1024;

const SEGMENTS_PER_NOTICE: u64 = 8;

/// Emits notices within their limits, and counts the others.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Notices {
    by_flow: BTreeMap<u64, u32>,
    emitted: u64,
    pub(crate) suppressed: u64,
}

impl Notices {
    /// Emits a notice about a flow, after `segments` in all.
    pub(crate) fn emit(&mut self, notice: Notice, segments: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        let allowance = BASE_ALLOWANCE.saturating_add(segments / SEGMENTS_PER_NOTICE);
        // The notice of what a connection lost comes at its end, however many notices came before.
        let is_due = notice.what == what::LOSS || self.is_allowed(notice.flow.unwrap_or_default());
        if self.emitted >= allowance || !is_due {
            self.suppressed += 1;
            return Ok(());
        }
        self.emitted += 1;
        out.emit(notice.into())
    }

    fn is_allowed(&mut self, flow: u64) -> bool {
        if self.by_flow.len() >= MAX_FLOWS && !self.by_flow.contains_key(&flow) {
            self.by_flow.clear();
        }
        let emitted = self.by_flow.entry(flow).or_default();
        *emitted = emitted.saturating_add(1);
        *emitted <= MAX_PER_FLOW
    }
}

/// The word, bytes and detail of the notice about an incident.
pub(crate) fn incident(incident: Incident) -> (&'static str, Option<u64>, String) {
    match incident {
        Incident::Gap { bytes: 0 } => {
            (what::GAP, None, "the stream goes on somewhere else: nobody knows how many bytes are missing".into())
        }
        Incident::Gap { bytes } => (what::GAP, Some(bytes), format!("{bytes} bytes are missing from the capture")),
        Incident::NotMissing { bytes } => {
            (what::GAP, Some(bytes), format!("{bytes} bytes that were missing came later"))
        }
        Incident::Resync { skipped } => {
            let detail = format!("record boundaries were found again after {skipped} bytes that had to be skipped");
            (what::RESYNC, Some(skipped), detail)
        }
        Incident::Conflict(conflict) => {
            let detail = match conflict {
                Conflict::Kept => "retransmitted bytes differ from the first ones, which were kept",
                Conflict::Replaced => {
                    "retransmitted bytes differ from the first ones, which did not fit the stream: \
                                       record boundaries are looked for again"
                }
                Conflict::Hello => "a hello in the middle of a session, which goes on: the hello is ignored",
            };
            (what::CONFLICT, None, detail.into())
        }
        Incident::Unconfirmed { bytes } => {
            let detail = format!("{bytes} bytes that do not fit the connection were not confirmed: they are not used");
            (what::UNCONFIRMED, Some(bytes), detail)
        }
        Incident::Malformed => {
            (what::MALFORMED, None, "no record header where one should be: boundaries are looked for again".into())
        }
        Incident::NotTls => (
            what::NOT_TLS,
            None,
            "no TLS record was found in it; the option `plain-tcp` of record-sizer sizes the messages of such connections".into(),
        ),
        Incident::OpenVpn => (what::NOT_TLS, None, "it carries packets of OpenVPN, which are not sized".into()),
        Incident::SizedBySegments(MessageEnd::Write) => (
            what::ASSUMED,
            None,
            "the capture holds no payload of it: the lengths of segments stand for records, one record a write, less \
             the 5 bytes of its header"
                .into(),
        ),
        Incident::SizedBySegments(MessageEnd::Silence { .. }) => (
            what::NOT_TLS,
            None,
            "no TLS record was found in it: each burst of segments stands for a record (`plain-tcp`)".into(),
        ),
    }
}

pub(crate) fn notice(
    time_ns: i64,
    flow: Option<u64>,
    what: &'static str,
    bytes: Option<u64>,
    detail: String,
) -> Notice {
    Notice { time_ns: Some(time_ns), flow, bytes, ..Notice::new("record-sizer", what, detail) }
}
