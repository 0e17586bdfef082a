//! `sizeleak evaluate`: how good a model's answers are on captures whose commands are labelled.

mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use sizeleak_evaluation::{Evaluation, JudgedRun, write_details};
use sizeleak_pipeline::Pipeline;
use sizeleak_simulator::{BayesLimit, Scenario, bayes_limit};
use sizeleak_telemetry::log::say;

use super::evaluation_input::EvaluationInput;
use super::failure::Failure;
use super::notices::NoticeReport;
use super::output_option::{print_json, print_text, write, writes_stdout};
use super::pipeline_variant::PipelineVariant;

/// What the figures of damaged captures cover.
pub(super) const COVERED: &str = "the figures cover everything before the damage";

/// Compare the answers of a model with the true actions
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak evaluate --model model.toml --capture test.pcap --labels test.csv --gateway 192.168.1.20\n  \
    sizeleak evaluate --model model.toml --capture test.pcap --labels test.csv --pipeline pipeline.toml --json\n  \
    sizeleak evaluate --model paper.toml --capture test.pcap --labels test.csv --gateway fd00::20 \
    --set pruner.mode=paper\n\n\
    All shares are shares of the labelled commands, found or not. A command counts as found out if its true actions \
    are among its candidates, listed or not. Where a truncated list does not show that, the command does not count \
    and is reported as undecided (`--set decomposer.limit=N` lists more). `sizeleak compare` compares several \
    pipelines.\n\n\
    JSON keys: schema, commands, matched, missed, ambiguous, spurious, before_pruning (null without a pruner) and \
    after_pruning (each: commands, among, precision, undecided, unique, unique_correct, top_1, top_5, unexplained, \
    cut_lists, candidates {mean, median, max}, credible_set {among, coverage, size {mean, median, max}}, calibration \
    {expected_error, by_chance, bins (a list: from, to, answers, probability, right)}, information {prior_bits, \
    posterior_bits, leaked_bits, is_bound}), actions (a list: action, commands, among, precision, count, top_1_count, \
    top_1_recall, top_1_precision), confusion {taken (a row for each true action), missed, invented}, bayes_limit \
    (null without --scenario: top_1, top_1_with_replies, reached, reached_in_the_end, prior_bits, leaked_bits, \
    leaked_bits_with_replies), paper (commands, precision_before_pruning, precision_after_pruning).")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) input: EvaluationInput,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,

    /// Write the outcome of every single command to FILE, as CSV
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,

    /// Replaced by `sizeleak compare`
    #[arg(long, value_name = "SETTING", hide = true)]
    compare: Vec<String>,

    /// The scenario that the captures were simulated from: also show the best that any method could do
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !arguments.compare.is_empty() {
        let settings = arguments.compare.join(" ");
        return Err(Failure::usage(anyhow!("`--compare` is now a separate command: `sizeleak compare {settings} …`")));
    }
    let input = &arguments.input;
    let (models, labels) = input.read()?;
    let limit = arguments.limit()?;
    let pipeline = input.pipeline(&PipelineVariant::Options(Vec::new()))?;
    arguments.check_files(&pipeline)?;
    let traffic = input.captures.input(&pipeline)?;
    let evaluator = input.evaluator(&models, &labels, &traffic)?;
    let log = &input.captures.log;
    let mut notices = NoticeReport::new(log);
    let run = evaluator.judge(&pipeline, &mut |notice| notices.add(notice)).and_then(JudgedRun::with_candidates);
    notices.print(&run, JudgedRun::damage);
    let run = run?;
    run.check_use()?;
    if !log.is_quiet() {
        run.remarks().iter().for_each(|remark| say("note", remark));
    }
    arguments.write_details(&run)?;
    let evaluation = Evaluation::new(&run, evaluator.prior_bits(&pipeline), limit);
    if arguments.json {
        print_json(&(serde_json::to_string_pretty(&evaluation).map_err(anyhow::Error::from)? + "\n"))?;
    } else {
        print_text(&table::table(&evaluation))?;
    }
    run.damage().map_or(Ok(ExitCode::SUCCESS), |damage| Err(Failure::damaged(damage, COVERED)))
}

impl Arguments {
    /// Checks that the details replace no file that is read.
    fn check_files(&self, pipeline: &Pipeline) -> Result<(), Failure> {
        let mut files = self.input.captures.files(pipeline);
        if let Some(scenario) = &self.scenario {
            files.reads("the scenario", scenario);
        }
        writes_stdout(&mut files);
        if let Some(details) = &self.details {
            files.writes("`--details`", details);
        }
        Ok(files.check()?)
    }

    fn limit(&self) -> anyhow::Result<Option<BayesLimit>> {
        let Some(path) = &self.scenario else { return Ok(None) };
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let scenario = Scenario::from_toml(&text).with_context(name)?;
        bayes_limit(&scenario).with_context(name).map(Some)
    }

    fn write_details(&self, run: &JudgedRun) -> anyhow::Result<()> {
        let Some(path) = &self.details else { return Ok(()) };
        let name = || path.display().to_string();
        let mut details = Vec::new();
        write_details(run, &mut details).with_context(name)?;
        write(path, &details)
    }
}
