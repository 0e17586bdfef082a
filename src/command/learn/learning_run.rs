//! From captures to a model, where how commands are told from other records is to be learned from them too.
//!
//! The labelled commands are first found by algorithms that know nothing of the gateway. The one whose commands fit the
//! labels best shows what is no command; with that they are found again, and the model is of what is found then. So a
//! model is learned from what it will later be used on.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, anyhow};
use serde::Deserialize;
use sizeleak_command_segmenter::{LabelledTraffic, Options};
use sizeleak_frame::{Command, Flow, Frame, Record};
use sizeleak_model::{CaptureDigest, FitMethod, Inventory, NoiseStatistics};
use toml::Value;

use super::basis::{Cipher, Observed};
use super::training_set::{LearnedModel, TrainingSet};
use crate::command::Failure;
use crate::command::labelled::LabelFile;
use crate::command::observation::{Observation, Telling, nothing, watch};
use sizeleak_pipeline::Pipeline;

const SEGMENTER: &str = "command-segmenter";

/// The algorithm that needs a model.
const LEARNED: &str = "learned";

/// The algorithm that is used where a model holds nothing of noise.
const USUAL: &str = "gap";

/// Algorithms that know nothing of a gateway: of those that fit the labels as well as any the first is followed.
const TEACHERS: [&str; 3] = ["adaptive", USUAL, "record"];

/// What is no command is learned from so many records at most.
const MOST_RECORDS: usize = 1 << 22;

/// All that a model is learned from but the captures' commands.
pub(super) struct LearningRun<'a> {
    pub(super) observation: &'a Observation,
    pub(super) labels: &'a LabelFile,
    pub(super) method: FitMethod,
    pub(super) cipher: Option<Cipher>,
    pub(super) inventory: Option<Inventory>,
    pub(super) captures: Vec<CaptureDigest>,
}

/// What was learned, and what is wrong with the captures.
pub(super) struct Attended {
    pub(super) learned: Result<LearnedModel, Failure>,
    /// The commands it was learned from.
    pub(super) commands: Vec<Observed>,
    pub(super) damage: Option<Failure>,
}

/// What one way to find commands came to.
struct Attempt {
    commands: Vec<Observed>,
    learned: anyhow::Result<LearnedModel>,
    damage: Option<Failure>,
}

/// What is no command, and what a person should know about that.
struct Shown {
    noise: NoiseStatistics,
    remark: Option<String>,
}

impl Attempt {
    /// How badly commands and labels fit.
    fn mismatches(&self) -> usize {
        self.learned.as_ref().map_or(usize::MAX, |learned| learned.mismatches)
    }

    fn into_attended(self) -> Attended {
        let Self { commands, learned, damage } = self;
        let learned = learned.map_err(|error| match &damage {
            None => error.into(),
            Some(damage) => {
                let both = anyhow!("{damage}; and from what was whole before that: {error:#}");
                Failure::with_code(damage.exit_code(), both)
            }
        });
        Attended { learned, commands, damage }
    }
}

