//! Checks that a program keeps the frame contract of `docs/frames.md`: it is fed recorded, varied and broken streams,
//! and its output is compared with the [`RULES`].
//!
//! ```
//! use std::time::Duration;
//! use sizeleak::conformance::{ConsumedKind, TestedProgram, RecordedStream, check};
//!
//! let program = TestedProgram { command: vec!["true".into()], limit: Duration::from_secs(10) };
//! let input = RecordedStream::simulated(ConsumedKind::Record)?;
//! let report = check(&program, &input, ConsumedKind::Record)?;
//! assert!(report.to_string().starts_with("failed  whole"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod recorded_stream;
mod rules;
mod semantics;
mod trial;
mod variation;

pub use recorded_stream::{ConsumedKind, RecordedStream};
pub use rules::{Duty, RULES, Rule};
pub use trial::TestedProgram;

use std::fmt::{Display, Formatter};
use std::io;

use serde_json::{Value, json};

use crate::conformance::trial::{CheckError, Trial};

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

/// The result of each rule, in the order in which they were checked.
#[derive(Debug)]
pub struct ConformanceReport {
    results: Vec<(&'static Rule, Option<String>)>,
    /// Whether all rules were checked; otherwise a prerequisite failed.
    pub(crate) is_complete: bool,
}

impl Default for ConformanceReport {
    fn default() -> Self {
        Self { results: Vec::new(), is_complete: true }
    }
}

impl ConformanceReport {
    pub(crate) fn add(&mut self, rule: &'static Rule, fault: Option<String>) {
        self.results.push((rule, fault));
    }

    /// Whether no `must` is broken.
    pub fn is_clean(&self) -> bool {
        self.count("failed") == 0
    }

    fn count(&self, verdict: &str) -> usize {
        self.results.iter().filter(|(rule, fault)| verdict_of(rule, fault.as_ref()) == verdict).count()
    }

    /// The report on a stage that consumes frames of `kind` as one JSON object.
    pub fn to_json(&self, command: &str, kind: &str) -> Value {
        let checks = self.results.iter().map(|(rule, fault)| {
            json!({
                "check": rule.name, "verdict": verdict_of(rule, fault.as_ref()), "demand": rule.demand, "found": fault,
                "section": rule.section,
            })
        });
        json!({
            "command": command, "kind": kind, "passed": self.count("passed"), "failed": self.count("failed"),
            "advised": self.count("advised"), "complete": self.is_complete, "checks": checks.collect::<Vec<_>>(),
        })
    }
}

fn verdict_of(rule: &Rule, fault: Option<&String>) -> &'static str {
    match (fault, rule.duty) {
        (None, _) => "passed",
        (Some(_), Duty::Must) => "failed",
        (Some(_), Duty::Should) => "advised",
    }
}

impl Display for ConformanceReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let width = self.results.iter().map(|(rule, _)| rule.name.len()).max().unwrap_or(0);
        for (rule, fault) in &self.results {
            let verdict = verdict_of(rule, fault.as_ref());
            writeln!(formatter, "{verdict:<8}{:<width$}  {}", rule.name, rule.demand)?;
            if let Some(fault) = fault {
                writeln!(formatter, "{:8}{:<width$}  → {fault} (docs/frames.md, {})", "", "", rule.section)?;
            }
        }
        let (passed, failed, advised) = (self.count("passed"), self.count("failed"), self.count("advised"));
        let advice = if advised > 0 { format!(", {advised} advised") } else { String::new() };
        let more = if self.is_complete { "" } else { "; fix this first, then more can be checked" };
        writeln!(formatter, "{passed} passed, {failed} failed{advice}{more}")
    }
}

#[cfg(test)]
mod tests {
    use super::rules::RULES;
    use super::*;

    fn rule(name: &str) -> &'static Rule {
        RULES.iter().copied().flatten().find(|rule| rule.name == name).unwrap()
    }

    #[test]
    fn broken_should_rule_is_advice_and_broken_must_rule_is_a_failure() {
        let mut report = ConformanceReport::default();
        report.add(rule("nulls"), None);
        report.add(rule("cut-notice"), Some("there is no notice".into()));
        assert!(report.is_clean());
        let text = report.to_string();
        assert!(text.starts_with("passed  nulls       Accept null"), "{text}");
        assert!(text.contains("→ there is no notice (docs/frames.md, 3. The end of a stream)\n"), "{text}");
        assert!(text.ends_with("1 passed, 0 failed, 1 advised\n"), "{text}");
        report.add(rule("hello"), Some("there is none".into()));
        assert!(!report.is_clean());
        let json = report.to_json("cat", "record");
        assert_eq!((&json["failed"], &json["checks"][2]["found"]), (&1.into(), &"there is none".into()));
    }
}
