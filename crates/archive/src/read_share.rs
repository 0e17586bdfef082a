//! What one run of a pipeline reads, as a part of what all runs of an archive read.

use sizeleak_pipeline::PreparedRun;
use sizeleak_platform::telemetry::{Progress, Telemetry};

/// Adds what one run reads to the progress of all.
pub(crate) struct ReadShare {
    /// What the run has read.
    read: Progress,
    /// How much of that was added.
    added: u64,
    all: Progress,
}

impl ReadShare {
    /// The share of this run in `all`.
    pub(crate) fn of(run: &mut PreparedRun, all: &Progress) -> Self {
        let telemetry = Telemetry::new();
        run.report_to(&telemetry);
        Self { read: telemetry.progress().clone(), added: 0, all: all.clone() }
    }

    /// Adds what was read since the last time.
    pub(crate) fn add(&mut self) {
        let read = self.read.read();
        self.all.add(read.saturating_sub(self.added));
        self.added = read;
    }
}
