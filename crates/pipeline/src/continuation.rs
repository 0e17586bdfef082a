//! Runs that continue where an earlier one has stopped: their stages start from its checkpoint, and leave the next one
//! instead of finishing.

use serde_json::json;
use sizeleak_platform::runtime::{FailureSlot, Runnable, StateSlot};

use crate::checkpoint::{Checkpoint, CheckpointError, StageCheckpoint};
use crate::placement::Placement;
use crate::run::PreparedRun;
use crate::{ConfigError, Mode, Pipeline};

/// The stages whose state is saved, from the captures to the records.
const STAGES: [&str; 3] = ["capture", "flow-filter", "record-sizer"];

/// The option of `capture` that names what this run reads.
const FILES: &str = "files";

/// The states that the stages of a run are going to leave.
#[derive(Debug)]
pub struct PendingCheckpoint {
    stages: Vec<(StageCheckpoint, StateSlot)>,
}

impl PendingCheckpoint {
    /// The checkpoint at the end of the run; `None` if that has not ended well.
    pub fn taken(self) -> Option<Checkpoint> {
        let stages = self.stages.into_iter().map(|(stage, slot)| {
            let state = if has_state(&stage.name) { slot.take()? } else { Vec::new() };
            Some(StageCheckpoint { state, ..stage })
        });
        Some(Checkpoint::new(stages.collect::<Option<_>>()?))
    }
}

/// Whether a stage knows more at the end of a file than at its beginning.
fn has_state(stage: &str) -> bool {
    stage != STAGES[0]
}

impl Pipeline {
    /// The part of the pipeline whose state can be saved: from the captures to the records.
    ///
    /// # Errors
    /// [`ConfigError`] if it does not begin with the three standard stages, runs them as processes, or saves the output
    /// of a later one.
    pub fn until_records(&self) -> Result<Self, ConfigError> {
        let usage = |fault: &str| Err(ConfigError::usage(fault.to_owned()));
        let mut part = self.clone();
        let later = part.stages.split_off(part.stages.len().min(STAGES.len()));
        let names = part.stages.iter().map(|stage| stage.entry().map_or("", |entry| entry.name));
        if !names.eq(STAGES) {
            return usage("only runs that begin with capture, flow-filter and record-sizer can be continued");
        }
        if self.mode == Mode::Processes {
            return usage("only runs on threads can be continued: leave out `--mode processes`");
        }
        if let Some(saving) = later.iter().find(|stage| stage.save.is_some()) {
            return Err(ConfigError::usage(format!(
                "a run that can be continued ends with the records, so `{}` has nothing to save",
                saving.name()
            )));
        }
        Ok(part)
    }

    /// The stages whose state is saved, without their states.
    fn checkpointed(&self) -> Vec<StageCheckpoint> {
        let stages = self.resolved_stages().into_iter().map(|stage| {
            let options = stage.options.iter().filter(|(key, _)| *key != FILES);
            // The keys of a table are sorted.
            let options: Vec<_> = options.map(|(key, value)| json!([key, value])).collect();
            let options = blake3::hash(json!(options).to_string().as_bytes()).into();
            StageCheckpoint { name: stage.entry.name.to_owned(), options, state: Vec::new() }
        });
        stages.collect()
    }
}

impl PreparedRun {
    /// Makes the stages of this run, which is one of `pipeline`, continue from a checkpoint.
    ///
    /// # Errors
    /// [`ConfigError`] if it is of other options, or the stages cannot be in these states.
    pub fn continue_from(&mut self, pipeline: &Pipeline, checkpoint: &Checkpoint) -> Result<(), ConfigError> {
        let expected = pipeline.checkpointed();
        if !expected.iter().map(|stage| &stage.name).eq(checkpoint.stages.iter().map(|stage| &stage.name)) {
            return Err(ConfigError::input(CheckpointError::Damaged.to_string()));
        }
        for (stage, saved) in expected.iter().zip(&checkpoint.stages) {
            if stage.options != saved.options {
                return Err(ConfigError::input(format!(
                    "the state is of a run with other options of {}: use those, or read the captures again from the \
                     first, with a new state",
                    stage.name
                )));
            }
        }
        for saved in checkpoint.stages.iter().filter(|saved| has_state(&saved.name)) {
            let restored = self.stage(&saved.name).map(|stage| stage.restore(&saved.state));
            if !matches!(restored, Some(Ok(()))) {
                return Err(ConfigError::input(CheckpointError::Damaged.to_string()));
            }
        }
        Ok(())
    }

    /// Makes the stages of this run, which is one of `pipeline`, leave their states at the end instead of finishing.
    ///
    /// # Errors
    /// [`ConfigError`] if one of them has no state that can be saved.
    pub fn leave_state(&mut self, pipeline: &Pipeline) -> Result<PendingCheckpoint, ConfigError> {
        let mut stages = Vec::new();
        for stage in pipeline.checkpointed() {
            let slot = StateSlot::default();
            if has_state(&stage.name) {
                let left = self.stage(&stage.name).map(|stage| stage.leave_state(slot.clone()));
                if !matches!(left, Some(Ok(()))) {
                    return Err(ConfigError::usage(format!("a run of `{}` cannot be continued", stage.name)));
                }
            }
            stages.push((stage, slot));
        }
        Ok(PendingCheckpoint { stages })
    }

    /// Makes the run end well although captures are damaged, behind everything that can be read of them. Returns where the
    /// first reason is left.
    pub fn accept_damage(&mut self) -> FailureSlot {
        let slot = FailureSlot::default();
        if let Some(capture) = self.stage(STAGES[0]) {
            capture.accept_failure(slot.clone());
        }
        slot
    }

    fn stage(&mut self, name: &str) -> Option<&mut Box<dyn Runnable>> {
        let threads = self.placements.iter_mut().filter_map(|placement| match placement {
            Placement::Thread(thread) => Some(thread),
            Placement::Process(_) | Placement::Forwarder(_) => None,
        });
        let mut stages = threads.flat_map(|thread| std::iter::once(&mut thread.first).chain(&mut thread.fused));
        stages.find(|stage| stage.name() == name)
    }
}
