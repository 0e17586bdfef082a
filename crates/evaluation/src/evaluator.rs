//! Runs pipelines over labelled captures and judges their answers, also as they would be if the commands were padded.

use std::path::PathBuf;

use serde::Serialize;
use sizeleak_frame::{Command, Direction, Frame, Notice};
use sizeleak_learning::labels::{LabelFile, Tolerance};
use sizeleak_learning::temporary_model;
use sizeleak_model::policies::{PaddingKey, PaddingPolicy};
use sizeleak_model::{Basis, LearnedPadding, Model, ModelSet};
use sizeleak_pipeline::recording::Recording;
use sizeleak_pipeline::{InputError, InputSource, ModelFit, Pipeline, PipelineInput, RunError, TrafficSeen};

use crate::conclusion::subject;
use crate::evaluation::Evaluation;
use crate::judge::CandidateJudge;
use crate::judged_run::{EvaluationError, JudgedCommand, JudgedRun, LabelIndex, MatchedCommands, after_pruning};
use crate::score::prior_bits;

/// The stages that work on commands, in order.
const INFERENCE: [&str; 3] = ["epsilon-corrector", "decomposer", "pruner"];

/// Judges pipelines by the same model and labels.
#[derive(Debug)]
pub struct Evaluator<'a> {
    /// The sections of the model that the pipelines use.
    pub models: &'a [Model],
    pub labels: &'a LabelFile,
    pub tolerance: Tolerance,
    /// The probability that a credible set holds.
    pub credible: f64,
    pub input: &'a PipelineInput,
}

impl Evaluator<'_> {
    /// Runs a pipeline and judges its commands. It runs first without inference, for the times of the commands, with which
    /// the labels' clock is compared. A pipeline with a pruner runs once more without it. Notices are those of one run.
    ///
    /// # Errors
    /// If the pipeline does not run, or finds no command near any label; [`EvaluationError::Inventory`], if the inventory of
    /// the model contradicts itself.
    pub fn judge(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<JudgedRun, EvaluationError> {
        let judge = CandidateJudge::new(self.models, &self.labels.labels().actions, self.credible)?;
        let labels = self.aligned(pipeline)?;
        let rows = labels.labels().rows.iter().map(|row| (row.time_ns, &*row.counts));
        let index = LabelIndex::new(judge, rows, self.tolerance.nanoseconds());
        let matched = |commands| MatchedCommands::new(commands, &labels, self.tolerance);
        let FoundCommands { mut commands, has_candidates, seen, damage, fit } =
            self.find(&index, pipeline, on_notice)?;
        if commands.is_empty() {
            return Err(InputError::no_commands(damage, seen).into());
        }
        let mut before = None;
        if pipeline.has("pruner") {
            let unpruned = self.find(&index, &pipeline.before("pruner"), &mut |_| {})?.commands;
            commands = after_pruning(commands, &unpruned);
            before = Some(unpruned);
        }
        let after = matched(commands)?;
        let before = before.map(matched).transpose()?;
        let subject = subject(pipeline, self.models);
        Ok(JudgedRun { labels, tolerance: self.tolerance, after, before, has_candidates, damage, fit, subject })
    }

    /// The figures of the same commands if they were padded by a policy that the model knows, with what that costs;
    /// `prior_bits` is the entropy of commands before their sizes are seen.
    ///
    /// # Errors
    /// As [`Evaluator::judge`]; also if the commands cannot be padded.
    pub fn padded_by(
        &self,
        policy: &PaddingPolicy,
        pipeline: &Pipeline,
        prior_bits: Option<f64>,
    ) -> Result<(PaddingOverhead, Evaluation), EvaluationError> {
        let padded = PaddedInput::new(self.input, pipeline, self.models, policy)?;
        let mut models = self.models.to_vec();
        for model in &mut models {
            model.learned.padding = Some(LearnedPadding::Policy(policy.clone()));
        }
        let models = ModelSet::new(models).map_err(|fault| self.labels.fault(fault.to_string()))?;
        let run = judge_model(&models, pipeline, self.labels, self.tolerance, self.credible, &padded.input)?;
        Ok((padded.overhead, Evaluation::new(&run, prior_bits)))
    }

    /// The labels on the clock of the commands that a pipeline finds.
    fn aligned(&self, pipeline: &Pipeline) -> Result<LabelFile, EvaluationError> {
        let mut times = Vec::new();
        // Their clock is surest by all commands.
        self.input.observe_all(&before_inference(pipeline), &mut |_| {}, |frame| match &frame {
            Frame::Identification(identification) => times.push(identification.command.time_ns),
            Frame::Correction(correction) => times.push(correction.command.time_ns),
            Frame::Command(command) => times.push(command.time_ns),
            _ => {}
        })?;
        Ok(self.labels.aligned(&times, self.tolerance))
    }

    /// The entropy of what a pipeline knows of a command before its size is seen, in bits; `None` if nothing bounds
    /// it, or where each of several sections knows something else.
    pub fn prior_bits(&self, pipeline: &Pipeline) -> Option<f64> {
        prior_bits(pipeline, self.models)
    }

    fn find(
        &self,
        index: &LabelIndex<'_>,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<FoundCommands, EvaluationError> {
        let (mut identified, mut unidentified) = (Vec::new(), Vec::new());
        let mut fit = ModelFit::All;
        let mut seen = TrafficSeen::default();
        let damage = self.input.observe(pipeline, on_notice, |frame| match &frame {
            Frame::Identification(identification) => identified.push(index.judge(identification)),
            Frame::Correction(correction) => unidentified.push(JudgedCommand::unidentified(&correction.command)),
            Frame::Command(command) => unidentified.push(JudgedCommand::unidentified(command)),
            frame => {
                if let Frame::Summary(summary) = frame {
                    fit = ModelFit::of(summary);
                }
                seen.add(frame);
            }
        })?;
        let has_candidates = !identified.is_empty();
        Ok(FoundCommands {
            commands: if has_candidates { identified } else { unidentified },
            has_candidates,
            seen,
            damage,
            fit,
        })
    }
}

