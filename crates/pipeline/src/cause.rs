//! Finds the first cause of a run's end among the outcomes that followed from it.

use sizeleak_platform::runtime::Outcome;

use crate::RunError;
use crate::process::ProgramOrigin;
use crate::sink_output::SinkOutcome;

/// How a run ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnding {
    Done,
    /// The user interrupted it; everything read until then was processed.
    Interrupted,
    /// The reader of the output closed it.
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
pub(crate) fn first_cause(mut stages: Vec<StageOutcome>, sink: SinkOutcome) -> Result<RunEnding, RunError> {
    if let SinkOutcome::Failed(error) = &sink {
        return Err(RunError { stage: "output".into(), cause: format!("cannot be written: {error}"), code: 1 });
    }
    let is_closed = matches!(sink, SinkOutcome::Closed);
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
    if let SinkOutcome::Cut(cause) = sink {
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

#[cfg(test)]
mod tests;
