//! Why a run ended: the first cause, not the cascade that follows from it.

use std::io;

use sizeleak_runtime::Outcome;

use super::RunError;
use super::process::Origin;
use super::run::RunEnding;

/// How one stage of a run ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its place in the pipeline.
    pub(super) at: usize,
    pub(super) stage: String,
    pub(super) origin: Origin,
    pub(super) outcome: Outcome,
}

/// How the sink's part of a run ended.
#[derive(Debug)]
pub(super) enum Drained {
    /// The sink took all that came. Whether that was a whole stream, the stages tell by how they ended.
    Whole,
    /// The stream ended without its summary.
    Cut(String),
    /// Nobody takes the output any more.
    Closed,
    /// The output cannot be written.
    Failed(io::Error),
}

/// What a run came to. `ended` is in the order in which the stages ended.
pub(super) fn settle(mut ended: Vec<Ended>, drained: Drained) -> Result<RunEnding, RunError> {
    if let Drained::Failed(error) = &drained {
        return Err(RunError { stage: "output".into(), cause: format!("cannot be written: {error}"), code: 1 });
    }
    let is_closed = matches!(drained, Drained::Closed);
    // One of our stages fails by itself alone. A foreign one may also fail because its neighbour did, or because the
    // output was closed, which to ours is no failure; among such the first to end is the cause.
    let native = |ended: &&Ended| ended.origin == Origin::Native;
    let failed: Vec<&Ended> = ended.iter().filter(|ended| matches!(ended.outcome, Outcome::Failed(_))).collect();
    let first_native = failed.iter().copied().filter(native).min_by_key(|ended| ended.at);
    let first_foreign = failed.first().copied().filter(|_| !is_closed);
    if let Some(Ended { stage, outcome: Outcome::Failed(cause), .. }) = first_native.or(first_foreign) {
        return Err(RunError { stage: stage.clone(), cause: cause.clone(), code: 1 });
    }
    ended.sort_by_key(|ended| ended.at);
    for Ended { stage, outcome, .. } in &ended {
        if let Outcome::Cut(cause) = outcome {
            return Err(RunError { stage: stage.clone(), cause: cause.clone(), code: 3 });
        }
    }
    if let Drained::Cut(cause) = drained {
        let stage = ended.last().map_or_else(String::new, |last| last.stage.clone());
        return Err(RunError { stage, cause, code: 3 });
    }
    if is_closed {
        Ok(RunEnding::Closed)
    } else if ended.iter().any(|ended| ended.outcome == Outcome::Interrupted) {
        Ok(RunEnding::Interrupted)
    } else {
        Ok(RunEnding::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at: usize, origin: Origin, outcome: Outcome) -> Ended {
        Ended { at, stage: format!("s{at}"), origin, outcome }
    }

    fn failed(cause: &str) -> Outcome {
        Outcome::Failed(cause.into())
    }

    fn cut() -> Outcome {
        Outcome::Cut("cut".into())
    }

    #[test]
    fn a_failure_comes_before_what_follows_from_it() {
        let cascade = vec![
            ended(2, Origin::Native, cut()),
            ended(1, Origin::Native, failed("why")),
            ended(0, Origin::Foreign, failed("broken pipe")),
        ];
        let error = settle(cascade, Drained::Cut("cut".into())).unwrap_err();
        assert_eq!((error.to_string(), error.exit_code()), ("`s1`: why".into(), 1));
        let foreign = vec![
            ended(1, Origin::Foreign, failed("why")),
            ended(0, Origin::Foreign, failed("broken pipe")),
            ended(2, Origin::Native, cut()),
        ];
        assert_eq!(settle(foreign, Drained::Cut("cut".into())).unwrap_err().to_string(), "`s1`: why");
    }

    #[test]
    fn a_cut_is_told_by_the_first_stage_that_saw_it() {
        let cascade = vec![ended(2, Origin::Native, cut()), ended(1, Origin::Native, cut())];
        let error = settle(cascade, Drained::Cut("cut".into())).unwrap_err();
        assert_eq!((error.stage.as_str(), error.exit_code()), ("s1", 3));
        let last = vec![ended(0, Origin::Foreign, Outcome::Done)];
        assert_eq!(settle(last, Drained::Cut("no end".into())).unwrap_err().to_string(), "`s0`: no end");
    }

    #[test]
    fn a_closed_output_is_no_failure() {
        let closed =
            || vec![ended(0, Origin::Foreign, failed("broken pipe")), ended(1, Origin::Native, Outcome::Closed)];
        assert_eq!(settle(closed(), Drained::Closed), Ok(RunEnding::Closed));
        let full = Drained::Failed(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(settle(closed(), full).unwrap_err().stage, "output");
        let interrupted = vec![ended(0, Origin::Native, Outcome::Interrupted), ended(1, Origin::Native, Outcome::Done)];
        assert_eq!(settle(interrupted, Drained::Whole), Ok(RunEnding::Interrupted));
        assert_eq!(settle(Vec::new(), Drained::Whole), Ok(RunEnding::Done));
    }
}
