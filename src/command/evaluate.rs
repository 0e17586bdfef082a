//! `sizeleak evaluate`: how good a model's answers are, by captures whose commands are labelled.

mod belief;
mod calibration;
mod compare;
mod confusion;
mod details;
mod findings;
mod information;
mod judge;
mod judged_command;
mod limits;
mod outcome;
mod score;
mod setting;
mod study;
mod table;

use std::fmt::Display;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::Args;
use serde::Serialize;
use sizeleak_simulator::{Limit, Scenario, bayes_limit};
use sizeleak_telemetry::log::say;

use super::labelled::LabelFile;
use super::observation::Telling;
use super::{Failure, write};
pub(super) use calibration::Calibration;
use compare::{Compared, Comparison};
use details::Details;
use findings::SCHEMA;
pub(super) use findings::{Evaluation, Findings};
pub(super) use information::bits_before;
pub(super) use judge::{Judgement, TruthRank};
pub(super) use outcome::Outcome;
pub(super) use score::median;
pub(super) use setting::Setting;
pub(super) use study::{EvaluationInput, Study, Subject};
use table::Table;
pub(super) use table::{NONE, percent};

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
    #[command(flatten)]
    pub(super) subject: Subject,

    /// Print the figures as JSON
    #[arg(long)]
    json: bool,

    /// Write what came of every single command, as CSV
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,

    /// Print the figures of several settings side by side: each options of stages with commas between them, or a
    /// pipeline file; how sure their differences are is what `sizeleak compare` says
    #[arg(long, value_name = "SETTING", conflicts_with = "details")]
    compare: Vec<Setting>,

    /// The scenario the captures were simulated from: what is possible at all is shown beside what was reached
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let materials = arguments.subject.read()?;
    let study = Study::new(&arguments.subject, &materials)?;
    let damage = if arguments.compare.is_empty() { arguments.evaluate(&study) } else { arguments.compare(&study) }?;
    damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(of_what_was_whole(&damage)))
}

/// What is wrong with captures whose figures were printed all the same.
pub(super) fn of_what_was_whole(damage: &Failure) -> Failure {
    Failure::with_code(damage.exit_code(), anyhow!("{damage}; the figures are of what was whole before that"))
}

impl Arguments {
    /// Prints the figures of the arguments' pipeline; gives back what is wrong with the captures.
    fn evaluate(&self, study: &Study<'_>) -> Result<Option<Failure>, Failure> {
        let EvaluationInput { model, labels } = study.materials;
        let observation = &self.subject.observation;
        let limit = self.limit()?;
        let (pipeline, seen) = study.see(&Setting::default(), observation.telling())?;
        let seen = seen.identified()?;
        let findings = study.findings(&seen)?;
        if !observation.log.is_quiet() {
            for remark in labels.unmatched(&findings.matching, &seen.times(), observation.tolerance) {
                say("note", &remark);
            }
        }
        self.write_details(labels, &findings)?;
        let evaluation = findings.evaluation(bits_before(&pipeline, model), limit);
        self.print(&evaluation, &Table(&evaluation))?;
        Ok(seen.damage)
    }

    /// Prints the figures of every setting that is compared. What is told of the captures is told of the first.
    fn compare(&self, study: &Study<'_>) -> Result<Option<Failure>, Failure> {
        let limit = self.limit()?;
        let (mut compared, mut damage) = (Vec::new(), None);
        for setting in &self.compare {
            let telling = if compared.is_empty() { self.subject.observation.telling() } else { Telling::Nothing };
            let evaluate = || {
                let (pipeline, seen) = study.see(setting, telling)?;
                let seen = seen.identified()?;
                let prior_bits = bits_before(&pipeline, &study.materials.model);
                let evaluation = study.findings(&seen)?.evaluation(prior_bits, limit);
                Ok((evaluation, seen.damage))
            };
            let (evaluation, damaged) = evaluate().map_err(|failure| setting.blame(&failure))?;
            compared.push(Compared { setting: setting.to_string(), evaluation });
            damage = damage.or(damaged);
        }
        let comparison = Comparison { schema: SCHEMA, compared };
        self.print(&comparison, &comparison)?;
        Ok(damage)
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
        write(None, text.as_bytes())
    }
}
