//! Tests of `cause`.

use std::io;

use super::*;

fn ended(index: usize, origin: ProgramOrigin, outcome: Outcome) -> StageOutcome {
    StageOutcome { index, stage: format!("s{index}"), origin, outcome }
}

fn failed(cause: &str) -> Outcome {
    Outcome::Failed(cause.into())
}

fn cut() -> Outcome {
    Outcome::Cut("cut".into())
}

#[test]
fn the_first_failure_is_the_cause() {
    let cascade = vec![
        ended(2, ProgramOrigin::BuiltIn, cut()),
        ended(1, ProgramOrigin::BuiltIn, failed("why")),
        ended(0, ProgramOrigin::External, failed("broken pipe")),
    ];
    let error = first_cause(cascade, Outcome::Cut("cut".into())).unwrap_err();
    assert_eq!((error.to_string(), error.exit_code()), ("`s1`: why".into(), 1));
    let external = vec![
        ended(1, ProgramOrigin::External, failed("why")),
        ended(0, ProgramOrigin::External, failed("broken pipe")),
        ended(2, ProgramOrigin::BuiltIn, cut()),
    ];
    assert_eq!(first_cause(external, Outcome::Cut("cut".into())).unwrap_err().to_string(), "`s1`: why");
}

#[test]
fn a_cut_is_reported_by_the_first_stage_that_saw_it() {
    let cascade = vec![ended(2, ProgramOrigin::BuiltIn, cut()), ended(1, ProgramOrigin::BuiltIn, cut())];
    let error = first_cause(cascade, Outcome::Cut("cut".into())).unwrap_err();
    assert_eq!((error.stage.as_str(), error.exit_code()), ("s1", 3));
    let last = vec![ended(0, ProgramOrigin::External, Outcome::Done)];
    assert_eq!(first_cause(last, Outcome::Cut("no end".into())).unwrap_err().to_string(), "`s0`: no end");
}

#[test]
fn a_closed_output_is_not_a_failure() {
    let closed = || {
        vec![
            ended(0, ProgramOrigin::External, failed("broken pipe")),
            ended(1, ProgramOrigin::BuiltIn, Outcome::Closed),
        ]
    };
    assert_eq!(first_cause(closed(), Outcome::Closed), Ok(RunEnding::Closed));
    let full = Outcome::Failed(io::Error::from(io::ErrorKind::StorageFull).to_string());
    assert_eq!(first_cause(closed(), full).unwrap_err().stage, "output");
    let interrupted =
        vec![ended(0, ProgramOrigin::BuiltIn, Outcome::Interrupted), ended(1, ProgramOrigin::BuiltIn, Outcome::Done)];
    assert_eq!(first_cause(interrupted, Outcome::Done), Ok(RunEnding::Interrupted));
    assert_eq!(first_cause(Vec::new(), Outcome::Done), Ok(RunEnding::Done));
}
