//! The figures of a run: the meters of its stages, its notices and its output.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sizeleak_frame::Notice;

use crate::{Meter, Progress};

/// The figures of a run. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Telemetry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    progress: Progress,
    meters: Mutex<Vec<Meter>>,
    notices: Mutex<BTreeMap<(String, String), u64>>,
    output: Mutex<BTreeMap<String, u64>>,
}

/// At most this many names from outside are counted separately, all others together.
const MAX_NAMES: usize = 200;

/// The name of all others.
const OTHER: &str = "other";

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
        let mut notices = lock(&self.0.notices);
        let mut name = (notice.stage.to_string(), notice.what.to_string());
        if notices.len() >= MAX_NAMES && !notices.contains_key(&name) {
            name = (OTHER.to_owned(), OTHER.to_owned());
        }
        *notices.entry(name).or_default() += 1;
    }

    /// The number of notices by stage and [`Notice::what`].
    pub fn notices(&self) -> BTreeMap<(String, String), u64> {
        lock(&self.0.notices).clone()
    }

    /// Sets how many frames of each kind the last stage has made; each row of a batch counts.
    pub fn set_output(&self, counts: &BTreeMap<String, u64>) {
        let mut output = lock(&self.0.output);
        let mut others = 0;
        for (kind, count) in counts {
            if let Some(shown) = output.get_mut(kind) {
                *shown = *count;
            } else if output.len() < MAX_NAMES {
                output.insert(kind.clone(), *count);
            } else {
                others += count;
            }
        }
        if others > 0 {
            output.insert(OTHER.to_owned(), others);
        }
    }

    /// The number of frames in the output by kind.
    pub fn output(&self) -> BTreeMap<String, u64> {
        lock(&self.0.output).clone()
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
    fn number_of_names_is_bounded() {
        let telemetry = Telemetry::new();
        for number in 0..1000 {
            telemetry.count_notice(&notice("mine", format!("word {number}")));
        }
        telemetry.count_notice(&notice("mine", "word 0".to_owned()));
        let notices = telemetry.notices();
        assert_eq!(notices.len(), MAX_NAMES + 1);
        assert_eq!(notices.values().sum::<u64>(), 1001);
        assert_eq!(notices[&("mine".to_owned(), "word 0".to_owned())], 2);
        let kinds: BTreeMap<String, u64> = (0..1000).map(|number| (format!("kind {number}"), 2)).collect();
        for _ in 0..2 {
            telemetry.set_output(&kinds);
        }
        let output = telemetry.output();
        assert_eq!((output.len(), output.values().sum::<u64>()), (MAX_NAMES + 1, 2000));
    }
}
