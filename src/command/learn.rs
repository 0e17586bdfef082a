//! `sizeleak learn`: a model of a gateway, out of captures whose commands are labelled.

mod advice;
mod basis;
mod curve;
mod digest;
mod learning_run;
mod store;
mod summary;
mod training_set;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use sizeleak_model::{Action, Inventory, Method};
use sizeleak_telemetry::log::show;

use super::Failure;
use super::labelled::LabelFile;
use super::observation::Observation;
use basis::Cipher;
use curve::{Counts, Curve, Trial};
use learning_run::{Attended, LearningRun};
use sizeleak_pipeline::Pipeline;

/// Learn a gateway's sizes from captures whose commands are labelled
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak learn --capture learn.pcap --labels learn.csv --gateway 192.168.1.20 --inventory inventory.toml -o model.toml\n  \
    sizeleak learn --capture learn.pcap --labels learn.csv --gateway 192.168.1.20 -o model.toml --curve\n  \
    sizeleak learn --capture monday.pcap tuesday.pcap --labels both.csv --gateway fd00::20 --method paper -o paper.toml\n\n\
    How commands are told from other records is learned too, into the model's [noise], which the segmenter's algorithm \
    `learned` goes by. The labelled commands are first found by its other algorithms; the one is followed that leaves the \
    fewest labels and commands without a partner. With `--set command-segmenter.algorithm=NAME` that one alone is used, and \
    the model has no [noise].\n\n\
    Each label is given the command nearest to it in time. Labels and commands without a partner are reported, not \
    guessed. The model is written whole or not at all; if a capture is damaged it is learned from what was whole before \
    the damage, and the exit code is 1.\n\n\
    Labels that do not determine every size (actions that never occur, or only together with others) are an error that \
    names the fewest commands to record next; `--record next.csv` writes them as labels to fill in.\n\n\
    JSON keys of --curve: schema, tested, points (a list: labels, sizes, fault (why nothing could be learned, else null), \
    and where something was: commands, before_pruning (null without a pruner) and after_pruning (each: precision, top_1, \
    top_5, candidates)).")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) observation: Observation,

    /// Which devices there are and what each can be told: TOML, `[[device]]` with `name`, `count`, `actions` [default:
    /// any number of any action]
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How sizes are learned
    #[arg(long, value_enum, default_value_t = HowToLearn::Robust)]
    method: HowToLearn,

    /// The cipher suite, by its IANA name, of sessions whose handshake the captures do not hold
    #[arg(long, value_name = "SUITE")]
    cipher: Option<String>,

    /// Where to write the model; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Write what to record next, so that every size can be told, as a label file whose times are to be filled in; without
    /// rows where nothing is lacking
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Print how precision grows with the number of labels: models of the first N labels alone, each tried on the last
    /// third of them, or on the captures to test on
    #[arg(long, value_name = "N,N…", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    curve: Option<Counts>,

    /// Captures to test on with --curve, in place of the last third of the labels
    #[arg(long, value_name = "FILE", num_args = 1.., requires_all = ["curve", "test_labels"])]
    test_capture: Vec<PathBuf>,

    /// The labels of the captures to test on
    #[arg(long, value_name = "FILE", requires_all = ["curve", "test_capture"])]
    test_labels: Option<PathBuf>,

    /// Print the curve as JSON
    #[arg(long, requires = "curve")]
    json: bool,
}

/// How sizes are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowToLearn {
    /// A fit over all labelled commands that outliers and steps of length fields do not bias
    Robust,
    /// The paper's procedure, from commands of one action on one device and on two
    Paper,
}

impl From<HowToLearn> for Method {
    fn from(method: HowToLearn) -> Self {
        match method {
            HowToLearn::Robust => Method::Robust,
            HowToLearn::Paper => Method::Paper,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let observation = &arguments.observation;
    if arguments.curve.is_some() && arguments.output.as_os_str() == "-" {
        return Err(Failure::usage(anyhow!("`--curve` prints to stdout: write the model to a file")));
    }
    let labels = LabelFile::read(&observation.labels)?;
    let inventory = arguments.inventory()?;
    if let Some(inventory) = &inventory {
        check(&labels, inventory)?;
    }
    let cipher = arguments.cipher.as_deref().map(Cipher::named).transpose().map_err(Failure::usage)?;
    let pipeline = observation.pipeline()?;
    let captures = observation.captures.iter().map(|capture| digest::of(capture)).collect::<Result<_, _>>()?;

    let course =
        LearningRun { observation, labels: &labels, method: arguments.method.into(), cipher, inventory, captures };
    let Attended { learned, commands, damage } = course.attend(&pipeline.before("epsilon-corrector"))?;
    let lesson = course.lesson(&commands);
    if let Some(path) = &arguments.record {
        let advice = match &learned {
            Ok(learned) => learned.advice.clone(),
            Err(_) => lesson.advice(course.inventory.as_ref())?,
        };
        store::write(&advice.template()?, path)?;
    }
    let learned = learned?;
    store::write(&learned.model.to_toml(), &arguments.output)?;
    if !observation.log.is_quiet() {
        show(summary::Summary(&learned).to_string().trim_end_matches('\n'));
    }
    if let Some(counts) = &arguments.curve {
        let (pipeline, test) = arguments.test(pipeline)?;
        let (method, model) = (course.method, &learned.model);
        let (cipher, inventory) = (course.cipher.as_ref(), course.inventory.as_ref());
        arguments.print(&Trial { lesson, method, cipher, inventory, model, pipeline, test }.run(counts)?)?;
    }
    let Some(damage) = damage else { return Ok(ExitCode::SUCCESS) };
    Err(Failure::with_code(
        damage.exit_code(),
        anyhow!("{damage}; the model was learned from what was whole before that"),
    ))
}

impl Arguments {
    fn inventory(&self) -> anyhow::Result<Option<Inventory>> {
        let Some(path) = &self.inventory else { return Ok(None) };
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        Inventory::from_toml(&text).with_context(name).map(Some)
    }

    /// The pipeline over the captures to test on, where there are any, and their labels.
    fn test(&self, mut pipeline: Pipeline) -> Result<(Pipeline, Option<LabelFile>), Failure> {
        let Some(labels) = &self.test_labels else { return Ok((pipeline, None)) };
        pipeline.read_captures(&self.test_capture)?;
        Ok((pipeline, Some(LabelFile::read(labels)?)))
    }

    fn print(&self, curve: &Curve) -> anyhow::Result<()> {
        let text = if self.json { serde_json::to_string_pretty(curve)? + "\n" } else { curve.to_string() };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error).context("stdout"),
            _ => Ok(()),
        }
    }
}

/// Whether every label is one that the inventory allows.
fn check(labels: &LabelFile, inventory: &Inventory) -> anyhow::Result<()> {
    let name = || labels.path().display().to_string();
    let action = |name: &String| Action { name: name.clone(), size: 1 };
    let actions: Vec<Action> = labels.labels().actions.iter().map(action).collect();
    let limits = inventory.limits(&actions).with_context(name)?;
    let beyond = labels.labels().rows.iter().find(|row| !limits.admits(&row.counts));
    beyond.map_or(Ok(()), |row| {
        let line = row.line;
        Err(anyhow!(
            "{}: line {line}: the inventory has too few devices for these actions: correct one of them",
            name()
        ))
    })
}
