//! How a run ends: its sink, and the first cause among the outcomes that followed from it.

use std::io;
use std::time::{Duration, Instant};

use sizeleak_frame::{Frame, FrameSink, Summary};
use sizeleak_platform::runtime::{Closed, Outcome, Output};

use crate::RunError;
use crate::process::ProgramOrigin;

/// How a run ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnding {
    Done,
    /// The user interrupted it; everything read until then was processed.
    Interrupted,
    Closed,
}

#[derive(Debug)]
pub(crate) struct StageOutcome {
    pub(crate) index: usize,
    pub(crate) stage: String,
    pub(crate) origin: ProgramOrigin,
    pub(crate) outcome: Outcome,
}

/// How the run ended, given the outcomes of its stages in the order in which they ended.
pub(crate) fn first_cause(mut stages: Vec<StageOutcome>, sink: Outcome) -> Result<RunEnding, RunError> {
    if let Outcome::Failed(error) = &sink {
        return Err(RunError { stage: "output".into(), cause: format!("cannot be written: {error}"), code: 1 });
    }
    let is_closed = matches!(sink, Outcome::Closed);
    // A built-in stage fails only for its own reason. An external one may also fail because its neighbour did, or
    // because the output was closed; among those the first to end is the cause.
    let failed: Vec<&StageOutcome> =
        stages.iter().filter(|stage| matches!(stage.outcome, Outcome::Failed(_))).collect();
    let built_in = failed.iter().copied().filter(|stage| stage.origin == ProgramOrigin::BuiltIn);
    let first_external = failed.first().copied().filter(|_| !is_closed);
    if let Some(StageOutcome { stage, outcome: Outcome::Failed(cause), .. }) =
        built_in.min_by_key(|stage| stage.index).or(first_external)
    {
        return Err(RunError { stage: stage.clone(), cause: cause.clone(), code: 1 });
    }
    stages.sort_by_key(|stage| stage.index);
    for StageOutcome { stage, outcome, .. } in &stages {
        if let Outcome::Cut(cause) = outcome {
            return Err(RunError { stage: stage.clone(), cause: cause.clone(), code: 3 });
        }
    }
    if let Outcome::Cut(cause) = sink {
        let stage = stages.last().map_or_else(String::new, |last| last.stage.clone());
        return Err(RunError { stage, cause, code: 3 });
    }
    if is_closed {
        Ok(RunEnding::Closed)
    } else if stages.iter().any(|stage| stage.outcome == Outcome::Interrupted) {
        Ok(RunEnding::Interrupted)
    } else {
        Ok(RunEnding::Done)
    }
}

pub(crate) struct SinkOutput<'a> {
    sink: &'a mut dyn FrameSink,
    summary: Option<Summary>,
    /// How the sink ended, if that was before the stream did.
    ended: Option<Outcome>,
    spent: Duration,
}

impl<'a> SinkOutput<'a> {
    pub(crate) fn new(sink: &'a mut dyn FrameSink) -> Self {
        Self { sink, summary: None, ended: None, spent: Duration::ZERO }
    }

    pub(crate) fn end(mut self, stream: Outcome) -> (Outcome, Option<Summary>) {
        let _outcome_is_kept = self.flush();
        (self.ended.unwrap_or(stream), self.summary)
    }

    fn call(&mut self, call: impl FnOnce(&mut dyn FrameSink) -> io::Result<()>) -> io::Result<()> {
        if self.ended.is_some() {
            return Err(Closed.into());
        }
        let start = Instant::now();
        let result = call(self.sink);
        self.spent += start.elapsed();
        result.map_err(|error| {
            let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
            self.ended = Some(if is_closed { Outcome::Closed } else { Outcome::Failed(error.to_string()) });
            Closed.into()
        })
    }
}

impl Output for SinkOutput<'_> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        // A summary is always the last frame of a stream.
        if let Some(Frame::Summary(summary)) = frames.last() {
            self.summary = Some(summary.clone());
        }
        let taken = self.call(|sink| sink.take(frames));
        frames.clear();
        taken
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call(|sink| sink.pause())
    }

    fn waited(&self) -> Duration {
        self.spent
    }
}

#[cfg(test)]
mod tests;
