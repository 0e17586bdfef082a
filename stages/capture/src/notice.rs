//! The notices of the stage, and the first error, which the stage returns at its end.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use sizeleak_frame::{Notice, what};
use sizeleak_platform::runtime::{Closed, SourceEmit, StageError};

use crate::error::CaptureError;

pub(crate) const NAME: &str = "capture";

pub(crate) fn notice(what: &'static str, time_ns: Option<i64>, detail: &impl Display) -> Notice {
    Notice { time_ns, ..Notice::new(NAME, what, detail.to_string()) }
}

/// At most this many notices report places where a file is damaged. More damage is only counted.
const MAX_NOTICES_OF_FILE: u64 = 8;

/// Errors so far: each is reported at once; the first is returned after everything readable has been read. Damage that
/// packets follow is no error at the end: what it costs is in a notice and a counter.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    first: Option<CaptureError>,
    /// How often each file or folder has failed.
    counts: BTreeMap<PathBuf, u64>,
}

impl Failures {
    pub(crate) fn report(
        &mut self,
        error: CaptureError,
        time_ns: Option<i64>,
        out: &mut dyn SourceEmit,
    ) -> Result<(), Closed> {
        let (skipped, count) = (error.damage.skipped_bytes(), self.counts.entry(error.file.clone()).or_default());
        *count += 1;
        if skipped.is_none() || *count <= MAX_NOTICES_OF_FILE {
            let what = match skipped {
                Some(_) => what::RESYNC,
                None if error.damage.is_cut() => what::TRUNCATED,
                None => what::MALFORMED,
            };
            let more = if *count == MAX_NOTICES_OF_FILE { "; more of these in this file are only counted" } else { "" };
            out.emit(Notice { bytes: skipped, ..notice(what, time_ns, &format!("{error}{more}")) }.into())?;
        }
        if skipped.is_none() {
            self.first.get_or_insert(error);
        }
        Ok(())
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.len() as u64
    }

    pub(crate) fn into_result(self) -> Result<(), StageError> {
        self.first.map_or(Ok(()), |error| Err(StageError::failed(error)))
    }
}
