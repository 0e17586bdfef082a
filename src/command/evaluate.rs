//! `sizeleak evaluate`: how good a model's answers are on captures whose commands are labelled.

mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use sizeleak_evaluation::measured_leak::{PermutationTest, SecretNumbers};
use sizeleak_evaluation::{
    ComparedRun, Comparison, Conclusion, Evaluation, Evaluator, Fold, FoldCount, FoldedEvaluation, JudgedRun,
    LabelCounts, LearningCurve, PaddingOverhead, Score, details, with_labelled_gateways,
};
use sizeleak_learning::labels::LabelFile;
use sizeleak_learning::{LearnedModel, LearningError, LearningRun};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Model, ModelSet, command_mark};
use sizeleak_pipeline::{ModelFit, Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::{Figure, Value};
use sizeleak_text::{escaped, percent};
use table::ROWS;

use super::document::Document;
use super::evaluation_input::{COVERED, EvaluationInput, PipelineVariant, order_remark};
use super::failure::{check_damage, check_fit, usage};
use super::labels::{CORRECTOR, LabelReading};
use super::notices::NoticeReport;
use super::output_option::write;
use super::report_format::{ReportForm, ReportOutput, csv_of};
use super::session::Session;
use super::shared_options::{CURVE, FOLDS, LearningOptions, OUTPUT, PaddingOption};
use crate::command::document::{figure, line, paragraph, spaced};

/// Compare the answers of a model with the true actions
#[derive(Debug, Args)]
#[command(mut_arg("model", |model| model.conflicts_with_all(["folds", "curve"])))]
#[command(mut_arg("operands", |operands| {
    let about = "Captures, saved streams and pipelines, recognised by content";
    let more = "A pipeline is a pipeline file, options of stages separated by commas (pruner.mode=paper), or `standard` for \
                the usual pipeline. Several are compared with the first; one that names models keeps them: `--model` is \
                for the others.";
    operands.value_name("FILE|PIPELINE").help(about).long_help(format!("{about}\n\n{more}"))
}))]
#[command(mut_arg("inventory", |inventory| inventory.hide_short_help(true)))]
#[command(mut_arg("labels_from_names", LabelReading::excluded_by))]
#[command(after_long_help = "Examples:\n  \
    sizeleak evaluate test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20\n  \
    sizeleak evaluate test.pcap --labels test.csv --model model.toml --pipeline pipeline.toml --format json\n  \
    sizeleak evaluate test.pcap --labels test.csv --model paper.toml --gateway fd00::20 \
    --set pruner.mode=paper\n  \
    sizeleak evaluate --folds 5 records.frames.zst --labels labels.csv\n  \
    sizeleak evaluate learn.pcap --labels learn.csv --gateway 192.168.1.20 --curve\n  \
    sizeleak evaluate standard pruner.mode=paper test.pcap --labels test.csv --model model.toml \
    --gateway 192.168.1.20 -o figures.csv\n  \
    sizeleak evaluate test.pcap --labels test.csv --model model.toml --gateway 192.168.1.20 --what-if padme\n\n\
    All shares are shares of the labelled commands, found or not. A command counts as found out if its true actions \
    are among its candidates, listed or not. Where a truncated list does not show that, the command does not count \
    and is reported as undecided (`--set decomposer.limit=N` lists more).\n\n\
    Differences between several pipelines are paired, as the commands are the same in each; `*` marks one whose interval \
    excludes 0. docs/evaluation.md explains every figure.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) input: EvaluationInput,

    /// Learn from most labels and test on the others
    ///
    /// Without a model: from all labels but one of K parts, tested on that part, for each part. `captures` divides by the capture that the commands are in.
    #[arg(long, value_name = "K|captures", conflicts_with = "details", help_heading = FOLDS)]
    folds: Option<FoldCount>,

    /// Show how precision grows with the number of labels
    ///
    /// Without a model: models of N labels drawn at random, several times, each tested on the last third of the labels.
    /// The last row is of one model of all others.
    #[arg(long, value_name = "N,N…", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with_all = ["folds", "details", "what_if"], help_heading = CURVE)]
    curve: Option<LabelCounts>,

    #[command(flatten, next_help_heading = FOLDS)]
    learning: LearningOptions,

    #[command(flatten)]
    output: ReportOutput,

    /// Write the outcome of every command to FILE, as CSV
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    details: Option<PathBuf>,

    /// Also show the figures if commands were padded. POLICY is a file that `sizeleak pad` wrote, or `multiple:BYTES`,
    /// `powers-of-two`, `padme`, `tls13:BYTES`, `constant:BYTES`, `random:MOST`. Sizes are changed after commands are
    /// found; the observer knows the policy.
    #[arg(long, value_name = "POLICY", conflicts_with = "folds", help_heading = OUTPUT)]
    what_if: Option<PaddingOption>,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    evaluation: &'a Evaluation,
    #[serde(skip_serializing_if = "Option::is_none")]
    folds: Option<&'a [Fold]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    what_if: Option<&'a WhatIf>,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let input = &arguments.input;
    let form = arguments.output.form("sizeleak evaluate")?;
    let variants = input.variants()?;
    if variants.len() > 1 {
        let about_one = [
            (arguments.folds.is_some(), "--folds"),
            (arguments.curve.is_some(), "--curve"),
            (arguments.details.is_some(), "--details"),
            (arguments.what_if.is_some(), "--what-if"),
        ];
        if let Some((_, option)) = about_one.into_iter().find(|(is_given, _)| *is_given) {
            return Err(usage!("`{option}` is about one pipeline: name no others"));
        }
        return compare(input, &variants, form, session);
    }
    let pipeline = input.only_pipeline()?;
    session.check(&pipeline)?;
    if arguments.folds.is_some() || arguments.curve.is_some() {
        return arguments.learn_and_test(&pipeline, form);
    }
    let traffic = input.captures.input(&pipeline)?;
    let (models, labels) = input.read(&traffic, &pipeline)?;
    let pipeline = input.captures.of_labelled_gateways(&traffic, &pipeline, &labels, models.sections())?;
    let policy = arguments.what_if.as_ref().map(PaddingOption::policy).transpose()?;
    let evaluator = input.evaluator(&models, &labels, &traffic)?;
    let mut notices = NoticeReport::default();
    let run = evaluator.judge(&pipeline, &mut |notice| notices.add(notice)).and_then(JudgedRun::with_candidates);
    if run.is_err() {
        notices.print(&run, |run| run.damage.as_ref());
    }
    let run = run?;
    run.check_use()?;
    if let Some(path) = &arguments.details {
        write(path, &csv_of(&serde_json::to_value(details(&run))?, None)?)?;
    }
    let fit = run.fit;
    // What a model that does not fit takes to be known is not given away.
    let prior_bits = evaluator.prior_bits(&pipeline).filter(|_| !matches!(fit, ModelFit::None { .. }));
    let what_if = policy.map(|policy| WhatIf::new(&evaluator, &policy, &pipeline, prior_bits)).transpose()?;
    print(&Evaluation::new(&run, prior_bits), None, what_if.as_ref(), form)?;
    let error = run.damage.as_ref().map_or_else(String::new, ToString::to_string);
    let recurring = models.sections().iter().filter_map(Model::recurring_in_words);
    let others = run.remarks().into_iter().chain(recurring.map(|commands| format!("as learned, {commands}")));
    notices.print_behind_answer(arguments.doubts(&models, &run, &pipeline)?, others.collect(), &error);
    check_damage(run.damage.as_ref(), COVERED)?;
    check_fit(fit)
}

