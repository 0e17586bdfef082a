//! The notices of the stage, and the first error, which the stage returns at its end.

use std::fmt::Display;

use sizeleak_frame::{Notice, what};
use sizeleak_runtime::{Closed, SourceEmit, StageError};

use crate::error::CaptureError;

/// The stage's name.
pub(crate) const NAME: &str = "capture";

/// A notice of this stage.
pub(crate) fn notice(what: &'static str, time_ns: Option<i64>, detail: &impl Display) -> Notice {
    Notice { time_ns, stage: NAME.into(), flow: None, what: what.into(), bytes: None, detail: Some(detail.to_string()) }
}

/// Errors so far: each is reported at once; the first is returned after everything readable has been read.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    first: Option<CaptureError>,
    pub(crate) count: u64,
}

impl Failures {
    /// Reports and counts an error.
    pub(crate) fn report(
        &mut self,
        error: CaptureError,
        time_ns: Option<i64>,
        out: &mut dyn SourceEmit,
    ) -> Result<(), Closed> {
        let what = if error.damage.is_cut() { what::TRUNCATED } else { what::MALFORMED };
        out.emit(notice(what, time_ns, &error).into())?;
        self.first.get_or_insert(error);
        self.count += 1;
        Ok(())
    }

    /// The first error, if there was one.
    pub(crate) fn into_result(self) -> Result<(), StageError> {
        self.first.map_or(Ok(()), |error| Err(StageError::failed(error)))
    }
}
