//! Checks that a program keeps the frame contract of `docs/frames.md`: it is fed recorded, varied and broken streams,
//! and its output is compared with the [`RULES`].
//!
//! ```
//! use std::time::Duration;
//! use sizeleak_conformance::{ConsumedKind, TestedProgram, RecordedStream, check};
//!
//! let program = TestedProgram { command: vec!["true".into()], limit: Duration::from_secs(10) };
//! let input = RecordedStream::simulated(ConsumedKind::Record)?;
//! let report = check(&program, &input, ConsumedKind::Record)?;
//! assert!(report.to_string().starts_with("failed  whole"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod recorded_stream;
mod report;
mod rules;
mod semantics;
mod trial;
mod variation;

use std::io;

pub use recorded_stream::{ConsumedKind, RecordedStream};
pub use report::ConformanceReport;
pub use rules::{Duty, RULES, Rule};
pub use trial::TestedProgram;

use trial::{CheckError, Trial};

/// Checks all rules that apply to a stage that consumes frames of `kind`. After a phase with a failed prerequisite, the
/// later phases are left out: they would fail for the same reason.
pub fn check(program: &TestedProgram, input: &RecordedStream, kind: ConsumedKind) -> io::Result<ConformanceReport> {
    let trial = Trial::new(program, input, kind)?;
    let mut report = ConformanceReport::default();
    for phase in RULES {
        let mut is_complete = true;
        for rule in phase.iter().filter(|rule| rule.applies_to(kind)) {
            let fault = match (rule.check)(&trial) {
                Ok(()) => None,
                Err(CheckError::Violation(fault)) => Some(fault),
                Err(CheckError::NotApplicable) => continue,
                Err(CheckError::Io(error)) => return Err(error),
            };
            is_complete &= fault.is_none() || !rule.is_prerequisite;
            report.add(rule, fault);
        }
        if !is_complete {
            report.is_complete = false;
            break;
        }
    }
    Ok(report)
}
