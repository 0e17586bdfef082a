//! `sizeleak evaluate`: how good a model's answers are, by captures whose commands are labelled.

mod details;
mod judge;
mod score;
mod sighting;
mod table;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde::Serialize;
use sizeleak_frame::Frame;
use sizeleak_signature::{Matching, Model};

use super::Failure;
use super::labelled::LabelFile;
use super::observation::{Observation, Telling, nothing, watch};
use crate::pipeline::Pipeline;
use details::Details;
use judge::{Judge, Judgement};
use score::{ActionScore, Judged, Score};
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
    after_pruning (each: commands, among, precision, undecided, unique, unique_correct, top_1, unexplained, cut_lists, \
    candidates {mean, median, max}), actions (a list: action, commands, among, precision, count, top_1_count, \
    top_1_recall, top_1_precision), paper (commands, precision_before_pruning, precision_after_pruning).")]
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
}

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

/// The figures of an evaluation.
#[derive(Debug, PartialEq, Serialize)]
struct Evaluation {
    schema: u32,
    /// Labelled commands.
    commands: usize,
    /// Those a command was found for.
    matched: usize,
    /// Those no command is near to.
    missed: usize,
    /// Those that are near to commands of other labels alone.
    ambiguous: usize,
    /// Commands without a label.
    spurious: usize,
    /// What the pruner was given; `None` where the pipeline has none.
    before_pruning: Option<Score>,
    /// What came out of the pipeline.
    after_pruning: Score,
    /// What came out of the pipeline, by action.
    actions: Vec<ActionScore>,
    paper: Paper,
}

/// The paper's own figures: 12 plugs with 4 actions and 4 lamps with 7, behind one gateway.
#[derive(Debug, PartialEq, Serialize)]
struct Paper {
    commands: u64,
    precision_before_pruning: f64,
    precision_after_pruning: f64,
}

const PAPER: Paper = Paper { commands: 307, precision_before_pruning: 0.984, precision_after_pruning: 0.912 };

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let observation = &arguments.observation;
    let model = Model::read(&arguments.model)?;
    let labels = LabelFile::read(&observation.labels)?;
    check(&labels, &model)?;
    let judge = Judge::new(&model, &labels.labels().actions).with_context(|| arguments.model.display().to_string())?;
    let rows = labels.labels().rows.iter().map(|row| (row.time_ns, &*row.counts));
    let calendar = Calendar::new(judge, rows, observation.tolerance.nanoseconds());

    let pipeline = arguments.pipeline()?;
    let (after, damage) = sight(&pipeline, observation.telling(), &calendar)?;
    if after.is_empty() {
        return Err(nothing(damage));
    }
    // The same captures once more: their notices were told.
    let before = pipeline.has("pruner").then(|| sight(&pipeline.before("pruner"), Telling::Nothing, &calendar));
    let before = before.transpose()?.map(|(before, _)| before);
    let after = pruned(after, before.as_deref().unwrap_or_default());
    let findings = Findings::new(&labels, observation, &after, before.as_deref())?;
    if !observation.quiet {
        for remark in labels.unmatched(&findings.matching, &times(&after), observation.tolerance) {
            eprintln!("note: {remark}");
        }
    }
    arguments.write_details(&findings)?;
    arguments.print(&findings.evaluation())?;
    let Some(damage) = damage else { return Ok(ExitCode::SUCCESS) };
    Err(Failure::with_code(damage.exit_code(), anyhow!("{damage}; the figures are of what was whole before that")))
}

impl Arguments {
    fn pipeline(&self) -> Result<Pipeline, Failure> {
        let mut pipeline = self.observation.pipeline()?;
        pipeline.use_model(&self.model)?;
        Ok(pipeline)
    }

    fn write_details(&self, findings: &Findings<'_>) -> anyhow::Result<()> {
        let Some(path) = &self.details else { return Ok(()) };
        let name = || path.display().to_string();
        let details = Details {
            labels: findings.labels.labels(),
            matching: &findings.matching,
            sightings: findings.after,
            before: &findings.said_before,
        };
        details.write(File::create(path).with_context(name)?).with_context(name)
    }

    fn print(&self, evaluation: &Evaluation) -> anyhow::Result<()> {
        let text =
            if self.json { serde_json::to_string_pretty(evaluation)? + "\n" } else { Table(evaluation).to_string() };
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

/// What was said of the labelled commands.
struct Findings<'a> {
    labels: &'a LabelFile,
    after: &'a [Sighting],
    matching: Matching,
    /// Of each label what the pipeline said of its command, in the end and before pruning.
    said: Vec<Option<&'a Judgement>>,
    said_before: Vec<Option<&'a Judgement>>,
    has_pruner: bool,
}

impl<'a> Findings<'a> {
    fn new(
        labels: &'a LabelFile,
        observation: &Observation,
        after: &'a [Sighting],
        before: Option<&'a [Sighting]>,
    ) -> anyhow::Result<Self> {
        let matching = labels.matching(&times(after), observation.tolerance)?;
        let said_before = match before {
            Some(before) => said(labels, before, &labels.matching(&times(before), observation.tolerance)?),
            None => Vec::new(),
        };
        let said = said(labels, after, &matching);
        Ok(Self { labels, after, matching, said, said_before, has_pruner: before.is_some() })
    }

    fn evaluation(&self) -> Evaluation {
        let (after, before) = (self.judged(&self.said), self.judged(&self.said_before));
        let labels = self.labels.labels();
        Evaluation {
            schema: SCHEMA,
            commands: labels.rows.len(),
            matched: self.matching.pairs.len(),
            missed: self.matching.missed.len(),
            ambiguous: self.matching.ambiguous.len(),
            spurious: self.matching.spurious.len(),
            before_pruning: self.has_pruner.then(|| Score::of(&before)),
            after_pruning: Score::of(&after),
            actions: ActionScore::of_each(&labels.actions, &after),
            paper: PAPER,
        }
    }

    fn judged(&self, said: &[Option<&'a Judgement>]) -> Vec<Judged<'a>> {
        let rows = self.labels.labels().rows.iter().zip(said);
        rows.map(|(row, judgement)| Judged { truth: &row.counts, judgement: *judgement }).collect()
    }
}

/// What was said of each label's command; `None` where it has none.
fn said<'a>(labels: &LabelFile, sightings: &'a [Sighting], matching: &Matching) -> Vec<Option<&'a Judgement>> {
    let mut said = vec![None; labels.labels().rows.len()];
    for (row, command) in &matching.pairs {
        if let Some(said) = said.get_mut(*row) {
            *said = sightings.get(*command).and_then(|sighting| sighting.judgement(*row));
        }
    }
    said
}

fn times(sightings: &[Sighting]) -> Vec<i64> {
    sightings.iter().map(|sighting| sighting.time_ns).collect()
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
