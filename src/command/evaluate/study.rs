//! What a pipeline says of labelled commands, judged by a model: what `evaluate`, `compare` and `learn` share.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use sizeleak_frame::Frame;
use sizeleak_model::Model;

use super::findings::Findings;
use super::judge::Judge;
use super::judged_command::{JudgedCommand, LabelIndex, pruned};
use super::setting::Setting;
use crate::command::Failure;
use crate::command::labelled::LabelFile;
use crate::command::observation::{Observation, Telling, nothing, watch};
use sizeleak_pipeline::Pipeline;

/// Labelled captures, and the model that is judged by them.
#[derive(Debug, Args)]
pub(in crate::command) struct Subject {
    /// The model, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    pub(in crate::command) observation: Observation,

    /// The probability that a credible set holds
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = probability)]
    credible: f64,
}

fn probability(text: &str) -> Result<f64, String> {
    let probability = text.parse().ok().filter(|probability| *probability > 0.0 && *probability <= 1.0);
    probability.ok_or_else(|| "it must be above 0 and at most 1".to_owned())
}

/// What the files of a subject say.
#[derive(Debug)]
pub(in crate::command) struct EvaluationInput {
    pub(in crate::command) model: Model,
    pub(in crate::command) labels: LabelFile,
}

impl Subject {
    /// Reads the model and the labels.
    pub(in crate::command) fn read(&self) -> Result<EvaluationInput, Failure> {
        let model = Model::read(&self.model)?;
        let labels = LabelFile::read(&self.observation.labels)?;
        check(&labels, &model)?;
        Ok(EvaluationInput { model, labels })
    }

    /// The pipeline of a setting.
    fn pipeline(&self, setting: &Setting) -> Result<Pipeline, Failure> {
        let mut pipeline = match setting {
            Setting::Options(options) => self.observation.pipeline_with(None, options)?,
            Setting::Pipeline(file) => self.observation.pipeline_with(Some(file), &[])?,
        };
        pipeline.use_model(&self.model)?;
        Ok(pipeline)
    }
}

/// What all pipelines are judged by.
pub(in crate::command) struct Study<'a> {
    subject: &'a Subject,
    pub(in crate::command) materials: &'a EvaluationInput,
    calendar: LabelIndex<'a>,
}

impl<'a> Study<'a> {
    pub(in crate::command) fn new(subject: &'a Subject, materials: &'a EvaluationInput) -> anyhow::Result<Self> {
        let EvaluationInput { model, labels } = materials;
        let judge = Judge::new(model, &labels.labels().actions, subject.credible);
        let judge = judge.with_context(|| subject.model.display().to_string())?;
        let rows = labels.labels().rows.iter().map(|row| (row.time_ns, &*row.counts));
        let calendar = LabelIndex::new(judge, rows, subject.observation.tolerance.nanoseconds());
        Ok(Self { subject, materials, calendar })
    }

    /// Runs the pipeline of a setting.
    pub(in crate::command) fn see(&self, setting: &Setting, telling: Telling) -> Result<(Pipeline, Seen), Failure> {
        let pipeline = self.subject.pipeline(setting)?;
        let seen = see(&pipeline, telling, &self.calendar)?;
        Ok((pipeline, seen))
    }

    /// Puts what a pipeline said together with the labels.
    pub(in crate::command) fn findings<'b>(&'b self, seen: &'b Seen) -> anyhow::Result<Findings<'b>> {
        let tolerance = self.subject.observation.tolerance;
        Findings::new(&self.materials.labels, tolerance, &seen.after, seen.before.as_deref())
    }
}

/// What a pipeline said of the commands.
pub(in crate::command) struct Seen {
    pub(super) after: Vec<JudgedCommand>,
    /// Before pruning, where the pipeline has a pruner.
    pub(super) before: Option<Vec<JudgedCommand>>,
    /// Whether it names candidates; else it ends before they are made.
    pub(in crate::command) is_identified: bool,
    /// What is wrong with the captures.
    pub(in crate::command) damage: Option<Failure>,
}

impl Seen {
    /// When the commands were given.
    pub(in crate::command) fn times(&self) -> Vec<i64> {
        super::findings::times(&self.after)
    }

    /// What is seen, unless the pipeline ends before candidates are made.
    pub(in crate::command) fn identified(self) -> Result<Self, Failure> {
        if self.is_identified {
            return Ok(self);
        }
        let advice = "its answers begin with the decomposer; `sizeleak compare` compares what there is before";
        Err(Failure::usage(anyhow!("the pipeline ends before candidates are made: {advice}")))
    }
}

/// What a pipeline says of the commands, before pruning too.
pub(super) fn see(pipeline: &Pipeline, telling: Telling, calendar: &LabelIndex<'_>) -> Result<Seen, Failure> {
    let Sighted { commands, is_identified, damage } = sight(pipeline, telling, calendar)?;
    if commands.is_empty() {
        return Err(nothing(damage));
    }
    // The same captures once more: their notices were told.
    let before = pipeline.has("pruner").then(|| sight(&pipeline.before("pruner"), Telling::Nothing, calendar));
    let before = before.transpose()?.map(|before| before.commands);
    let after = pruned(commands, before.as_deref().unwrap_or_default());
    Ok(Seen { after, before, is_identified, damage })
}

/// The commands at the end of a pipeline.
struct Sighted {
    commands: Vec<JudgedCommand>,
    is_identified: bool,
    damage: Option<Failure>,
}

fn sight(pipeline: &Pipeline, telling: Telling, calendar: &LabelIndex<'_>) -> Result<Sighted, Failure> {
    let (mut identified, mut bare) = (Vec::new(), Vec::new());
    let damage = watch(pipeline, telling, |frame| match &frame {
        Frame::Identification(identification) => identified.push(calendar.sight(identification)),
        Frame::Correction(correction) => bare.push(JudgedCommand::of(&correction.command)),
        Frame::Command(command) => bare.push(JudgedCommand::of(command)),
        _ => {}
    })?;
    let is_identified = !identified.is_empty();
    Ok(Sighted { commands: if is_identified { identified } else { bare }, is_identified, damage })
}

/// Whether the model knows every action of the labels.
fn check(labels: &LabelFile, model: &Model) -> anyhow::Result<()> {
    let is_known = |name: &String| model.actions.iter().any(|action| action.name == *name);
    match labels.labels().actions.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let known: Vec<&str> = model.actions.iter().map(|action| action.name.as_str()).collect();
            let (file, known) = (labels.path().display(), known.join(", "));
            bail!("{file}: the model does not know the action `{name}`, it has {known}: learn again with it")
        }
        None => Ok(()),
    }
}
