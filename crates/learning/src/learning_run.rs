//! From captures to a model, including how commands are distinguished from other records.
//!
//! The labelled commands are first found by algorithms that know nothing of the gateway. The commands of the algorithm
//! that fits the labels best show which records are noise; with that knowledge the commands are found again, and the
//! model is learned from these. So a model is learned from the commands that it will later be applied to.

use std::collections::BTreeSet;
use std::io::Write;

use serde::Deserialize;
use sizeleak_command_segmenter::{CommandDirection, LabelledTraffic, Options, learn_reply_windows};
use sizeleak_evaluation::{EvaluationError, LabelFile, PipelineInput, Tolerance};
use sizeleak_frame::{Command, Flow, Frame, Notice, Record};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{CaptureDigest, FitMethod, Inventory, Model, ModelSet, NoiseStatistics, ReplyWindows, Scope};
use sizeleak_pipeline::{Pipeline, RunError};
use toml::Value;

use crate::error::LearningError;
use crate::observed_commands::{ObservedCommands, observe_commands};
use crate::observed_service::ObservedService;
use crate::sections::SectionInput;
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
#[derive(Debug, Clone)]
pub struct LearningRun<'a> {
    /// The labels of the captures.
    pub labels: &'a LabelFile,
    /// The captures, or streams saved from them.
    pub input: &'a PipelineInput,
    /// How far a command may be from its label.
    pub tolerance: Tolerance,
    /// Whether every command between the first label and the last has a label: then what has none is no command.
    pub labels_are_complete: bool,
    /// How sizes are learned.
    pub method: FitMethod,
    /// The cipher suite of sessions whose handshake was not captured.
    pub cipher: Option<CipherSuite>,
    /// How commands are padded; `None` if they are not, or that is not known.
    pub padding: Option<PaddingPolicy>,
    /// The devices behind the gateway.
    pub inventory: Option<Inventory>,
    /// The captures, as the model names them.
    pub captures: Vec<CaptureDigest>,
}

/// What was learned from captures.
#[derive(Debug)]
pub struct LearningOutcome {
    /// The sections of the model, at least one, the one with the most labels first; or why there is none.
    pub learned: Result<Vec<LearnedModel>, LearningError>,
    /// The commands that were found.
    pub commands: Vec<ObservedCommand>,
    /// The labels, on the clock of the commands.
    pub labels: LabelFile,
    /// The services that they came from.
    pub services: Vec<ObservedService>,
    /// What is wrong with the captures. Everything before the damage was learned from.
    pub damage: Option<RunError>,
}

/// The records of the captures that noise is learned from.
#[derive(Debug, Default)]
struct ObservedTraffic {
    records: Vec<Record>,
    flows: Vec<Flow>,
    /// How many further records there are.
    surplus: u64,
}

