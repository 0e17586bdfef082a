//! The rules of the frame contract, as a table.

mod endings;
mod whole_stream;

use crate::conformance::recorded_stream::ConsumedKind;
use crate::conformance::semantics::{are_batches_within_limits, are_times_of_input};
use crate::conformance::trial::{CheckError, Trial};

#[derive(Debug)]
pub struct Rule {
    pub name: &'static str,
    /// The section of `docs/frames.md` that states it.
    pub section: &'static str,
    pub duty: Duty,
    pub demand: &'static str,
    pub(crate) check: fn(&Trial<'_>) -> Result<(), CheckError>,
    /// Whether it is only for stages that read frames.
    is_for_readers: bool,
    /// Whether rules of later phases can be checked only if this one is kept.
    pub(crate) is_prerequisite: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// A stage that breaks it cannot be used.
    Must,
    /// A stage that breaks it can be used.
    Should,
}

impl Rule {
    pub(crate) fn applies_to(&self, kind: ConsumedKind) -> bool {
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
        all("whole", PROGRAMS, whole_stream::whole,
            "Write a complete stream of frames to stdout, nothing else, and exit with 0.").prerequisite(),
    ],
    &[
        all("hello", STREAMS, whole_stream::hello,
            "Start with a hello: schema 1, your name, and the stages before you as `upstream`."),
        readers("passing-on", STREAMS, |trial| Ok(trial.made().map(drop)?),
            "Pass on every frame of a kind you do not consume, unchanged and in order.").prerequisite(),
        all("summary", STREAMS, |trial| Ok(whole_stream::own_row(trial).map(drop)?),
            "End with the summary you read: its rows unchanged, followed by your own."),
    ],
    &[
        all("counts", KINDS, whole_stream::counts,
            "Count in your row the frames you consumed and made, not those you passed on."),
        all("counters", COUNTERS, whole_stream::counters, "Name counters in lower case with underscores.").should(),
        all("meaning", KINDS, whole_stream::meaning,
            "Make frames that mean what section 2 says: units, order, sums, flows."),
        all("times", STREAMS, |trial| Ok(are_times_of_input(trial.made()?, &trial.input.frames)?),
            "Take times from the frames, in nanoseconds, never from a clock."),
        all("batches", LIMITS, |trial| Ok(are_batches_within_limits(trial.made()?)?),
            "Send a batch at 256 rows, or once its rows carry 64 KiB."),
        all("repeatable", LATENCIES, whole_stream::repeatable,
            "Make the same output of the same input: no clock, no randomness, no hash table order.").prerequisite(),
    ],
    &[
        readers("pieces", STREAMS, whole_stream::pieces, "Accept values that arrive in pieces."),
        readers("nulls", STREAMS, whole_stream::nulls, "Accept null for every field that may be null."),
        readers("encodings", STREAMS, whole_stream::encodings,
            "Accept every encoding that MessagePack allows: wide integers, fields in any order, null fields left out."),
        readers("unknown-fields", VERSIONS, whole_stream::unknown_fields,
            "Ignore unknown fields, and unknown entries at the end of a row."),
        readers("unknown-kinds", VERSIONS, whole_stream::unknown_kinds,
            "Pass on notices and frames of unknown kinds, unchanged and in order."),
        readers("large-values", LIMITS, whole_stream::large_values, "Accept values of up to 16 MiB."),
        readers("empty-stream", END, endings::empty_stream,
            "Make a stream of a stream that holds only a hello and a summary."),
        readers("no-input", END, endings::no_input,
            "If the input ends before its hello, send your own without upstream, and exit with 3."),
        readers("cut", END, endings::cut,
            "If the input ends without a summary, write none, say so on stderr, and exit with 3."),
        readers("cut-keeps", END, endings::cut_keeps, "Process every complete frame before the cut."),
        readers("cut-notice", END, endings::cut_notice,
            "Report a cut to the next stage: send a notice with `what` = `cut` as the last frame.").should(),
        readers("second-hello", LIMITS, endings::second_hello, "Reject a second hello, and exit with 1."),
        readers("garbage", LIMITS, endings::garbage,
            "Reject bytes that are no frame with one clear sentence, and exit with 1."),
        readers("lying-length", LIMITS, endings::lying_length,
            "Reject a value that claims more than 16 MiB, without waiting for it, and exit with 1."),
        readers("wrong-type", LIMITS, endings::wrong_type,
            "Reject a field of the wrong type with one clear sentence, and exit with 1."),
        readers("newer-schema", VERSIONS, endings::newer_schema,
            "Reject a newer schema than yours in a sentence that names both, and exit with 1."),
        readers("behind-the-end", LIMITS, endings::behind_the_end, "Reject frames after the summary, and exit with 1."),
        readers("deep-nesting", LIMITS, endings::deep_nesting,
            "Accept or reject a value nested a million levels deep, but do not crash."),
        all("closed-stdout", PROGRAMS, endings::closed_stdout,
            "End quietly and soon, with 0, when nobody reads stdout any more."),
        readers("prompt", STREAMS, endings::prompt, "Send pending frames before waiting for input: flush stdout."),
        readers("sigint", PROGRAMS, endings::sigint,
            "Survive SIGINT: go on until the input ends, and end with its summary."),
        readers("sigterm", PROGRAMS, endings::sigterm, "End on SIGTERM, at the latest when the input ends."),
        all("second-signal", PROGRAMS, endings::second_signal,
            "End at once on a second SIGINT or SIGTERM, without waiting for the input's end.").should(),
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_one_of_the_contract() {
        let document = include_str!("../../docs/frames.md");
        let rules: Vec<&Rule> = RULES.iter().copied().flatten().collect();
        assert!(rules.len() > 25);
        for Rule { section, .. } in rules {
            assert!(document.contains(&format!("\n## {section}\n")), "{section}");
        }
    }
}