struct FoundCommands {
    commands: Vec<JudgedCommand>,
    has_candidates: bool,
    seen: TrafficSeen,
    damage: Option<RunError>,
    fit: ModelFit,
}

/// The part of a pipeline that finds commands.
pub(crate) fn before_inference(pipeline: &Pipeline) -> Pipeline {
    let first = INFERENCE.into_iter().find(|stage| pipeline.has(stage));
    first.map_or_else(|| pipeline.clone(), |stage| pipeline.before(stage))
}

/// Judges the answers of a pipeline with a model that was just learned, on commands of these labels.
pub(crate) fn judge_model(
    models: &ModelSet,
    pipeline: &Pipeline,
    labels: &LabelFile,
    tolerance: Tolerance,
    credible: f64,
    input: &PipelineInput,
) -> Result<JudgedRun, EvaluationError> {
    let file = temporary_model(models)?;
    let mut pipeline = pipeline.clone();
    pipeline.use_model(file.path())?;
    let evaluator = Evaluator { models: models.sections(), labels, tolerance, credible, input };
    evaluator.judge(&pipeline, &mut |_| {})?.with_candidates()
}

const CORRECTOR: &str = "epsilon-corrector";

/// The commands of an input as they would be padded, from which pipelines continue.
#[derive(Debug)]
struct PaddedInput {
    input: PipelineInput,
    overhead: PaddingOverhead,
    _folder: tempfile::TempDir,
}

/// What padding costs, over all commands to gateways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PaddingOverhead {
    pub commands: u64,
    /// Their bytes of plaintext without padding.
    pub bytes: u64,
    pub added_bytes: u64,
}

impl PaddingOverhead {
    /// The bytes that padding adds, as a share of those without.
    pub fn share(&self) -> f64 {
        self.added_bytes as f64 / self.bytes.max(1) as f64
    }
}

