//! What was checked and what was found: for a person, and as JSON.

use std::fmt::{Display, Formatter};

use serde_json::{Value, json};

/// One demand of the contract that is checked.
#[derive(Debug)]
pub(super) struct Check {
    /// What it is called.
    pub(super) name: &'static str,
    /// What a stage has to do.
    pub(super) demand: &'static str,
    /// The section of `docs/frames.md` that says so.
    pub(super) section: &'static str,
    pub(super) duty: Duty,
}

/// How much a demand is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    Must,
    Should,
}

impl Check {
    pub(super) const fn must(name: &'static str, section: &'static str, demand: &'static str) -> Self {
        Self { name, demand, section, duty: Duty::Must }
    }

    pub(super) const fn should(name: &'static str, section: &'static str, demand: &'static str) -> Self {
        Self { name, demand, section, duty: Duty::Should }
    }
}

/// What checks came to, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    found: Vec<(&'static Check, Option<String>)>,
    /// Checks that were not made, since they would fail for what was found already.
    has_more_to_check: bool,
}

impl Verdict {
    /// Notes what a check came to: `Err` with what was seen instead.
    pub(super) fn note(&mut self, check: &'static Check, result: Result<(), String>) {
        self.found.push((check, result.err()));
    }

    /// The same, of a stage that has to be mended before all checks can be made.
    pub(super) fn with_more_to_check(self) -> Self {
        Self { has_more_to_check: true, ..self }
    }

    /// Whether a stage may be used: every `must` is kept.
    pub(super) fn is_clean(&self) -> bool {
        self.count("failed") == 0
    }

    fn count(&self, word: &str) -> usize {
        self.found.iter().filter(|(check, fault)| of(check, fault.as_ref()) == word).count()
    }

    /// The verdict on a stage that works on frames of `kind` as one JSON object.
    pub(super) fn to_json(&self, command: &str, kind: &str) -> Value {
        let checks = self.found.iter().map(|(check, fault)| {
            json!({
                "check": check.name, "verdict": of(check, fault.as_ref()), "demand": check.demand, "found": fault,
                "section": check.section,
            })
        });
        json!({
            "command": command, "kind": kind, "passed": self.count("passed"), "failed": self.count("failed"),
            "advised": self.count("advised"), "complete": !self.has_more_to_check, "checks": checks.collect::<Vec<_>>(),
        })
    }
}

fn of(check: &Check, fault: Option<&String>) -> &'static str {
    match (fault, check.duty) {
        (None, _) => "passed",
        (Some(_), Duty::Must) => "failed",
        (Some(_), Duty::Should) => "advised",
    }
}

impl Display for Verdict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let width = self.found.iter().map(|(check, _)| check.name.len()).max().unwrap_or(0);
        for (check, fault) in &self.found {
            let word = of(check, fault.as_ref());
            writeln!(formatter, "{word:<8}{:<width$}  {}", check.name, check.demand)?;
            if let Some(fault) = fault {
                writeln!(formatter, "{:8}{:<width$}  → {fault} (docs/frames.md, {})", "", "", check.section)?;
            }
        }
        let (passed, failed, advised) = (self.count("passed"), self.count("failed"), self.count("advised"));
        let advice = if advised > 0 { format!(", {advised} advised") } else { String::new() };
        let more = if self.has_more_to_check { "; mend this first, then there is more to check" } else { "" };
        writeln!(formatter, "{passed} passed, {failed} failed{advice}{more}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static HELLO: Check = Check::must("hello", "1. Streams", "Say hello first.");
    static NOTICE: Check = Check::should("cut-notice", "3. The end of a stream", "Tell why.");

    #[test]
    fn what_is_only_advised_is_no_failure() {
        let mut verdict = Verdict::default();
        verdict.note(&HELLO, Ok(()));
        verdict.note(&NOTICE, Err("nothing was told".into()));
        assert!(verdict.is_clean());
        let text = verdict.to_string();
        assert!(text.contains("passed  hello       Say hello first.\nadvised cut-notice  Tell why.\n"), "{text}");
        assert!(text.contains("→ nothing was told (docs/frames.md, 3. The end of a stream)\n"), "{text}");
        assert!(text.ends_with("1 passed, 0 failed, 1 advised\n"), "{text}");
        verdict.note(&HELLO, Err("silence".into()));
        assert!(!verdict.is_clean());
        let json = verdict.to_json("cat", "record");
        assert_eq!((&json["failed"], &json["checks"][2]["found"]), (&1.into(), &"silence".into()));
    }
}
