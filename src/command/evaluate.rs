//! `sizeleak evaluate`: how good a model's answers are on captures whose commands are labelled: the model and the captures, and
//! what is said of both.

mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use sizeleak_evaluation::measured_leak::{PermutationTest, SecretNumbers};
use sizeleak_evaluation::{
    ComparedRun, Comparison, Conclusion, Evaluation, Evaluator, Fold, FoldCount, FoldedEvaluation, JudgedRun,
    LabelCounts, LearningCurve, PaddingOverhead, Score, details, with_labelled_gateways,
};
use sizeleak_frame::{Notice, what};
use sizeleak_learning::labels::LabelFile;
use sizeleak_learning::{LearnedModel, LearningError, LearningRun};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{Model, ModelSet, command_mark};
use sizeleak_pipeline::{ModelFit, Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::{Figure, Value};
use sizeleak_text::{escaped, percent};
use table::ROWS;

use super::document::{Document, figure, line, paragraph, spaced};
use super::failure::{NoticeReport, check_damage, check_fit, usage};
use super::labels::{CORRECTOR, LabelReading, LabelledCaptures};
use super::output_option::{ReportForm, ReportOutput, csv_of, write};
use super::session::{Content, STANDARD, Session};
use super::shared_options::{CURVE, FOLDS, INPUT, LearningOptions, OUTPUT, PaddingOption, STAGES, share};
use super::traffic_input::both_pipelines;

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
    excludes 0. docs/method.md explains every figure.")]
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
    let evaluator = input.evaluator(&models, &labels, &traffic);
    let (mut notices, mut is_shifted) = (NoticeReport::default(), false);
    let mut add = |notice: &Notice| {
        is_shifted |= notice.what == what::SHIFTED;
        notices.add(notice);
    };
    let run = evaluator.judge(&pipeline, &mut add).and_then(JudgedRun::with_candidates);
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
    let mut doubts = arguments.doubts(&models, &run, &pipeline)?;
    if what_if.is_some() && is_shifted {
        doubts.insert(0, SHIFTED_AND_PADDED.to_owned());
    }
    notices.print_behind_answer(doubts, others.collect(), &error);
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

/// Sizes before padding are ranges, which tell no shift.
const SHIFTED_AND_PADDED: &str = "messages became longer or shorter (`shifted`), which answers to padded commands do not \
    follow: padding seems to hide what it does not; evaluate it with the model that `sizeleak adapt` writes, on what was \
    captured since then (`--since`)";

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
    let evaluator = input.evaluator(&models, labels, traffic);
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

pub(super) const COVERED: &str = "the figures cover everything before the damage";

#[derive(Debug, Args)]
pub(super) struct EvaluationInput {
    /// The model, made by `sizeleak learn`; can be repeated, for several services [default: that of the pipeline file]
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    model: Vec<PathBuf>,

    /// The pipeline file that options of stages change, instead of the standard pipeline
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pipeline: Option<PathBuf>,

    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    pub(super) reading: LabelReading,

    /// The probability that a credible set holds
    #[arg(long, value_name = "P", default_value = "0.95", value_parser = share)]
    pub(super) credible: f64,
}

impl EvaluationInput {
    pub(super) fn variants(&self) -> Result<Vec<PipelineVariant>> {
        let operands = self.captures.traffic.operands.iter();
        let named = operands.filter(|operand| matches!(operand.content, Content::Pipeline | Content::Settings));
        let variants = named.map(|operand| operand.path.to_string_lossy().parse());
        variants.collect::<Result<_, _>>().map_err(|fault: String| usage!(fault))
    }

    pub(super) fn only_pipeline(&self) -> Result<Pipeline> {
        let named = self.captures.traffic.pipeline()?;
        if let (Some(named), Some(option)) = (named, &self.pipeline) {
            return Err(both_pipelines(option, named));
        }
        self.pipeline(&PipelineVariant { file: named.map(Path::to_owned), ..PipelineVariant::default() }, false)
    }

    pub(super) fn models(pipeline: &Pipeline) -> Result<ModelSet> {
        let models = pipeline.models();
        if models.is_empty() {
            return Err(usage!("the model is missing: name it with `--model FILE`"));
        }
        Ok(ModelSet::read(&models)?)
    }

    pub(super) fn read(&self, input: &PipelineInput, pipeline: &Pipeline) -> Result<(ModelSet, LabelFile)> {
        let models = Self::models(pipeline)?;
        let labels = self.captures.read_labels(input, pipeline, Some(&self.reading))?;
        let unknown = labels.check_actions(models.sections())?;
        let warnings = models.sections().iter().flat_map(|model| &model.learned.warnings);
        let warnings = warnings.map(|warning| format!("the model was learned with a warning: {warning}"));
        unknown.into_iter().chain(warnings).for_each(|text| say("sizeleak", &text));
        Ok((models, labels))
    }

    pub(super) fn evaluator<'a>(
        &self,
        models: &'a ModelSet,
        labels: &'a LabelFile,
        input: &'a PipelineInput,
    ) -> Evaluator<'a> {
        let tolerance = labels.tolerance(self.captures.tolerance);
        Evaluator { models: models.sections(), labels, tolerance, credible: self.credible, input }
    }

    /// A pipeline with the models that are named, or else with its own. `keeps_own`: one that has models keeps them whatever is named.
    pub(super) fn pipeline(&self, variant: &PipelineVariant, keeps_own: bool) -> Result<Pipeline> {
        let file = variant.file.as_deref().or(self.pipeline.as_deref());
        let own = file.map(Pipeline::read).transpose()?.map_or_else(Vec::new, |pipeline| pipeline.models());
        let keeps_own = self.model.is_empty() || keeps_own && !own.is_empty();
        self.captures.pipeline(file, if keeps_own { &own } else { &self.model }, &variant.options)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PipelineVariant {
    pub(super) name: String,
    /// Its file; `None` for the one that `--pipeline` names, or the standard pipeline.
    file: Option<PathBuf>,
    /// Options of stages that change it, `stage.key=value` each.
    options: Vec<String>,
}

impl FromStr for PipelineVariant {
    type Err = String;

    /// Reads options separated by commas, the word `standard`, or the path of a pipeline file. A value may contain
    /// commas: a part without `=` belongs to the option before it.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut variant = Self { name: text.to_owned(), ..Self::default() };
        if text == STANDARD {
            return Ok(variant);
        }
        for part in text.split(',') {
            match variant.options.last_mut() {
                _ if part.contains('=') => variant.options.push(part.to_owned()),
                Some(last) => last.extend([",", part]),
                None if text.is_empty() => return Err("it is empty: name options or a pipeline file".to_owned()),
                None => return Ok(Self { file: Some(text.into()), ..variant }),
            }
        }
        Ok(variant)
    }
}

