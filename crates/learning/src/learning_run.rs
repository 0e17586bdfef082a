//! From captures to a model, including how commands are distinguished from other records.
//!
//! The labelled commands are first found by algorithms that know nothing of the gateway. The commands of the algorithm
//! that fits the labels best show which records are noise; with that knowledge the commands are found again, and the
//! model is learned from these. So a model is learned from the commands that it will later be applied to.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Deserialize;
use sizeleak_command_segmenter::{LabelledTraffic, Options};
use sizeleak_evaluation::{LabelFile, Tolerance, observe};
use sizeleak_frame::{Command, Flow, Frame, Notice, Record};
use sizeleak_model::{CaptureDigest, FitMethod, Inventory, NoiseStatistics};
use sizeleak_pipeline::{Pipeline, RunError};
use toml::Value;

use crate::error::LearningError;
use crate::size_basis::{CipherSuite, ObservedCommand};
use crate::training_set::{LearnedModel, TrainingSet};

const SEGMENTER: &str = "command-segmenter";

/// The algorithm that needs a model.
const LEARNED: &str = "learned";

/// The algorithm that is used with a model without noise.
const DEFAULT: &str = "adaptive";

/// Noise is learned from at most this many records.
const MOST_RECORDS: usize = 1 << 22;

/// Everything that a model is learned from, except the commands in the captures.
#[derive(Debug)]
pub struct LearningRun<'a> {
    /// The labels of the captures.
    pub labels: &'a LabelFile,
    /// How far a command may be from its label.
    pub tolerance: Tolerance,
    /// Whether every command between the first label and the last has a label: then what has none is no command.
    pub labels_are_complete: bool,
    /// How sizes are learned.
    pub method: FitMethod,
    /// The cipher suite of sessions whose handshake was not captured.
    pub cipher: Option<CipherSuite>,
    /// The devices behind the gateway.
    pub inventory: Option<Inventory>,
    /// The captures, as the model names them.
    pub captures: Vec<CaptureDigest>,
}

/// What was learned from captures.
#[derive(Debug)]
pub struct LearningOutcome {
    /// The model, or why there is none.
    pub learned: Result<LearnedModel, LearningError>,
    /// The commands that were found.
    pub commands: Vec<ObservedCommand>,
    /// What is wrong with the captures. Everything before the damage was learned from.
    pub damage: Option<RunError>,
}

/// Which records are noise, and a remark for the user about that.
struct LearnedNoise {
    noise: NoiseStatistics,
    remark: Option<String>,
}

impl LearningOutcome {
    /// How badly commands and labels fit.
    fn mismatches(&self) -> usize {
        self.learned.as_ref().map_or(usize::MAX, |learned| learned.mismatches)
    }
}

