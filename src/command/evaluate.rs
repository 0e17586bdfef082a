//! `sizeleak evaluate`: how good a model's answers are, by captures whose commands are labelled.

mod belief;
mod calibration;
mod compare;
mod confusion;
mod details;
mod findings;
mod information;
mod judge;
mod limits;
mod outcome;
mod score;
mod sighting;
mod table;

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde::Serialize;
use sizeleak_frame::Frame;
use sizeleak_signature::Model;
use sizeleak_simulator::{Limit, Scenario, bayes_limit};

use super::Failure;
use super::labelled::LabelFile;
use super::observation::{Observation, Telling, nothing, watch};
use crate::pipeline::Pipeline;
use compare::{Compared, Comparison, Setting};
use details::Details;
use findings::{Findings, SCHEMA, times};
use information::bits_before;
use judge::Judge;
pub(super) use outcome::Outcome;
use sighting::{Calendar, Sighting, pruned};
use table::Table;

/// Compare what a model says with what was really commanded
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak evaluate --model model.toml --capture test.pcap --labels test.csv --gateway 192.168.1.20\n  \
    sizeleak evaluate --model model.toml --capture test.pcap --labels test.csv --pipeline pipeline.toml --json\n  \
    sizeleak evaluate --model paper.toml --capture test.pcap --labels test.csv --gateway fd00::20 \
    --set pruner.mode=paper\n\n\
    All shares are of the labelled commands, found or not. A command counts as found out where its true actions are \
    among its candidates, whether these are listed or not; where a list that the decomposer cut does not tell, it does \
    not count, and is shown as not decided (`--set decomposer.limit=N` lists more).\n\n\
    JSON keys: schema, commands, matched, missed, ambiguous, spurious, before_pruning (null without a pruner) and \
    after_pruning (each: commands, among, precision, undecided, unique, unique_correct, top_1, top_5, unexplained, \
    cut_lists, candidates {mean, median, max}, credible_set {among, coverage, size {mean, median, max}}, calibration \
    {expected_error, by_chance, bins (a list: from, to, answers, probability, right)}, information {prior_bits, \
    posterior_bits, leaked_bits, is_bound}), actions (a list: action, commands, among, precision, count, top_1_count, \
    top_1_recall, top_1_precision), confusion {taken (a row for each true action), missed, invented}, bayes_limit (null \
    without --scenario: top_1, top_1_with_replies, reached, reached_in_the_end, prior_bits, leaked_bits, \
    leaked_bits_with_replies), paper (commands, precision_before_pruning, precision_after_pruning). With --compare: schema, compared (a list: setting, evaluation, which has \
    these keys).")]
pub(crate) struct Arguments {
    /// The model, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    #[command(flatten)]
    observation: Observation,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,

    /// Write what came of every single command, as CSV
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,

    /// Print the figures of several settings side by side: each options of stages with commas between them, or a
    /// pipeline file
    #[arg(long, value_name = "SETTING", conflicts_with = "details")]
    compare: Vec<Setting>,

    /// The scenario the captures were simulated from: what is possible at all is shown beside what was reached
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,

    /// The probability that a credible set holds
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = probability)]
    credible: f64,
}

fn probability(text: &str) -> Result<f64, String> {
    let probability = text.parse().ok().filter(|probability| *probability > 0.0 && *probability <= 1.0);
    probability.ok_or_else(|| "it must be above 0 and at most 1".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let observation = &arguments.observation;
    let model = Model::read(&arguments.model)?;
    let labels = LabelFile::read(&observation.labels)?;
    check(&labels, &model)?;
    let limit = arguments.limit()?;
    let judge = Judge::new(&model, &labels.labels().actions, arguments.credible);
    let judge = judge.with_context(|| arguments.model.display().to_string())?;
    let rows = labels.labels().rows.iter().map(|row| (row.time_ns, &*row.counts));
    let calendar = Calendar::new(judge, rows, observation.tolerance.nanoseconds());
    let study = Study { arguments, model: &model, labels: &labels, calendar, limit };
    let damage = if arguments.compare.is_empty() { study.evaluate() } else { study.compare() }?;
    let Some(damage) = damage else { return Ok(ExitCode::SUCCESS) };
    Err(Failure::with_code(damage.exit_code(), anyhow!("{damage}; the figures are of what was whole before that")))
}

/// What all pipelines are evaluated by.
struct Study<'a> {
    arguments: &'a Arguments,
    model: &'a Model,
    labels: &'a LabelFile,
    calendar: Calendar<'a>,
    limit: Option<Limit>,
}

/// What a pipeline said of the commands.
struct Seen {
    after: Vec<Sighting>,
    /// Before pruning, where the pipeline has a pruner.
    before: Option<Vec<Sighting>>,
    /// What is wrong with the captures.
    damage: Option<Failure>,
}