/// A p-value; no smaller one could have been found where the labels dealt out anew never fit as well.
pub(super) fn p_in_words(test: &PermutationTest) -> String {
    format!("{} {:.3}", if test.is_least() { "≤" } else { "=" }, test.p_value)
}

/// Labels are said to follow each other in a row if chance orders them so with at most this probability.
const IN_A_ROW: f64 = 0.01;

/// That what changes with time cannot be told from what actions do.
pub(super) fn order_remark(order: &PermutationTest) -> Option<String> {
    (order.p_value <= IN_A_ROW).then(|| {
        format!(
            "equal commands follow each other more often than chance orders them (p {}): what changes with time, such as a \
             message number, is not told from what actions do; record commands in random order",
            p_in_words(order)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p_value_that_could_not_be_smaller_is_a_bound() {
        let order = |as_great| PermutationTest { permutations: 999, as_great, p_value: (as_great + 1) as f64 / 1000.0 };
        assert!(order_remark(&order(0)).is_some_and(|remark| remark.contains("orders them (p ≤ 0.001): ")));
        assert!(order_remark(&order(4)).is_some_and(|remark| remark.contains("orders them (p = 0.005): ")));
        assert_eq!(order_remark(&order(40)), None);
    }

    #[test]
    fn variants_are_options_or_a_file() {
        for (text, file, options) in [
            ("pruner.mode=paper", None, &["pruner.mode=paper"][..]),
            ("a.gap=1s,b.keep=0.9", None, &["a.gap=1s", "b.keep=0.9"]),
            ("f.gateway=10.0.0.1,10.0.0.2,b.keep=1", None, &["f.gateway=10.0.0.1,10.0.0.2", "b.keep=1"]),
            ("own/pipeline.toml", Some("own/pipeline.toml"), &[]),
            ("standard", None, &[]),
            ("./standard", Some("./standard"), &[]),
        ] {
            let variant: PipelineVariant = text.parse().unwrap();
            assert_eq!(
                (variant.file.as_deref(), variant.options),
                (file.map(Path::new), options.iter().map(ToString::to_string).collect())
            );
            assert_eq!(variant.name, text, "it is shown as it was given");
        }
        assert!("".parse::<PipelineVariant>().is_err());
    }
}
