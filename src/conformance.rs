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

mod checks;
mod recorded_stream;
mod semantics;
mod trial;
mod variation;

pub use recorded_stream::{ConsumedKind, RecordedStream};
pub use trial::TestedProgram;

use std::fmt::{Display, Formatter};
use std::io;

use serde_json::{Value, json};

use semantics::{are_batches_within_limits, are_times_of_input};
use trial::{CheckError, Trial};

/// Checks all rules that apply to a stage that consumes frames of `kind`. After a phase with a failed prerequisite, the
/// later phases are left out: they would fail for the same reason.
pub fn check(program: &TestedProgram, input: &RecordedStream, kind: ConsumedKind) -> io::Result<ConformanceReport> {
    let trial = Trial::new(program, input, kind)?;
    let mut report = ConformanceReport::default();
    for phase in RULES {
        for rule in phase.iter().filter(|rule| rule.applies_to(kind)) {
            let fault = match (rule.check)(&trial) {
                Ok(()) => None,
                Err(CheckError::Violation(fault)) => Some(fault),
                Err(CheckError::NotApplicable) => continue,
                Err(CheckError::Io(error)) => return Err(error),
            };
            report.is_stopped |= fault.is_some() && rule.is_prerequisite;
            report.add(rule, fault);
        }
        if report.is_stopped {
            break;
        }
    }
    Ok(report)
}

#[derive(Debug, Default)]
pub struct ConformanceReport {
    results: Vec<(&'static Rule, Option<String>)>,
    /// Whether a prerequisite failed, and rules behind it were not checked.
    is_stopped: bool,
}

impl ConformanceReport {
    fn add(&mut self, rule: &'static Rule, fault: Option<String>) {
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
            "advised": self.count("advised"), "complete": !self.is_stopped, "checks": checks.collect::<Vec<_>>(),
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
        let more = if self.is_stopped { "; fix this first, then more can be checked" } else { "" };
        writeln!(formatter, "{passed} passed, {failed} failed{advice}{more}")
    }
}

#[derive(Debug)]
pub struct Rule {
    pub name: &'static str,
    /// The section of `docs/frames.md` that states it.
    pub section: &'static str,
    pub duty: Duty,
    pub demand: &'static str,
    check: fn(&Trial<'_>) -> Result<(), CheckError>,
    is_for_readers: bool,
    /// Whether rules of later phases can be checked only if this one is kept.
    is_prerequisite: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// A stage that breaks it cannot be used.
    Must,
    /// A stage that breaks it can be used.
    Should,
}

impl Rule {
    fn applies_to(&self, kind: ConsumedKind) -> bool {
        !self.is_for_readers || kind != ConsumedKind::Nothing
    }

    const fn should(self) -> Self {
        Self { duty: Duty::Should, ..self }
    }

