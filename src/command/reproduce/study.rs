//! Homes as the paper describes its own, models learned on them by two procedures, and how good these are.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use sizeleak_evaluation::statistics::share::wilson;
use sizeleak_evaluation::statistics::{Confidence, Interval};
use sizeleak_evaluation::{Evaluation, Evaluator, JudgedRun, PaperFigures, Score};
use sizeleak_labels::{LabelFile, LabelTimes};
use sizeleak_learning::{LearningRun, LearningSettings, digest_captures};
use sizeleak_model::{FitMethod, Inventory, ModelSet};
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput};
use sizeleak_platform::storage::replace;
use sizeleak_simulator::scenario::Framing;
use sizeleak_simulator::{Scenario, Simulation, TestForm, bayes_limit, simulate};
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

use crate::command::failure::Failure;

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

/// The probability that a credible set holds; it changes none of the figures here.
const CREDIBLE: f64 = 0.95;

/// The protocols that a gateway may be commanded by.
const PROTOCOLS: [(&str, Framing); 3] =
    [("websocket", Framing::Websocket), ("mqtt", Framing::Mqtt), ("http", Framing::Http)];

/// A home to simulate, and where.
#[derive(Debug)]
pub(super) struct StudyHome {
    protocol: &'static str,
    folder: PathBuf,
    scenario: Scenario,
}

/// Whose procedure: how sizes are learned, and how candidates are pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Procedure {
    Papers,
    Ours,
}

/// The figures of all homes.
#[derive(Debug, Serialize)]
pub(super) struct Study {
    schema: u32,
    seed: u64,
    pub(super) commands: u32,
    /// Labelled commands that each model is learned from.
    pub(super) labelled: usize,
    pub(super) published: PublishedFigures,
    pub(super) homes: Vec<HomeFigures>,
}

/// What the paper published.
#[derive(Debug, Serialize)]
pub(super) struct PublishedFigures {
    pub(super) truth_among: SampleShare,
    pub(super) truth_among_after_pruning: SampleShare,
}

/// The figures of one home.
#[derive(Debug, Serialize)]
pub(super) struct HomeFigures {
    pub(super) protocol: &'static str,
    pub(super) papers_procedure: ProcedureFigures,
    pub(super) ours: ProcedureFigures,
    pub(super) possible: PossibleFigures,
}

/// How good the answers of one model are.
#[derive(Debug, Serialize)]
pub(super) struct ProcedureFigures {
    pub(super) truth_among: SampleShare,
    pub(super) truth_among_after_pruning: SampleShare,
    pub(super) first_right: SampleShare,
    pub(super) first_right_after_pruning: SampleShare,
    pub(super) mean_candidates: f64,
    pub(super) mean_candidates_after_pruning: f64,
}

/// The best that any method can do.
#[derive(Debug, Serialize)]
pub(super) struct PossibleFigures {
    pub(super) first_right: f64,
    pub(super) first_right_with_replies: f64,
}

/// A share of the labelled commands with its 95 % interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct SampleShare {
    part: u64,
    of: u64,
    pub(super) share: f64,
    pub(super) interval: Interval,
}

impl StudyHome {
    /// The homes of a study with so many commands to test on, each in a folder of its own.
    pub(super) fn all(folder: &Path, commands: u32) -> Vec<Self> {
        let homes = PROTOCOLS.into_iter().map(|(protocol, framing)| {
            let mut scenario = Scenario::default();
            scenario.session.framing = framing;
            scenario.test.commands = commands;
            Self { protocol, folder: folder.join(protocol), scenario }
        });
        homes.collect()
    }

