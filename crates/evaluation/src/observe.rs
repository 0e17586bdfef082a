//! Runs a pipeline and passes its frames to a function.

use std::io;

use sizeleak_frame::{Frame, Notice};
use sizeleak_pipeline::{ConfigError, Ending, Pipeline, RunError};
use sizeleak_runtime::Interrupt;
use thiserror::Error;

/// Why a run cannot be used at all.
#[derive(Debug, Error)]
pub enum ObserveError {
    /// The pipeline cannot be prepared.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// SIGINT or SIGTERM came before the end of the captures.
    #[error("stopped before the captures were read to the end")]
    Interrupted,
    /// The system does not let signals be caught.
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),
}

/// Runs a pipeline until it ends or a signal stops it: notices go to `on_notice`, all other frames to `on_frame`.
///
/// Returns what is wrong with the captures, if anything; frames from before the damage have been passed on.
///
/// # Errors
/// [`ObserveError`], if the pipeline does not run or is stopped.
pub fn observe(
    pipeline: &Pipeline,
    on_notice: &mut (dyn FnMut(&Notice) + Send),
    mut on_frame: impl FnMut(Frame) + Send,
) -> Result<Option<RunError>, ObserveError> {
    let mut sink = |frame: Frame| -> io::Result<()> {
        match &frame {
            Frame::Notice(notice) => on_notice(notice),
            _ => on_frame(frame),
        }
        Ok(())
    };
    // A failing run sets its interrupt, so every run needs its own.
    let interrupt = Interrupt::on_signals().map_err(ObserveError::Signals)?;
    match pipeline.prepare()?.run(&interrupt, &mut sink) {
        Ok(report) if report.ending == Ending::Interrupted => Err(ObserveError::Interrupted),
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(error)),
    }
}