    const fn prerequisite(self) -> Self {
        Self { is_prerequisite: true, ..self }
    }
}

const fn all(
    name: &'static str,
    section: &'static str,
    check: fn(&Trial<'_>) -> Result<(), CheckError>,
    demand: &'static str,
) -> Rule {
    Rule { name, section, duty: Duty::Must, demand, check, is_for_readers: false, is_prerequisite: false }
}

const fn readers(
    name: &'static str,
    section: &'static str,
    check: fn(&Trial<'_>) -> Result<(), CheckError>,
    demand: &'static str,
) -> Rule {
    Rule { is_for_readers: true, ..all(name, section, check, demand) }
}

const STREAMS: &str = "1. Streams";
const KINDS: &str = "2. Kinds";
const END: &str = "3. The end of a stream";
const COUNTERS: &str = "5. Counters";
const LATENCIES: &str = "6. Latencies";
const LIMITS: &str = "7. Limits";
const VERSIONS: &str = "8. Versions and what is unknown";
const PROGRAMS: &str = "9. Programs";

/// All rules in the order in which they are checked, by phase: later phases build on the prerequisites of earlier ones.
#[rustfmt::skip]
pub static RULES: [&[Rule]; 4] = [
    &[
        all("whole", PROGRAMS, checks::whole,
            "Write a complete stream of frames to stdout, nothing else, and exit with 0.").prerequisite(),
    ],
    &[
        all("hello", STREAMS, checks::hello,
            "Start with a hello: schema 1, your name, and the stages before you as `upstream`."),
        readers("passing-on", STREAMS, |trial| Ok(trial.made().map(drop)?),
            "Pass on every frame of a kind you do not consume, unchanged and in order.").prerequisite(),
        all("summary", STREAMS, |trial| Ok(checks::own_row(trial).map(drop)?),
            "End with the summary you read: its rows unchanged, followed by your own."),
    ],
    &[
        all("counts", KINDS, checks::counts,
            "Count in your row the frames you consumed and made, not those you passed on."),
        all("counters", COUNTERS, checks::counters, "Name counters in lower case with underscores.").should(),
        all("meaning", KINDS, checks::meaning,
            "Make frames that mean what section 2 says: units, order, sums, flows."),
        all("times", STREAMS, |trial| Ok(are_times_of_input(trial.made()?, &trial.input.frames)?),
            "Take times from the frames, in nanoseconds, never from a clock."),
        all("batches", LIMITS, |trial| Ok(are_batches_within_limits(trial.made()?)?),
            "Send a batch at 256 rows, or once its rows carry 64 KiB."),
        all("repeatable", LATENCIES, checks::repeatable,
            "Make the same output of the same input: no clock, no randomness, no hash table order.").prerequisite(),
    ],
    &[
        readers("pieces", STREAMS, checks::pieces, "Accept values that arrive in pieces."),
        readers("nulls", STREAMS, checks::nulls, "Accept null for every field that may be null."),
        readers("encodings", STREAMS, checks::encodings,
            "Accept every encoding that MessagePack allows: wide integers, fields in any order, null fields left out."),
        readers("unknown-fields", VERSIONS, checks::unknown_fields,
            "Ignore unknown fields, and unknown entries at the end of a row."),
        readers("unknown-kinds", VERSIONS, checks::unknown_kinds,
            "Pass on notices and frames of unknown kinds, unchanged and in order."),
        readers("large-values", LIMITS, checks::large_values, "Accept values of up to 16 MiB."),
        readers("empty-stream", END, checks::empty_stream,
            "Make a stream of a stream that holds only a hello and a summary."),
        readers("no-input", END, checks::no_input,
            "If the input ends before its hello, send your own without upstream, and exit with 3."),
        readers("cut", END, checks::cut,
            "If the input ends without a summary, write none, say so on stderr, and exit with 3."),
        readers("cut-keeps", END, checks::cut_keeps, "Process every complete frame before the cut."),
        readers("cut-notice", END, checks::cut_notice,
            "Report a cut to the next stage: send a notice with `what` = `cut` as the last frame.").should(),
        readers("second-hello", LIMITS, checks::second_hello, "Reject a second hello, and exit with 1."),
        readers("garbage", LIMITS, checks::garbage,
            "Reject bytes that are no frame with one clear sentence, and exit with 1."),
        readers("lying-length", LIMITS, checks::lying_length,
            "Reject a value that claims more than 16 MiB, without waiting for it, and exit with 1."),
        readers("wrong-type", LIMITS, checks::wrong_type,
            "Reject a field of the wrong type with one clear sentence, and exit with 1."),
        readers("newer-schema", VERSIONS, checks::newer_schema,
            "Reject a newer schema than yours in a sentence that names both, and exit with 1."),
        readers("behind-the-end", LIMITS, checks::behind_the_end, "Reject frames after the summary, and exit with 1."),
        readers("deep-nesting", LIMITS, checks::deep_nesting,
            "Accept or reject a value nested a million levels deep, but do not crash."),
        all("closed-stdout", PROGRAMS, checks::closed_stdout,
            "End quietly and soon, with 0, when nobody reads stdout any more."),
        readers("prompt", STREAMS, checks::prompt, "Send pending frames before waiting for input: flush stdout."),
        readers("sigint", PROGRAMS, checks::sigint,
            "Survive SIGINT: go on until the input ends, and end with its summary."),
        readers("sigterm", PROGRAMS, checks::sigterm, "End on SIGTERM, at the latest when the input ends."),
        all("second-signal", PROGRAMS, checks::second_signal,
            "End at once on a second SIGINT or SIGTERM, without waiting for the input's end.").should(),
    ],
];

#[cfg(test)]
mod tests {
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

    #[test]
    fn every_section_is_one_of_the_contract() {
        let document = include_str!("../docs/frames.md");
        let rules: Vec<&Rule> = RULES.iter().copied().flatten().collect();
        assert!(rules.len() > 25);
        for Rule { section, .. } in rules {
            assert!(document.contains(&format!("\n## {section}\n")), "{section}");
        }
    }
}