impl Arguments {
    /// Why the figures may be better than those of other captures.
    fn doubts(&self, models: &ModelSet, run: &JudgedRun, pipeline: &Pipeline) -> Result<Vec<String>> {
        let marks: BTreeSet<u32> = models.sections().iter().flat_map(|model| &model.learned.seen).copied().collect();
        let (times, all) = (run.labelled_times(), run.labelled_times().count());
        let seen = times.filter(|time| marks.contains(&command_mark(*time))).count();
        let seen = if marks.is_empty() {
            // Which commands it has seen, the model does not say; its sections share their captures.
            let names: BTreeSet<String> =
                self.input.captures.learned_from(models.sections(), pipeline)?.into_iter().collect();
            Some(names.into_iter().collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
        } else {
            (seen > 0).then(|| format!("{seen} of these {all} commands"))
        };
        let seen = seen.map(|seen| {
            format!(
                "the model was learned from {seen}: it has seen these commands, and is better here than elsewhere; `--folds 5` \
                 in place of `--model` tests each with a model that has not seen it"
            )
        });
        let commands: Vec<&Vec<u32>> = run.labels.labels().rows.iter().map(|row| &row.counts).collect();
        let order = PermutationTest::of_order(SecretNumbers::new(&commands).numbers(), 1);
        Ok(seen.into_iter().chain(order_remark(&order)).collect())
    }

    /// Learns from some labels and tests on others; remarks on the model of all labels are printed.
    fn learn_and_test(&self, pipeline: &Pipeline, form: ReportForm<'_>) -> Result<()> {
        let captures = &self.input.captures;
        let traffic = match self.folds {
            Some(FoldCount::Captures) => captures.input_by_capture(pipeline)?,
            Some(FoldCount::Parts(_)) | None => captures.input(pipeline)?,
        };
        let settings = self.learning.settings(captures.digests(pipeline)?)?;
        let labels =
            captures.read_labels(&traffic, pipeline, Some(&self.input.reading))?.within(settings.inventory.as_ref())?;
        let pipeline = &captures.of_labelled_gateways(&traffic, pipeline, &labels, &[])?;
        let tolerance = labels.tolerance(captures.tolerance);
        let learning = LearningRun { labels: &labels, input: &traffic, tolerance, settings: &settings };
        let finding = pipeline.before(CORRECTOR);
        let outcome = NoticeReport::of(|notices| learning.learn(&finding, notices), |outcome| outcome.damage.as_ref());
        let mut outcome = outcome?;
        let damage = outcome.damage.take();
        report_remarks(&outcome.learned);
        if let Some(count) = self.folds {
            let folds = count.folds(&outcome.labels, &traffic.parts(pipeline)?)?;
            let FoldedEvaluation { evaluation, folds } =
                FoldedEvaluation::new(&learning, pipeline, &outcome, &folds, self.input.credible)?;
            print(&evaluation, Some(&folds), None, form)?;
        } else {
            let counts = self.curve.as_ref().unwrap_or(&LabelCounts::Growing);
            let curve = LearningCurve::measure(&learning, pipeline, outcome, counts)?;
            form.write(&curve, Some("points"), || table::curve_table(&curve))?;
        }
        check_damage(damage.as_ref(), COVERED)
    }
}

fn print(
    evaluation: &Evaluation,
    folds: Option<&[Fold]>,
    what_if: Option<&WhatIf>,
    form: ReportForm<'_>,
) -> Result<()> {
    let document = || {
        let folds = folds.map_or_else(Document::new, folds_table);
        let padded = what_if.map_or_else(Document::new, |what_if| padded_table(evaluation, what_if));
        let conclusion = paragraph(escaped(&evaluation.conclusion.sentence), 0);
        spaced([conclusion, folds, table::table(evaluation), padded])
    };
    form.write(&Report { evaluation, folds, what_if }, None, document)
}

fn report_remarks(learned: &Result<Vec<LearnedModel>, LearningError>) {
    for section in learned.iter().flatten() {
        section.remarks.iter().for_each(|remark| say("note", &format!("all labels together: {remark}")));
        let warnings = section.model.learned.warnings.iter();
        warnings.for_each(|warning| say("warning", &format!("all labels together: {warning}")));
    }
}

fn folds_table(folds: &[Fold]) -> Document {
    let row = |(at, fold): (usize, &Fold)| {
        let [at, learned, labels] = [at, fold.learned, fold.labels].map(|count| Value::Count(count as f64));
        let share = fold.top_1 as f64 / fold.labels as f64;
        [at, learned, labels, (fold.labels > 0).then_some(Value::Within(share, fold.interval)).into()]
    };
    let columns = "part | learned from | tested on | truth the first candidate";
    let faults = (1_usize..).zip(folds).filter_map(|(at, fold)| {
        let fault = fold.fault.as_deref()?;
        Some(line(format!("no model without part {at}: {fault}")))
    });
    let table = figure(&Figure::new("folds", columns, (1..).zip(folds).map(row)));
    spaced([
        line("every label is tested with a model of the other parts, over the same commands"),
        table.into_iter().chain(faults.flatten()).collect(),
    ])
}

/// The figures of the same commands if they were padded, against an observer who knows the policy.
#[derive(Debug, Serialize)]
struct WhatIf {
    policy: String,
    #[serde(flatten)]
    cost: PaddingOverhead,
    /// The bytes that padding adds, as a share of those without.
    overhead: f64,
    conclusion: Conclusion,
    before_pruning: Option<Score>,
    after_pruning: Score,
}

impl WhatIf {
    fn new(
        evaluator: &Evaluator<'_>,
        policy: &PaddingPolicy,
        pipeline: &Pipeline,
        prior_bits: Option<f64>,
    ) -> Result<Self> {
        let (cost, evaluation) = evaluator.padded_by(policy, pipeline, prior_bits)?;
        let Evaluation { conclusion, before_pruning, after_pruning, .. } = evaluation;
        let policy = policy.to_string();
        Ok(Self { policy, cost, overhead: cost.share(), conclusion, before_pruning, after_pruning })
    }
}

const SHOWN_PADDED: [&str; 6] = [
    "truth the first candidate",
    "exactly one candidate",
    "no candidate",
    "candidates, mean",
    "candidates, median",
    "credible set, mean size",
];

fn padded_table(evaluation: &Evaluation, what_if: &WhatIf) -> Document {
    let WhatIf { policy, cost, overhead, before_pruning, after_pruning, .. } = what_if;
    let PaddingOverhead { commands, bytes, added_bytes } = cost;
    let mean = |bytes: &u64| *bytes as f64 / (*commands).max(1) as f64;
    let rows = |name: &str, captured: &Score, padded: &Score| {
        let title = [name, "", ""].map(Value::from);
        let shown = ROWS.iter().filter(|row| SHOWN_PADDED.contains(&row.0));
        let figures = shown.map(|(name, value)| [format!("  {name}").into(), value(captured), value(padded)]);
        std::iter::once(title).chain(figures).collect::<Vec<_>>()
    };
    let by_size = evaluation.before_pruning.as_ref().zip(before_pruning.as_ref());
    let mut all = by_size.map_or_else(Vec::new, |(captured, padded)| rows("by the size", captured, padded));
    let name = if by_size.is_some() { "in the end" } else { "" };
    all.extend(rows(name, &evaluation.after_pruning, after_pruning));
    let sentence = format!(
        "if commands were padded ({policy}): {added_bytes} bytes more in {commands} commands, {} of {bytes} ({:.1} on \
         {:.1} bytes each); to an observer who knows the policy",
        percent(*overhead),
        mean(added_bytes),
        mean(bytes),
    );
    [paragraph(sentence, 0), figure(&Figure::new("what-if", " | as captured | padded", all))].concat()
}

/// Runs several pipelines over the same captures, and compares the others with the first.
fn compare(
    input: &EvaluationInput,
    variants: &[PipelineVariant],
    form: ReportForm<'_>,
    session: &mut Session,
) -> Result<()> {
    let with = |variant: &PipelineVariant| format!("with `{}`", variant.name);
    let mut pipelines = Vec::new();
    for variant in variants {
        let pipeline = input.pipeline(variant, true).with_context(|| with(variant))?;
        session.check(&pipeline)?;
        pipelines.push(pipeline);
    }
    let Some(first) = pipelines.first() else { return Ok(()) };
    let traffic = input.captures.input(first)?;
    let (_, labels) = input.read(&traffic, first)?;
    let (mut runs, mut first_damage) = (Vec::new(), None);
    for (number, (variant, pipeline)) in (1..).zip(variants.iter().zip(&pipelines)) {
        let judged = judge(input, (&traffic, &labels), number, pipeline);
        let (run, evaluation) = judged.with_context(|| with(variant))?;
        first_damage = first_damage.or_else(|| run.damage.clone());
        runs.push(ComparedRun { pipeline: variant.name.clone(), run, evaluation });
    }
    let comparison = Comparison::new(&labels, runs);
    if form.is_csv() {
        form.write(&table::csv_rows(&comparison.pipelines), None, Document::new)?;
    } else {
        form.write(&comparison, None, || table::comparison_table(&comparison))?;
    }
    check_damage(first_damage.as_ref(), COVERED)
}

/// Runs a pipeline. Notices are reported for the first one only: the captures are the same.
fn judge(
    input: &EvaluationInput,
    (traffic, labels): (&PipelineInput, &LabelFile),
    number: usize,
    pipeline: &Pipeline,
) -> Result<(JudgedRun, Option<Evaluation>)> {
    let models = EvaluationInput::models(pipeline)?;
    let tolerance = labels.tolerance(input.captures.tolerance);
    let (pipeline, gateways) = with_labelled_gateways(traffic, pipeline, labels, tolerance, models.sections())?;
    let evaluator = input.evaluator(&models, labels, traffic)?;
    let mut notices = NoticeReport::default();
    let run = evaluator.judge(&pipeline, &mut |notice| {
        if number == 1 {
            notices.add(notice);
        }
    });
    notices.print(&run, |run: &JudgedRun| run.damage.as_ref());
    let run = run?;
    if number == 1 {
        run.check_use()?;
    }
    gateways.iter().chain(&run.remarks()).for_each(|remark| say("note", &format!("[{number}] {remark}")));
    let evaluation = run.has_candidates.then(|| Evaluation::new(&run, evaluator.prior_bits(&pipeline)));
    Ok((run, evaluation))
}