impl LearningRun<'_> {
    /// Learns a model from what a pipeline, which ends with the segmenter, finds in the captures.
    pub(super) fn attend(&self, pipeline: &Pipeline) -> Result<Attended, Failure> {
        let algorithm = pipeline.option(SEGMENTER, "algorithm").and_then(Value::as_str);
        let is_told = algorithm.is_some_and(|algorithm| algorithm != LEARNED);
        if is_told || !pipeline.has(SEGMENTER) {
            // The model is of what that finds, and no other algorithm shall be used with it.
            return Ok(self.attempt(pipeline, self.observation.telling())?.into_attended());
        }
        self.attend_teachers(pipeline)
    }

    fn attend_teachers(&self, pipeline: &Pipeline) -> Result<Attended, Failure> {
        let mut attempts = Vec::new();
        for algorithm in TEACHERS {
            let mut taught = pipeline.clone();
            taught.set(SEGMENTER, "algorithm", algorithm)?;
            // There is no need to decide before the end.
            taught.set(SEGMENTER, "look-ahead", "24h")?;
            let telling = if attempts.is_empty() { self.observation.telling() } else { Telling::Nothing };
            attempts.push(self.attempt(&taught, telling)?);
        }
        let usual = TEACHERS.iter().zip(&attempts).find(|(name, _)| **name == USUAL);
        let usual = usual.map_or(usize::MAX, |(_, attempt)| attempt.mismatches());
        // Of equals the first.
        let best = attempts.iter().min_by_key(|attempt| attempt.mismatches());
        let again = match best {
            Some(best) => self.attempt_again(pipeline, best)?,
            None => None,
        };
        if let Some(again) = again.filter(|again| again.mismatches() <= usual) {
            return Ok(again.into_attended());
        }
        // A model without noise makes the usual algorithm find commands, so it has to be learned from what that finds.
        let first = TEACHERS.iter().zip(attempts).find(|(name, _)| **name == USUAL).map(|(_, attempt)| attempt);
        let mut attended = first.ok_or_else(|| nothing(None))?.into_attended();
        if let Ok(learned) = &mut attended.learned {
            learned.remarks.push(format!(
                "what is no command could not be learned so well that commands were found better than by the \
                 segmenter's algorithm `{USUAL}`, which is used with this model"
            ));
        }
        Ok(attended)
    }

    /// Finds the commands again with what the best attempt shows to be none; `None` where it shows nothing.
    fn attempt_again(&self, pipeline: &Pipeline, best: &Attempt) -> Result<Option<Attempt>, Failure> {
        let (Ok(learned), Some(shown)) = (&best.learned, self.noise(pipeline, best)?) else { return Ok(None) };
        let mut model = learned.model.clone();
        model.noise = Some(shown.noise.clone());
        let mut file = tempfile::Builder::new()
            .prefix("sizeleak-")
            .suffix(".toml")
            .tempfile()
            .context("a file for the model cannot be made")?;
        file.write_all(model.to_toml().as_bytes()).with_context(|| file.path().display().to_string())?;
        let path = file.path().to_str().context("the folder for temporary files has no UTF-8 name")?;
        let mut taught = pipeline.clone();
        taught.set(SEGMENTER, "algorithm", LEARNED)?;
        taught.set(SEGMENTER, "model", path)?;
        let mut attempt = self.attempt(&taught, Telling::Nothing)?;
        if let Ok(learned) = &mut attempt.learned {
            learned.model.noise = Some(shown.noise);
            learned.remarks.extend(shown.remark);
        }
        Ok(Some(attempt))
    }

    /// Learns from the commands a pipeline finds.
    fn attempt(&self, pipeline: &Pipeline, telling: Telling) -> Result<Attempt, Failure> {
        let mut suites: BTreeMap<u64, Option<String>> = BTreeMap::new();
        let mut commands = Vec::new();
        let damage = watch(pipeline, telling, |frame| match frame {
            Frame::Session(session) => {
                suites.insert(session.flow, session.cipher_suite);
            }
            Frame::Command(command) => {
                let cipher_suite = suites.get(&command.flow).cloned().flatten();
                commands.push(Observed { command: *command, cipher_suite });
            }
            _ => {}
        })?;
        let learned = self.lesson(&commands).learn(
            self.method,
            self.cipher.clone(),
            self.inventory.clone(),
            self.captures.clone(),
        );
        Ok(Attempt { commands, learned, damage })
    }

    /// What there is to learn from these commands.
    pub(super) fn lesson<'a>(&'a self, commands: &'a [Observed]) -> TrainingSet<'a> {
        TrainingSet { labels: self.labels, commands, tolerance: self.observation.tolerance }
    }

    /// What the commands of an attempt, of a pipeline that ends with the segmenter, show to be no command.
    fn noise(&self, pipeline: &Pipeline, attempt: &Attempt) -> Result<Option<Shown>, Failure> {
        let Ok(learned) = &attempt.learned else { return Ok(None) };
        let options = pipeline.options(SEGMENTER).cloned().unwrap_or_default();
        let options = Options::deserialize(Value::Table(options)).context("the segmenter's options")?;
        let (mut records, mut flows): (Vec<Record>, Vec<Flow>) = (Vec::new(), Vec::new());
        let mut surplus = 0_u64;
        // What is wrong with the captures was told.
        watch(&pipeline.before(SEGMENTER), Telling::Nothing, |frame| match frame {
            Frame::Record(record) if records.len() < MOST_RECORDS => records.push(record),
            Frame::Record(_) => surplus += 1,
            Frame::Flow(flow) => flows.push(*flow),
            _ => {}
        })?;
        let commands_at = |places: &[usize]| -> Vec<Command> {
            let observed = places.iter().filter_map(|at| attempt.commands.get(*at));
            observed.map(|observed| observed.command.clone()).collect()
        };
        let commands = commands_at(&learned.learned_from);
        let doubtful = commands_at(&learned.left_out);
        let span = self.lesson(&attempt.commands).span();
        let traffic =
            LabelledTraffic { records: &records, flows: &flows, commands: &commands, doubtful: &doubtful, span };
        let noise = traffic.learn(&learned.model.learned.basis, &options);
        let noise = noise.map_err(|error| Failure::usage(anyhow!("{error}")))?;
        let remark = (surplus > 0).then(|| {
            format!(
                "what is no command is learned from the first {MOST_RECORDS} records, not from {surplus} later ones"
            )
        });
        Ok(Some(Shown { noise, remark }))
    }
}
