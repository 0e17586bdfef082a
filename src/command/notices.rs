//! Reports the notices of stages on stderr.

use std::fmt::Display;

use sizeleak_frame::{Notice, what};
use sizeleak_pipeline::RunError;
use sizeleak_platform::telemetry::log::{self, say};
use sizeleak_platform::telemetry::{CaptureFaults, NoticeTally};

/// How many notes stand behind an answer.
pub(super) const MAX_NOTES: usize = 5;

/// The notices of a run: printed one by one, counted by stage and kind, or dropped, depending on the flags.
#[derive(Debug, Default)]
pub(super) struct NoticeReport {
    counted: NoticeTally,
    faults: CaptureFaults,
}

impl NoticeReport {
    pub(super) fn add(&mut self, notice: &Notice) {
        self.faults.add(notice);
        if log::is_verbose() {
            log::notice(notice);
            return;
        }
        // How a run ended is reported once, by its error; what is wrong with captures, by lines of their own.
        if [what::CUT, what::FAILED].contains(&&*notice.what) || CaptureFaults::is_one(notice) {
            return;
        }
        self.counted.add(notice);
    }

    /// Prints a line for each capture that was skipped or is damaged, and the counted notices, except those whose detail
    /// the error or the damage of the run repeats.
    pub(super) fn print<T, E: Display>(&self, run: &Result<T, E>, damage: impl Fn(&T) -> Option<&RunError>) {
        let error = match run {
            Ok(run) => damage(run).map_or_else(String::new, ToString::to_string),
            Err(error) => error.to_string(),
        };
        self.faults.print(Some(&error));
        self.notes(&error).iter().for_each(|note| say("note", note));
    }

    /// The counted notices, a sentence each, except those whose detail an error repeats.
    pub(super) fn notes(&self, error: &str) -> Vec<String> {
        let notes = self.counted.iter().filter_map(|(stage, what, counted)| {
            let detail = counted.detail.as_deref().unwrap_or_default();
            let times = if counted.times > 1 { format!(" ({} times)", counted.times) } else { String::new() };
            let colon = if detail.is_empty() { "" } else { ": " };
            let is_new = detail.is_empty() || !error.contains(detail);
            is_new.then(|| format!("{stage}: {what}{times}{colon}{detail}"))
        });
        notes.collect()
    }

    /// Prints what is wrong with captures behind an answer, and then at most five notes, worst first, unless all are asked
    /// for. `error` is what the run ends with.
    pub(super) fn print_behind_answer(&self, worst: Vec<String>, others: Vec<String>, error: &str) {
        self.faults.print(Some(error));
        let notes = [worst, self.notes(error), others].concat();
        let shown = if log::is_verbose() { notes.len() } else { MAX_NOTES.min(notes.len()) };
        notes.iter().take(shown).for_each(|note| say("note", note));
        if shown < notes.len() {
            say("note", &format!("{} more (-v prints all)", notes.len() - shown));
        }
    }
}