impl Study<'_> {
    /// Prints the figures of the arguments' pipeline; gives back what is wrong with the captures.
    fn evaluate(&self) -> Result<Option<Failure>, Failure> {
        let Self { arguments, labels, .. } = self;
        let observation = &arguments.observation;
        let pipeline = arguments.pipeline(None)?;
        let seen = see(&pipeline, observation.telling(), &self.calendar)?;
        let findings = Findings::new(labels, observation.tolerance, &seen.after, seen.before.as_deref())?;
        if !observation.quiet {
            for remark in labels.unmatched(&findings.matching, &times(&seen.after), observation.tolerance) {
                eprintln!("note: {remark}");
            }
        }
        arguments.write_details(labels, &findings)?;
        let evaluation = findings.evaluation(bits_before(&pipeline, self.model), self.limit);
        arguments.print(&evaluation, &Table(&evaluation))?;
        Ok(seen.damage)
    }

    /// Prints the figures of every setting that is compared. What is told of the captures is told of the first.
    fn compare(&self) -> Result<Option<Failure>, Failure> {
        let (mut compared, mut damage) = (Vec::new(), None);
        for setting in &self.arguments.compare {
            let in_words =
                |failure: Failure| Failure::with_code(failure.exit_code(), anyhow!("with `{setting}`: {failure}"));
            let telling = if compared.is_empty() { self.arguments.observation.telling() } else { Telling::Nothing };
            let pipeline = self.arguments.pipeline(Some(setting)).map_err(in_words)?;
            let seen = see(&pipeline, telling, &self.calendar).map_err(in_words)?;
            let tolerance = self.arguments.observation.tolerance;
            let findings = Findings::new(self.labels, tolerance, &seen.after, seen.before.as_deref());
            let findings = findings.map_err(|error| in_words(error.into()))?;
            let evaluation = findings.evaluation(bits_before(&pipeline, self.model), self.limit);
            compared.push(Compared { setting: setting.to_string(), evaluation });
            damage = damage.or(seen.damage);
        }
        let comparison = Comparison { schema: SCHEMA, compared };
        self.arguments.print(&comparison, &comparison)?;
        Ok(damage)
    }
}

/// What a pipeline says of the commands, before pruning too.
fn see(pipeline: &Pipeline, telling: Telling, calendar: &Calendar<'_>) -> Result<Seen, Failure> {
    let (after, damage) = sight(pipeline, telling, calendar)?;
    if after.is_empty() {
        return Err(nothing(damage));
    }
    // The same captures once more: their notices were told.
    let before = pipeline.has("pruner").then(|| sight(&pipeline.before("pruner"), Telling::Nothing, calendar));
    let before = before.transpose()?.map(|(before, _)| before);
    let after = pruned(after, before.as_deref().unwrap_or_default());
    Ok(Seen { after, before, damage })
}

impl Arguments {
    fn pipeline(&self, setting: Option<&Setting>) -> Result<Pipeline, Failure> {
        let mut pipeline = match setting {
            None => self.observation.pipeline()?,
            Some(Setting::Options(options)) => self.observation.pipeline_with(None, options)?,
            Some(Setting::Pipeline(file)) => self.observation.pipeline_with(Some(file), &[])?,
        };
        pipeline.use_model(&self.model)?;
        Ok(pipeline)
    }

    fn limit(&self) -> anyhow::Result<Option<Limit>> {
        let Some(path) = &self.scenario else { return Ok(None) };
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let scenario = Scenario::from_toml(&text).with_context(name)?;
        bayes_limit(&scenario).with_context(name).map(Some)
    }

    fn write_details(&self, labels: &LabelFile, findings: &Findings<'_>) -> anyhow::Result<()> {
        let Some(path) = &self.details else { return Ok(()) };
        let name = || path.display().to_string();
        let details = Details {
            labels: labels.labels(),
            matching: &findings.matching,
            sightings: findings.after,
            before: &findings.said_before,
        };
        details.write(File::create(path).with_context(name)?).with_context(name)
    }

    fn print(&self, figures: &impl Serialize, table: &impl Display) -> anyhow::Result<()> {
        let text = if self.json { serde_json::to_string_pretty(figures)? + "\n" } else { table.to_string() };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("stdout"),
            _ => Ok(()),
        }
    }
}

/// What a pipeline says of the commands, and what is wrong with the captures.
fn sight(
    pipeline: &Pipeline,
    telling: Telling,
    calendar: &Calendar<'_>,
) -> Result<(Vec<Sighting>, Option<Failure>), Failure> {
    let mut sightings = Vec::new();
    let damage = watch(pipeline, telling, |frame| {
        if let Frame::Identification(identification) = &frame {
            sightings.push(calendar.sight(identification));
        }
    })?;
    Ok((sightings, damage))
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
