//! Runs a prepared pipeline and passes its frames to a function.

use std::io;

use sizeleak_frame::{Frame, Notice};
use sizeleak_pipeline::{PreparedRun, RunEnding, RunError};
use sizeleak_platform::runtime::Interrupt;

use crate::error::EvaluationError;

/// Runs a pipeline until it ends or a signal stops it: notices go to `on_notice`, all other frames to `on_frame`.
///
/// Returns what is wrong with the captures, if anything; frames from before the damage have been passed on.
///
/// # Errors
/// If the pipeline is stopped.
pub(super) fn observe_run(
    run: PreparedRun,
    on_notice: &mut (dyn FnMut(&Notice) + Send),
    mut on_frame: impl FnMut(Frame) + Send,
) -> Result<Option<RunError>, EvaluationError> {
    let mut sink = |frame: Frame| -> io::Result<()> {
        match &frame {
            Frame::Notice(notice) => on_notice(notice),
            _ => on_frame(frame),
        }
        Ok(())
    };
    // A failing run sets its interrupt, so every run needs its own.
    let interrupt = Interrupt::on_signals().map_err(EvaluationError::Signals)?;
    match run.run(&interrupt, &mut sink) {
        Ok(report) if report.ending == RunEnding::Interrupted => Err(EvaluationError::Interrupted),
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(error)),
    }
}
