//! Notices: their words, and how many of them there may be, so that hostile traffic cannot make more output than it is.

use std::collections::BTreeMap;

use sizeleak_frame::{Notice, what};
use sizeleak_runtime::{Closed, Emit};

use crate::finding::Incident;

/// Notices of one flow.
const MOST_OF_FLOW: u32 = 64;

/// Flows whose notices are counted apart.
const MOST_FLOWS: usize = 4096;

/// Notices without regard to how much traffic there was; besides, one for each [`SEGMENTS_A_NOTICE`].
const ALLOWANCE: u64 = 1024;

const SEGMENTS_A_NOTICE: u64 = 8;

/// Emits notices within bounds, and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    by_flow: BTreeMap<u64, u32>,
    told: u64,
    pub(crate) suppressed: u64,
}

impl Notices {
    /// Tells of something about a flow, after so many segments in all.
    pub(crate) fn tell(
        &mut self,
        (flow, time_ns, segments): (u64, i64, u64),
        (what, bytes, detail): (&'static str, Option<u64>, String),
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        if self.told >= ALLOWANCE.saturating_add(segments / SEGMENTS_A_NOTICE) || !self.may_tell(flow) {
            self.suppressed += 1;
            return Ok(());
        }
        self.told += 1;
        out.emit(notice(what, Some(time_ns), Some(flow), bytes, detail).into())
    }

    fn may_tell(&mut self, flow: u64) -> bool {
        if self.by_flow.len() >= MOST_FLOWS && !self.by_flow.contains_key(&flow) {
            self.by_flow.clear();
        }
        let told = self.by_flow.entry(flow).or_default();
        *told += 1;
        *told <= MOST_OF_FLOW
    }
}

/// The word, size and sentence of an incident.
pub(crate) fn incident(incident: Incident) -> (&'static str, Option<u64>, String) {
    match incident {
        Incident::Gap { bytes: 0 } => {
            (what::GAP, None, "the stream goes on somewhere else: nobody knows how many bytes are missing".into())
        }
        Incident::Gap { bytes } => (what::GAP, Some(bytes), format!("{bytes} bytes are missing from the capture")),
        Incident::Resync { skipped } => {
            let detail = format!("record boundaries were found again after {skipped} bytes that had to be skipped");
            (what::RESYNC, Some(skipped), detail)
        }
        Incident::Conflict => {
            (what::CONFLICT, None, "retransmitted bytes differ from the first ones, which were kept".into())
        }
        Incident::Malformed => {
            (what::MALFORMED, None, "no record header where one should be: boundaries are looked for again".into())
        }
        Incident::NotTls => (what::NOT_TLS, None, "no TLS record was found in it".into()),
    }
}

/// A notice of this stage.
pub(crate) fn notice(
    what: &'static str,
    time_ns: Option<i64>,
    flow: Option<u64>,
    bytes: Option<u64>,
    detail: String,
) -> Notice {
    Notice { time_ns, stage: "record-sizer".into(), flow, what: what.into(), bytes, detail: Some(detail) }
}