impl LearningRun<'_> {
    /// Learns a model from the commands that a pipeline, which ends with the segmenter, finds in the captures. Notices
    /// of the first run over the captures go to `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run. That no model could be learned is part of the outcome.
    pub fn learn(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<LearningOutcome, LearningError> {
        let algorithm = pipeline.option(SEGMENTER, "algorithm").and_then(Value::as_str);
        let is_chosen = algorithm.is_some_and(|algorithm| algorithm != LEARNED);
        if is_chosen || !pipeline.has(SEGMENTER) {
            // The model holds for the commands of this algorithm, and no other is to be used with it.
            return self.learn_without_noise(pipeline, on_notice);
        }
        let learn_with = |algorithm: &str, look_ahead: Option<&str>, on_notice: &mut (dyn FnMut(&Notice) + Send)| {
            let mut pipeline = pipeline.clone();
            pipeline.set(SEGMENTER, "algorithm", algorithm)?;
            if let Some(look_ahead) = look_ahead {
                pipeline.set(SEGMENTER, "look-ahead", look_ahead)?;
            }
            self.learn_without_noise(&pipeline, on_notice)
        };
        // Decisions can wait for the end of the captures.
        let adaptive = learn_with("adaptive", Some("24h"), on_notice)?;
        let gap = learn_with("gap", None, &mut |_| {})?;
        let record = learn_with("record", None, &mut |_| {})?;
        // Among equals, the first.
        let best = [&adaptive, &gap, &record].into_iter().min_by_key(|outcome| outcome.mismatches());
        let best = best.unwrap_or(&adaptive);
        let refined = self.learn_with_noise(pipeline, best)?;
        let refined = match refined {
            Some(refined) if refined.mismatches() == 0 => return Ok(refined),
            other => other,
        };
        let mut default = learn_with(DEFAULT, None, &mut |_| {})?;
        if let Some(refined) = refined.filter(|refined| refined.mismatches() <= default.mismatches()) {
            return Ok(refined);
        }
        // With a model without noise the default algorithm finds the commands, so the model has to be learned from
        // those.
        if let Ok(learned) = &mut default.learned {
            learned.remarks.push(format!(
                "noise could not be learned well enough to find commands better than the segmenter's algorithm \
                 `{DEFAULT}`, which is used with this model"
            ));
        }
        Ok(default)
    }

    /// The commands as a training set.
    pub fn training_set<'a>(&'a self, commands: &'a [ObservedCommand]) -> TrainingSet<'a> {
        TrainingSet {
            labels: self.labels,
            commands,
            tolerance: self.tolerance,
            labels_are_complete: self.labels_are_complete,
        }
    }

    /// Learns from the commands that a pipeline finds.
    fn learn_without_noise(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<LearningOutcome, LearningError> {
        let mut suites: BTreeMap<u64, Option<String>> = BTreeMap::new();
        let mut commands = Vec::new();
        let damage = observe(pipeline, on_notice, |frame| match frame {
            Frame::Session(session) => {
                suites.insert(session.flow, session.cipher_suite);
            }
            Frame::Command(command) => {
                let cipher_suite = suites.get(&command.flow).cloned().flatten();
                commands.push(ObservedCommand { command: *command, cipher_suite });
            }
            _ => {}
        })?;
        let training_set = self.training_set(&commands);
        let learned =
            training_set.learn(self.method, self.cipher.clone(), self.inventory.clone(), self.captures.clone());
        Ok(LearningOutcome { learned, commands, damage })
    }

    /// Learns noise from the best outcome so far, and a model from the commands found with it; `None` if that outcome
    /// has no model.
    fn learn_with_noise(
        &self,
        pipeline: &Pipeline,
        best: &LearningOutcome,
    ) -> Result<Option<LearningOutcome>, LearningError> {
        let Ok(learned) = &best.learned else { return Ok(None) };
        let LearnedNoise { noise, remark } = self.noise(pipeline, best, learned)?;
        let mut model = learned.model.clone();
        model.noise = Some(noise.clone());
        let mut file = tempfile::Builder::new().prefix("sizeleak-").suffix(".toml").tempfile()?;
        file.write_all(model.to_toml().as_bytes())?;
        let mut pipeline = pipeline.clone();
        pipeline.set(SEGMENTER, "algorithm", LEARNED)?;
        pipeline.set(SEGMENTER, "model", file.path().to_string_lossy().into_owned())?;
        let mut refined = self.learn_without_noise(&pipeline, &mut |_| {})?;
        if let Ok(learned) = &mut refined.learned {
            learned.model.noise = Some(noise);
            learned.remarks.extend(remark);
        }
        Ok(Some(refined))
    }

    /// Which records are noise, according to the commands that a model was learned from.
    fn noise(
        &self,
        pipeline: &Pipeline,
        outcome: &LearningOutcome,
        learned: &LearnedModel,
    ) -> Result<LearnedNoise, LearningError> {
        let options = pipeline.options(SEGMENTER).cloned().unwrap_or_default();
        let options = Options::deserialize(Value::Table(options))?;
        let (mut records, mut flows): (Vec<Record>, Vec<Flow>) = (Vec::new(), Vec::new());
        let mut surplus = 0_u64;
        // Damage was reported with the first run.
        observe(&pipeline.before(SEGMENTER), &mut |_| {}, |frame| match frame {
            Frame::Record(record) if records.len() < MOST_RECORDS => records.push(record),
            Frame::Record(_) => surplus += 1,
            Frame::Flow(flow) => flows.push(*flow),
            _ => {}
        })?;
        let commands_at = |indices: &[usize]| -> Vec<Command> {
            let observed = indices.iter().filter_map(|at| outcome.commands.get(*at));
            observed.map(|observed| observed.command.clone()).collect()
        };
        let commands = commands_at(&learned.learned_from);
        let doubtful = commands_at(&learned.left_out);
        let span = self.training_set(&outcome.commands).span();
        let traffic = LabelledTraffic {
            records: &records,
            flows: &flows,
            commands: &commands,
            doubtful: &doubtful,
            span,
            labels_are_complete: self.labels_are_complete,
        };
        let noise = traffic.learn(&learned.model, &options)?;
        let remark = (surplus > 0)
            .then(|| format!("noise is learned from the first {MOST_RECORDS} records, without {surplus} later ones"));
        Ok(LearnedNoise { noise, remark })
    }
}