impl PaddedInput {
    /// Pads the commands that a pipeline finds in an input. `models` say what cipher suites add, where it was not seen.
    ///
    /// Random padding is drawn by the time of each command, so that it is drawn anew for each, and always the same.
    fn new(
        input: &PipelineInput,
        pipeline: &Pipeline,
        models: &[Model],
        policy: &PaddingPolicy,
    ) -> Result<Self, EvaluationError> {
        if models.iter().any(|model| model.learned.padding.is_some()) {
            return Err(EvaluationError::PaddedAlready);
        }
        let folder = tempfile::Builder::new().prefix("sizeleak-").tempdir().map_err(InputError::Recording)?;
        let path: PathBuf = folder.path().join("padded.frames.zst");
        let mut writer = Recording::of_frames(&path).map_err(InputError::Recording)?;
        let basis = models.first().map(|model| &model.learned.basis);
        let (mut overhead, mut fault) = (PaddingOverhead::default(), None);
        input.observe(&pipeline.before(CORRECTOR), &mut |_| {}, |mut frame| {
            if fault.is_some() {
                return;
            }
            if let Frame::Command(command) = &mut frame
                && command.direction == Direction::ToGateway
            {
                match padded(command, basis, policy) {
                    Some((padded, added)) => {
                        overhead.commands += 1;
                        overhead.bytes += padded.plaintext.map_or(0, |[_, most]| most.saturating_sub(added));
                        overhead.added_bytes += added;
                        **command = padded;
                    }
                    None => fault = Some(EvaluationError::NoPlaintext),
                }
            }
            if let Err(error) = writer.write(&frame) {
                fault = Some(InputError::from(error).into());
            }
        })?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        Recording::end(writer).map_err(InputError::Recording)?;
        Ok(Self { input: PipelineInput::new(InputSource::Streams(vec![path])), overhead, _folder: folder })
    }
}

/// A command as it would be padded, and the bytes that are added; `None` if its bytes of plaintext are not known. Under a
/// block cipher it is padded as the largest message that its blocks may hold, and could be any from the padded smallest.
fn padded(command: &Command, basis: Option<&Basis>, policy: &PaddingPolicy) -> Option<(Command, u64)> {
    let sizes = match (command.plaintext, basis) {
        (Some(sizes), _) => sizes,
        (None, Some(basis @ Basis::Plaintext { .. })) => {
            let sizes = basis.sizes(command.size, command.records, None).ok()?;
            sizes.map(|size| u64::try_from(size).unwrap_or(0))
        }
        (None, _) => return None,
    };
    let draw = PaddingKey::new([0; 32]).draw(&command.time_ns.to_le_bytes());
    let [least, most] = sizes.map(|size| policy.drawn(size, draw));
    let added = most.saturating_sub(sizes[1]);
    let size = command.size.saturating_add(added);
    Some((Command { size, plaintext: Some([least.min(most), most]), ..command.clone() }, added))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(size: u64, plaintext: Option<[u64; 2]>) -> Command {
        Command { size, plaintext, records: 1, ..Command::default() }
    }

    fn sizes(command: &Command, basis: Option<&Basis>) -> Option<(u64, Option<[u64; 2]>, u64)> {
        let policy = PaddingPolicy::Table { buckets: vec![104, 131] };
        padded(command, basis, &policy).map(|(command, added)| (command.size, command.plaintext, added))
    }

    #[test]
    fn commands_grow_by_their_padding() {
        assert_eq!(sizes(&command(129, Some([105; 2])), None), Some((155, Some([131; 2]), 26)));
        let blocks = command(160, Some([100, 115]));
        assert_eq!(sizes(&blocks, None), Some((176, Some([104, 131]), 16)), "in blocks");
    }

    #[test]
    fn the_models_suite_is_assumed_where_none_was_seen() {
        let basis = Basis::Plaintext { cipher_suite: "X".to_owned(), record_overhead: [24, 24] };
        assert_eq!(sizes(&command(124, None), Some(&basis)), Some((128, Some([104; 2]), 4)));
        assert_eq!(sizes(&command(124, None), Some(&Basis::Wire)), None);
        assert_eq!(sizes(&command(124, None), None), None);
    }
}
