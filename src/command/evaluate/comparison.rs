//! Several pipelines over the same labelled captures, and how certain their differences are.

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

use crate::command::evaluation_input::{COVERED, EvaluationInput};
use crate::command::failure::Failure;
use crate::command::notices::NoticeReport;
use crate::command::output_option::OutputOption;
use crate::command::pipeline_variant::PipelineVariant;
use crate::command::report_format::ReportForm;

/// At least this many samples lie beyond either end of an interval; with fewer, its ends would be random.
const MIN_BEYOND: f64 = 5.0;

/// How certain differences between pipelines are.
#[derive(Debug, Args)]
pub(super) struct ComparisonFlags {
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
}

/// Pipelines over the same labelled captures.
#[derive(Debug)]
pub(super) struct ComparedPipelines<'a> {
    pub(super) input: &'a EvaluationInput,
    pub(super) variants: &'a [PipelineVariant],
    pub(super) flags: &'a ComparisonFlags,
}

impl ComparedPipelines<'_> {
    pub(super) fn compare(&self, form: ReportForm, output: &OutputOption) -> Result<ExitCode, Failure> {
        let ComparisonFlags { confidence, seed, samples } = *self.flags;
        if f64::from(samples) * confidence.tail() < MIN_BEYOND {
            let fewest = (MIN_BEYOND / confidence.tail()).ceil();
            let share = confidence.share();
            return Err(Failure::usage(anyhow!("an interval of {share} needs at least `--samples {fewest}`")));
        }
        let first = self.check_files(output)?;
        let traffic = self.input.captures.input(&first)?;
        let (_, labels) = self.input.read(&traffic, &first)?;
        let (mut runs, mut first_damage) = (Vec::new(), None);
        for (number, variant) in (1..).zip(self.variants) {
            let run = self.judge(&traffic, &labels, number, variant);
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
        output.write(&written)?;
        first_damage.map_or(Ok(ExitCode::SUCCESS), |damage| Err(Failure::damaged(&damage, COVERED)))
    }

    /// Checks that the figures replace no file that a pipeline reads. Returns the first pipeline.
    fn check_files(&self, output: &OutputOption) -> Result<Pipeline, Failure> {
        let (mut files, mut first) = (RunFiles::new(), None);
        for variant in self.variants {
            let pipeline = self.input.pipeline(variant, true);
            let pipeline = pipeline.map_err(|failure| failure.context(format!("with `{variant}`")))?;
            files.extend(self.input.captures.files(&pipeline));
            first = first.or(Some(pipeline));
        }
        output.add_to(&mut files);
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
        let evaluate = || Evaluation::new(&run, evaluator.prior_bits(&pipeline));
        let evaluation = run.has_candidates().then(evaluate);
        let damage = run.damage().cloned();
        Ok((ComparedRun { pipeline: variant.to_string(), run, evaluation }, damage))
    }
}
