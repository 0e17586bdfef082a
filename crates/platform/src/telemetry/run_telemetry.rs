//! The figures of a run: the meters of its stages, its notices and its output.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sizeleak_frame::Notice;

use crate::telemetry::{Meter, NoticeTally, Progress, Tally};

/// The figures of a run. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Telemetry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    progress: Progress,
    meters: Mutex<Vec<Meter>>,
    notices: Mutex<NoticeTally>,
    output: Mutex<Tally>,
}

impl Telemetry {
    /// The figures of a run that has not started.
    pub fn new() -> Self {
        Self::default()
    }

    /// A meter for a stage. A name that is taken gets a number appended.
    pub fn meter(&self, stage: &str) -> Meter {
        let mut meters = lock(&self.0.meters);
        let is_taken = |name: &str| meters.iter().any(|meter| meter.stage() == name);
        let mut names = (2..).map(|number| format!("{stage}-{number}"));
        let name = if is_taken(stage) { names.find(|name| !is_taken(name)) } else { None };
        let meter = Meter::new(name.as_deref().unwrap_or(stage), &self.0.progress);
        meters.push(meter.clone());
        meter
    }

    /// How much of the input has been read.
    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// The meters in the order of their creation.
    pub fn meters(&self) -> Vec<Meter> {
        lock(&self.0.meters).clone()
    }

    /// Counts a notice.
    pub fn count_notice(&self, notice: &Notice) {
        lock(&self.0.notices).add(notice);
    }

    /// The number of notices by stage and [`Notice::what`]; beyond a number of names the rest is `other`.
    pub fn notices(&self) -> BTreeMap<(String, String), u64> {
        let notices = lock(&self.0.notices);
        notices.iter().map(|(stage, what, counted)| ((stage.to_owned(), what.to_owned()), counted.times)).collect()
    }

    /// Sets how many frames of each kind the last stage has made; each row of a batch counts.
    pub fn set_output(&self, counts: &Tally) {
        lock(&self.0.output).clone_from(counts);
    }

    /// The number of frames in the output by kind.
    pub fn output(&self) -> BTreeMap<String, u64> {
        lock(&self.0.output).0.clone()
    }
}

/// A panic while the lock was held leaves the counts valid.
fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(stage: &str, what: String) -> Notice {
        Notice {
            time_ns: None,
            stage: stage.to_owned().into(),
            flow: None,
            what: what.into(),
            bytes: None,
            detail: None,
        }
    }

    #[test]
    fn repeated_stage_names_get_a_number() {
        let telemetry = Telemetry::new();
        let names = ["cat", "pruner", "cat", "cat-3", "cat"].map(|stage| telemetry.meter(stage).stage().to_owned());
        assert_eq!(names, ["cat", "pruner", "cat-2", "cat-3", "cat-4"]);
        assert_eq!(telemetry.meters().len(), 5);
    }

    #[test]
    fn figures_of_the_output_are_replaced_and_notices_counted() {
        let telemetry = Telemetry::new();
        for what in ["gap", "gap", "cut"] {
            telemetry.count_notice(&notice("mine", what.to_owned()));
        }
        assert_eq!(telemetry.notices()[&("mine".to_owned(), "gap".to_owned())], 2);
        let mut kinds = Tally::default();
        for _ in 0..2 {
            kinds.add("command", 5);
            telemetry.set_output(&kinds);
        }
        assert_eq!(telemetry.output(), [("command".to_owned(), 10)].into());
    }
}