    /// The files that a study writes.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let models = [Procedure::Papers, Procedure::Ours].map(Procedure::model);
        Simulation::files(&self.scenario, TestForm::Capture)
            .into_iter()
            .chain(models)
            .map(|name| self.folder.join(name))
            .collect()
    }

    fn figures(&self, seed: u64) -> Result<(HomeFigures, usize), Failure> {
        let simulation = simulate(&self.scenario, seed)?;
        simulation.write_to(&self.folder)?;
        let limit = bayes_limit(&self.scenario).context(self.protocol)?;
        let figures = HomeFigures {
            protocol: self.protocol,
            papers_procedure: self.procedure(Procedure::Papers)?,
            ours: self.procedure(Procedure::Ours)?,
            possible: PossibleFigures { first_right: limit.top_1, first_right_with_replies: limit.top_1_with_replies },
        };
        Ok((figures, simulation.learn.truths.len()))
    }

    /// Learns a model by a procedure, and evaluates it.
    fn procedure(&self, procedure: Procedure) -> Result<ProcedureFigures, Failure> {
        let model = self.folder.join(procedure.model());
        let learned = self.learn(procedure.method())?;
        replace(&model, learned.to_toml().as_bytes())?;
        let mut pipeline = self.pipeline("test.pcap")?;
        pipeline.use_models(&[model])?;
        if procedure == Procedure::Papers {
            pipeline.set("pruner", "mode", "paper")?;
        }
        let labels = self.labels("test.csv")?;
        let input = PipelineInput::new(InputSource::Captures);
        let evaluator = Evaluator::new(learned.sections(), &labels, labels.tolerance(None), CREDIBLE, &input)?;
        let run = evaluator.judge(&pipeline, &mut |_| {}).and_then(JudgedRun::with_candidates)?;
        run.check_use()?;
        let evaluation = Evaluation::new(&run, None, None);
        Ok(ProcedureFigures::new(&evaluation))
    }

    fn learn(&self, method: FitMethod) -> Result<ModelSet, Failure> {
        let (labels, pipeline) = (self.labels("learn.csv")?, self.pipeline("learn.pcap")?);
        let inventory = self.folder.join("inventory.toml");
        let name = || inventory.display().to_string();
        let inventory =
            Inventory::from_toml(&read_text(&inventory, MAX_WRITTEN_BYTES).with_context(name)?).with_context(name)?;
        let settings = LearningSettings {
            labels_are_complete: false,
            method,
            cipher: None,
            padding: None,
            inventory: Some(inventory),
            captures: digest_captures(&[self.folder.join("learn.pcap")])?,
        };
        let (input, tolerance) = (&PipelineInput::new(InputSource::Captures), labels.tolerance(None));
        let run = LearningRun { labels: &labels, input, tolerance, settings: &settings };
        let sections = run.learn(&pipeline.before("epsilon-corrector"), &mut |_| {})?.learned?;
        let models = ModelSet::new(sections.into_iter().map(|section| section.model).collect());
        Ok(models.context(self.protocol)?)
    }

    fn labels(&self, name: &str) -> Result<LabelFile, Failure> {
        Ok(LabelFile::read(&self.folder.join(name), &LabelTimes::default())?)
    }

    /// The standard pipeline over a capture of the home.
    fn pipeline(&self, capture: &str) -> Result<Pipeline, Failure> {
        let mut pipeline = Pipeline::standard();
        pipeline.read_captures(&[self.folder.join(capture)])?;
        pipeline.set("flow-filter", "gateway", vec![self.scenario.network.gateway.to_string()])?;
        Ok(pipeline)
    }
}

impl Procedure {
    /// The file of its model.
    fn model(self) -> &'static str {
        match self {
            Self::Papers => "papers-model.toml",
            Self::Ours => "model.toml",
        }
    }

    fn method(self) -> FitMethod {
        match self {
            Self::Papers => FitMethod::Paper,
            Self::Ours => FitMethod::Robust,
        }
    }
}

impl Study {
    /// Simulates the homes, and learns and evaluates on each.
    pub(super) fn run(homes: &[StudyHome], seed: u64, commands: u32) -> Result<Self, Failure> {
        let (mut figures, mut labelled) = (Vec::new(), 0);
        for home in homes {
            let (of_home, labels) = home.figures(seed)?;
            figures.push(of_home);
            labelled = labels;
        }
        Ok(Self { schema: SCHEMA, seed, commands, labelled, published: PublishedFigures::new(), homes: figures })
    }
}

impl PublishedFigures {
    fn new() -> Self {
        let PaperFigures { commands, precision_before_pruning, precision_after_pruning } = PaperFigures::PUBLISHED;
        let share = |precision: f64| SampleShare::new((precision * commands as f64).round() as u64, commands);
        Self { truth_among: share(precision_before_pruning), truth_among_after_pruning: share(precision_after_pruning) }
    }
}

impl ProcedureFigures {
    fn new(evaluation: &Evaluation) -> Self {
        let after = &evaluation.after_pruning;
        let before = evaluation.before_pruning.as_ref().unwrap_or(after);
        let among = |score: &Score| SampleShare::new(score.among, score.commands);
        let first = |score: &Score| SampleShare::new(score.top_1, score.commands);
        Self {
            truth_among: among(before),
            truth_among_after_pruning: among(after),
            first_right: first(before),
            first_right_after_pruning: first(after),
            mean_candidates: before.candidates.mean,
            mean_candidates_after_pruning: after.candidates.mean,
        }
    }
}

impl SampleShare {
    fn new(part: u64, of: u64) -> Self {
        Self { part, of, share: part as f64 / of.max(1) as f64, interval: wilson(part, of, Confidence::USUAL) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_shares_are_those_of_the_paper() {
        let published = PublishedFigures::new();
        let shown = |share: SampleShare| (share.part, (share.share * 1000.0).round() as u64);
        assert_eq!(shown(published.truth_among), (302, 984));
        assert_eq!(shown(published.truth_among_after_pruning), (280, 912));
        assert!(published.truth_among_after_pruning.interval.low > 0.87);
    }
}