impl LearningOutcome {
    /// How badly commands and labels fit.
    fn mismatches(&self) -> usize {
        let sections = self.learned.as_ref().ok();
        sections.and_then(|sections| sections.first()).map_or(usize::MAX, |learned| learned.mismatches)
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
        if is_chosen || !pipeline.has(SEGMENTER) || !self.input.has_records(pipeline)? {
            // The model holds for the commands of this algorithm, and no other is to be used with it.
            return self.learn_without_noise(pipeline, on_notice);
        }
        let options = Options::deserialize(Value::Table(pipeline.options(SEGMENTER).cloned().unwrap_or_default()))?;
        if options.direction == Some(CommandDirection::Both) {
            // Noise is what one side sends besides commands.
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
        let mut best = learn_with("adaptive", Some("24h"), on_notice)?;
        for algorithm in ["gap", "record"] {
            if best.mismatches() == 0 {
                break;
            }
            let other = learn_with(algorithm, None, &mut |_| {})?;
            // Among equals, the first.
            if other.mismatches() < best.mismatches() {
                best = other;
            }
        }
        let traffic = self.traffic(pipeline)?;
        let windows = reply_windows(&traffic, &options, &best);
        let mut pipeline = pipeline.clone();
        if let Some(windows) = windows {
            pipeline.set(SEGMENTER, "reply-within", format!("{}ms", windows.within_ms))?;
            pipeline.set(SEGMENTER, "reply-gap", format!("{}ms", windows.gap_ms))?;
        }
        let mut outcome = self.refined_or_default(&pipeline, &traffic, &best)?;
        for learned in outcome.learned.iter_mut().flatten() {
            learned.model.reply_windows = windows;
        }
        Ok(outcome)
    }

    /// What is learned from the commands found with noise or, if these fit the labels worse, by the algorithm that is
    /// the default without it.
    fn refined_or_default(
        &self,
        pipeline: &Pipeline,
        traffic: &ObservedTraffic,
        best: &LearningOutcome,
    ) -> Result<LearningOutcome, LearningError> {
        let refined = match self.learn_with_noise(pipeline, traffic, best)? {
            Some(refined) if refined.mismatches() == 0 => return Ok(refined),
            other => other,
        };
        let mut default_pipeline = pipeline.clone();
        default_pipeline.set(SEGMENTER, "algorithm", DEFAULT)?;
        let mut default = self.learn_without_noise(&default_pipeline, &mut |_| {})?;
        if let Some(refined) = refined.filter(|refined| refined.mismatches() <= default.mismatches()) {
            return Ok(refined);
        }
        // With a model without noise the default algorithm finds the commands, so the model has to be learned from
        // those.
        if let Some(learned) = default.learned.as_mut().ok().and_then(|sections| sections.first_mut()) {
            learned.remarks.push(format!(
                "noise could not be learned well enough to find commands better than the segmenter's algorithm \
                 `{DEFAULT}`, which is used with this model"
            ));
        }
        Ok(default)
    }

    /// Labels and commands as a training set.
    pub fn training_set<'a>(&'a self, labels: &'a LabelFile, commands: &'a [ObservedCommand]) -> TrainingSet<'a> {
        let Self { tolerance, labels_are_complete, .. } = *self;
        TrainingSet { labels, commands, tolerance, labels_are_complete, padding: self.padding.as_ref() }
    }

    /// Learns from the commands that a pipeline finds.
    fn learn_without_noise(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<LearningOutcome, LearningError> {
        let ObservedCommands { commands, services, seen, damage } = observe_commands(self.input, pipeline, on_notice)?;
        let times: Vec<i64> = commands.iter().map(|observed| observed.command.time_ns).collect();
        let labels = self.labels.aligned(&times, self.tolerance);
        let learned = if commands.is_empty() {
            Err(EvaluationError::NoCommands(Box::new(seen)).into())
        } else {
            let used = match &damage {
                None => self.check_use(&labels, &times),
                // Before the damage there need not be commands of all labels.
                Some(_) => Ok(()),
            };
            used.and_then(|()| self.sections(&labels, &commands, &services))
        };
        Ok(LearningOutcome { learned, commands, labels, services, damage })
    }

    /// The sections that labels and commands teach; without noise.
    pub(crate) fn sections(
        &self,
        labels: &LabelFile,
        commands: &[ObservedCommand],
        services: &[ObservedService],
    ) -> Result<Vec<LearnedModel>, LearningError> {
        let input = SectionInput {
            labels,
            tolerance: self.tolerance,
            labels_are_complete: self.labels_are_complete,
            padding: self.padding.as_ref(),
            method: self.method,
            cipher: self.cipher.as_ref(),
            inventory: self.inventory.as_ref(),
            captures: &self.captures,
        };
        input.learn(commands, services)
    }

    /// Checks that most labels have a command.
    fn check_use(&self, labels: &LabelFile, times: &[i64]) -> Result<(), LearningError> {
        let matching = labels.matching(times, self.tolerance)?;
        let used = labels.check_use(&matching, times, self.tolerance);
        used.map_err(|error| LearningError::Evaluation(error.into()))
    }

    /// Learns noise from the best outcome so far, and a model from the commands found with it; `None` if that outcome
    /// has no model.
    fn learn_with_noise(
        &self,
        pipeline: &Pipeline,
        traffic: &ObservedTraffic,
        best: &LearningOutcome,
    ) -> Result<Option<LearningOutcome>, LearningError> {
        let Ok(sections) = &best.learned else { return Ok(None) };
        let options = pipeline.options(SEGMENTER).cloned().unwrap_or_default();
        let options = Options::deserialize(Value::Table(options))?;
        let mut noises = Vec::with_capacity(sections.len());
        let mut models = Vec::with_capacity(sections.len());
        for section in sections {
            let noise = self.noise(traffic, &options, best, section)?;
            models.push(Model { noise: Some(noise.clone()), ..section.model.clone() });
            noises.push((section.model.scope.clone(), noise));
        }
        let models = ModelSet::new(models).map_err(|fault| self.fault(fault.to_string()))?;
        let mut file = tempfile::Builder::new().prefix("sizeleak-").suffix(".toml").tempfile()?;
        file.write_all(models.to_toml().as_bytes())?;
        let mut pipeline = pipeline.clone();
        pipeline.set(SEGMENTER, "algorithm", LEARNED)?;
        pipeline.set(SEGMENTER, "model", file.path().to_string_lossy().into_owned())?;
        let mut refined = self.learn_without_noise(&pipeline, &mut |_| {})?;
        for learned in refined.learned.iter_mut().flatten() {
            // A section that only now stands out has no noise of its own.
            let own = noises.iter().find(|(scope, _)| {
                scope.gateway == learned.model.scope.gateway && shares_service(scope, &learned.model.scope)
            });
            let Some((_, noise)) = own else { return Ok(None) };
            learned.model.noise = Some(noise.clone());
        }
        if traffic.surplus > 0
            && let Some(learned) = refined.learned.as_mut().ok().and_then(|sections| sections.first_mut())
        {
            learned.remarks.push(format!(
                "noise is learned from the first {MOST_RECORDS} records, without {} later ones",
                traffic.surplus
            ));
        }
        Ok(Some(refined))
    }

    /// An error that names the label file.
    fn fault(&self, fault: String) -> LearningError {
        LearningError::File { file: self.labels.path().display().to_string(), fault }
    }

    /// The records of the captures, with their flows. Damage was reported with the first run.
    fn traffic(&self, pipeline: &Pipeline) -> Result<ObservedTraffic, LearningError> {
        let mut traffic = ObservedTraffic::default();
        self.input.observe(&pipeline.before(SEGMENTER), &mut |_| {}, |frame| match frame {
            Frame::Record(record) if traffic.records.len() < MOST_RECORDS => traffic.records.push(record),
            Frame::Record(_) => traffic.surplus += 1,
            Frame::Flow(flow) => traffic.flows.push(*flow),
            _ => {}
        })?;
        Ok(traffic)
    }

    /// Which records of a section's services are noise, according to the commands that the section was learned from.
    fn noise(
        &self,
        traffic: &ObservedTraffic,
        options: &Options,
        outcome: &LearningOutcome,
        section: &LearnedModel,
    ) -> Result<NoiseStatistics, LearningError> {
        let commands_at = |indices: &[usize]| -> Vec<Command> {
            let observed = indices.iter().filter_map(|at| outcome.commands.get(*at));
            observed.map(|observed| observed.command.clone()).collect()
        };
        let commands = commands_at(&section.learned_from);
        let doubtful = commands_at(&section.left_out);
        let services: Vec<&ObservedService> =
            section.services.iter().filter_map(|at| outcome.services.get(*at)).collect();
        let is_own = |flow: &&Flow| {
            let is_of = |service: &&ObservedService| {
                service.gateway == flow.gateway && service.addresses.contains(&flow.service)
            };
            services.iter().any(is_of)
        };
        let flows: Vec<Flow> = traffic.flows.iter().filter(is_own).cloned().collect();
        let own: BTreeSet<u64> = flows.iter().map(|flow| flow.flow).collect();
        let records: Vec<Record> =
            traffic.records.iter().filter(|record| own.contains(&record.flow)).cloned().collect();
        let span = self.training_set(&outcome.labels, &outcome.commands).span();
        let traffic = LabelledTraffic {
            records: &records,
            flows: &flows,
            commands: &commands,
            doubtful: &doubtful,
            span,
            labels_are_complete: self.labels_are_complete,
        };
        Ok(traffic.learn(&section.model, options)?)
    }
}

/// How long replies take: as the user says, or as the labelled commands show.
fn reply_windows(traffic: &ObservedTraffic, options: &Options, outcome: &LearningOutcome) -> Option<ReplyWindows> {
    if let Some(given) = options.reply_windows() {
        return Some(given);
    }
    let sections = outcome.learned.as_ref().ok()?;
    let labelled = sections.iter().flat_map(|section| &section.learned_from);
    let observed = labelled.filter_map(|at| outcome.commands.get(*at));
    let commands: Vec<Command> = observed.map(|observed| observed.command.clone()).collect();
    learn_reply_windows(&traffic.records, &commands, options.min_size)
}

/// Whether two scopes have a service in common, and are both about commands or both about reports.
pub(crate) fn shares_service(one: &Scope, other: &Scope) -> bool {
    one.reports == other.reports
        && (one.services.is_empty() && other.services.is_empty()
            || one.services.iter().any(|service| other.services.contains(service)))
}
