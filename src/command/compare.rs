//! `sizeleak compare`: several pipelines over the same labelled captures, and how certain their differences are.

mod table;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use sizeleak_evaluation::statistics::Confidence;
use sizeleak_evaluation::{ComparedRun, Comparison, ComparisonOptions, Evaluation, JudgedRun};
use sizeleak_labels::LabelFile;
use sizeleak_pipeline::{Pipeline, PipelineInput, RunError};
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::say;

use super::evaluation_input::{COVERED, EvaluationInput};
use super::failure::Failure;
use super::notices::NoticeReport;
use super::operand::Content;
use super::output_option::OutputOption;
use super::pipeline_variant::PipelineVariant;
use super::report_format::ReportFormatOption;

/// At least this many samples lie beyond either end of an interval; with fewer, its ends would be random.
const MIN_BEYOND: f64 = 5.0;

/// Compare pipelines over the same labelled captures
#[derive(Debug, Args)]
#[command(
    mut_arg("operands", |operands| {
        let about = "The pipelines, compared with the first, and the captures";
        let more = "A pipeline is a pipeline file, options of stages separated by commas (pruner.mode=paper), or \
                    `standard` for the usual pipeline. Captures and saved frame streams are recognised by content. A \
                    pipeline that names models keeps them: `--model` is for the others.";
        operands.value_name("PIPELINE|FILE").required(true).help(about).long_help(format!("{about}\n\n{more}"))
    }),
    after_help = "Example:\n  \
    sizeleak compare pipeline.toml pruner.mode=paper test.pcap --labels test.csv --model model.toml \
    --gateway 192.168.1.20",
    after_long_help = "Examples:\n  \
    sizeleak compare pipeline.toml burst.toml --model model.toml --input test.pcap --labels test.csv\n  \
    sizeleak compare standard pruner.mode=paper pruner.mode=none,decomposer.limit=5000 test.pcap --model model.toml \
    --labels test.csv --gateway 192.168.1.20 -o figures.csv\n\n\
    Every figure is one of `sizeleak evaluate`. The commands are the same in every pipeline, so differences to the \
    first pipeline are paired. Shares have Wilson's interval; their difference has the hull of Newcombe's paired \
    interval and of the bootstrap's, and McNemar's exact p. Means and medians have the interval of a bootstrap over \
    blocks of consecutive commands, because neighbours may depend on each other; counts have Poisson's. `*` marks a \
    difference whose interval excludes 0. Intervals are not corrected for multiple comparisons: docs/evaluation.md \
    says more.\n\n\
    CSV columns: pipeline, figure, value, low, high, difference, difference_low, difference_high, p_value. JSON keys: \
    schema, commands, days, confidence, seed, samples, block_length, pipelines (a list: pipeline, matched, missed, \
    ambiguous, spurious, figures (a list: figure, value, low, high, difference (null in the first: value, low, high, \
    p_value, excludes_zero)), evaluation (as `sizeleak evaluate --json` prints it; null if the pipeline ends before \
    candidates are made))."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) input: EvaluationInput,

    /// The probability that an interval holds the truth
    #[arg(long, value_name = "SHARE", default_value = "0.95", hide_short_help = true)]
    confidence: Confidence,

    /// The seed of the bootstrap: the same seed produces the same figures
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_short_help = true)]
    seed: u64,

    /// How many samples the bootstrap draws
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 2000,
        hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    samples: u32,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    output: OutputOption,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { confidence, seed, samples, .. } = *arguments;
    if f64::from(samples) * confidence.tail() < MIN_BEYOND {
        let fewest = (MIN_BEYOND / confidence.tail()).ceil();
        let share = confidence.share();
        return Err(Failure::usage(anyhow!("an interval of {share} needs at least `--samples {fewest}`")));
    }
    let form = arguments.format.form(&arguments.output, "sizeleak compare")?;
    let variants = arguments.variants()?;
    let first = arguments.check_files(&variants)?;
    let traffic = arguments.input.captures.input(&first)?;
    let (_, labels) = arguments.input.read(&traffic, &first)?;
    let (mut runs, mut first_damage) = (Vec::new(), None);
    for (number, variant) in (1..).zip(&variants) {
        let run = arguments.judge(&traffic, &labels, number, variant);
        let (run, damage) = run.map_err(|failure| failure.context(format!("with `{variant}`")))?;
        runs.push(run);
        first_damage = first_damage.or(damage);
    }
    let comparison = Comparison::new(&labels, runs, &ComparisonOptions { confidence, seed, samples });
    let mut written = Vec::new();
    if form.is_csv() {
        comparison.write_csv(&mut written)?;
    } else {
        written = form.written(&comparison, None, || table::table(&comparison))?;
    }
    arguments.output.write(&written)?;
    first_damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(Failure::damaged(&damage, COVERED)))
}

impl Arguments {
    /// The pipelines to compare.
    fn variants(&self) -> Result<Vec<PipelineVariant>, Failure> {
        let operands = &self.input.captures.traffic.operands;
        let named = operands.iter().filter(|operand| matches!(operand.content, Content::Pipeline | Content::Settings));
        let variants = named.map(|operand| operand.path.to_string_lossy().parse::<PipelineVariant>());
        let variants = variants.collect::<Result<Vec<_>, _>>().map_err(|fault| Failure::usage(anyhow!(fault)))?;
        match variants.as_slice() {
            [] | [_] => Err(Failure::usage(anyhow!(
                "there is nothing to compare: name two pipelines, such as `standard pruner.mode=paper`"
            ))),
            _ => Ok(variants),
        }
    }

    /// Checks that the figures replace no file that a pipeline reads. Returns the first pipeline.
    fn check_files(&self, variants: &[PipelineVariant]) -> Result<Pipeline, Failure> {
        let (mut files, mut first) = (RunFiles::new(), None);
        for variant in variants {
            let pipeline = self.input.pipeline(variant, true);
            let pipeline = pipeline.map_err(|failure| failure.context(format!("with `{variant}`")))?;
            files.extend(self.input.captures.files(&pipeline)?);
            first = first.or(Some(pipeline));
        }
        self.output.add_to(&mut files);
        files.check()?;
        Ok(first.unwrap_or_else(Pipeline::standard))
    }

    /// Runs a pipeline. Notices are reported for the first one only: the captures are the same.
    fn judge(
        &self,
        traffic: &PipelineInput,
        labels: &LabelFile,
        number: usize,
        variant: &PipelineVariant,
    ) -> Result<(ComparedRun, Option<RunError>), Failure> {
        let pipeline = self.input.pipeline(variant, true)?;
        let models = EvaluationInput::models(&pipeline)?;
        let evaluator = self.input.evaluator(&models, labels, traffic)?;
        let mut notices = NoticeReport::default();
        let run = evaluator.judge(&pipeline, &mut |notice| {
            if number == 1 {
                notices.add(notice);
            }
        });
        notices.print(&run, JudgedRun::damage);
        let run = run?;
        if number == 1 {
            run.check_use()?;
        }
        run.remarks().iter().for_each(|remark| say("note", &format!("[{number}] {remark}")));
        let evaluate = || Evaluation::new(&run, evaluator.prior_bits(&pipeline), None);
        let evaluation = run.has_candidates().then(evaluate);
        let damage = run.damage().cloned();
        Ok((ComparedRun { pipeline: variant.to_string(), run, evaluation }, damage))
    }
}
