//! `sizeleak compare`: several pipelines over the same labelled captures, and how sure their differences are.

mod comparison;
mod figure;
mod sample;
mod table;
mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use sizeleak_telemetry::log::say;

use super::evaluate::{Setting, Study, Subject, bits_before, of_what_was_whole};
use super::observation::Telling;
use super::{Failure, write};
use crate::statistics::Confidence;
use comparison::{Comparison, Method};
use sample::Sample;
use table::Table;

/// Samples that lie beyond either end of an interval, at least; with fewer, its ends are chance.
const FEWEST_BEYOND: f64 = 5.0;

/// Compare pipelines over the same labelled captures
#[derive(Debug, Args)]
#[command(
    mut_arg("gateway", |gateway| gateway.required_unless_present("settings")),
    after_help = "Examples:\n  \
    sizeleak compare pipeline.toml burst.toml --model model.toml --capture test.pcap --labels test.csv\n  \
    sizeleak compare standard pruner.mode=paper pruner.mode=none,decomposer.limit=5000 --model model.toml \
    --capture test.pcap --labels test.csv --gateway 192.168.1.20 --format csv -o figures.csv\n\n\
    Every figure is one of `sizeleak evaluate`. The commands are the same in every pipeline, so differences to the first \
    one are paired. Shares have Wilson's interval; their difference has the hull of Newcombe's paired interval and of the \
    bootstrap's, and McNemar's exact p. Means and medians have the interval of a bootstrap of blocks of commands in order \
    of time, so that neighbours may depend on each other; counts have Poisson's. `*` marks a difference whose interval excludes 0. \
    No interval is corrected for how many are looked at: docs/evaluation.md says more.\n\n\
    CSV columns: pipeline, figure, value, low, high, difference, difference_low, difference_high, p_value. JSON keys: \
    schema, commands, days, confidence, seed, samples, block_length, pipelines (a list: pipeline, matched, missed, ambiguous, \
    spurious, figures (a list: figure, value, low, high, difference (null in the first: value, low, high, p_value, \
    excludes_zero)), evaluation (as `sizeleak evaluate --json` has it; null where the pipeline ends before candidates are made))."
)]
pub(crate) struct Arguments {
    /// What to compare, the first one being what the others are compared to: pipeline files, options of stages with commas
    /// between them, or `standard` for the usual pipeline
    #[arg(value_name = "PIPELINE|STAGE.KEY=VALUE", num_args = 2.., required = true)]
    settings: Vec<Setting>,

    #[command(flatten)]
    pub(super) subject: Subject,

    /// How sure intervals are to hold the truth
    #[arg(long, value_name = "SHARE", default_value = "0.95")]
    confidence: Confidence,

    /// What the bootstrap draws from: the same seed gives the same figures
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// How many samples the bootstrap draws
    #[arg(long, value_name = "NUMBER", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    samples: u32,

    /// How to write the figures
    #[arg(long, value_enum, default_value_t)]
    format: Form,

    /// Write to FILE, not to stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How figures are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Aligned, for people
    #[default]
    Table,
    /// A row for each pipeline and figure
    Csv,
    /// One object
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { confidence, seed, samples, .. } = *arguments;
    if f64::from(samples) * confidence.tail() < FEWEST_BEYOND {
        let fewest = (FEWEST_BEYOND / confidence.tail()).ceil();
        let share = confidence.share();
        return Err(Failure::usage(anyhow!("an interval of {share} needs `--samples {fewest}`, or more")));
    }
    let materials = arguments.subject.read()?;
    let study = Study::new(&arguments.subject, &materials)?;
    let (mut sampled, mut damage) = (Vec::new(), None);
    for (number, setting) in (1..).zip(&arguments.settings) {
        let (sample, damaged) = arguments.sample(&study, number, setting).map_err(|failure| setting.blame(&failure))?;
        sampled.push(sample);
        damage = damage.or(damaged);
    }
    let comparison = Comparison::new(&materials.labels, sampled, &Method { confidence, seed, samples });
    let text = match arguments.format {
        Form::Table => Table(&comparison).to_string(),
        Form::Csv => values::csv(&comparison)?,
        Form::Json => serde_json::to_string_pretty(&comparison).map_err(anyhow::Error::from)? + "\n",
    };
    write(arguments.output.as_deref(), text.as_bytes())?;
    damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(of_what_was_whole(&damage)))
}

impl Arguments {
    /// Runs a pipeline. What is told of the captures is told of the first.
    fn sample(
        &self,
        study: &Study<'_>,
        number: usize,
        setting: &Setting,
    ) -> Result<(Sample, Option<Failure>), Failure> {
        let observation = &self.subject.observation;
        let telling = if number == 1 { observation.telling() } else { Telling::Nothing };
        let (pipeline, seen) = study.see(setting, telling)?;
        let findings = study.findings(&seen)?;
        let times = seen.times();
        if !observation.log.is_quiet() {
            for remark in study.materials.labels.unmatched(&findings.matching, &times, observation.tolerance) {
                say("note", &format!("[{number}] {remark}"));
            }
        }
        let evaluate = || findings.evaluation(bits_before(&pipeline, &study.materials.model), None);
        let sample = Sample::new(setting.to_string(), &findings, &times, seen.is_identified.then(evaluate));
        Ok((sample, seen.damage))
    }
}
