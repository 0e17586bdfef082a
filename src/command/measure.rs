//! `sizeleak measure`: how much labelled captures show that sizes give away, and how sure that is.

pub(super) mod report;

use anyhow::Result;
use clap::Args;
use report::{MeasuredAudit, MeasuredSecrets, ModelCheck, ModelFigure, whole_percents};
use sizeleak_evaluation::measured_leak::{MeasuredInformation, MeasuredLeak, MeasuredShare};
use sizeleak_evaluation::statistics::Interval;
use sizeleak_learning::labels::{LabelFile, Tolerance};
use sizeleak_learning::{LabelledCommands, LearningSettings};
use sizeleak_model::{Inventory, Model};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::{Figure, Value};
use sizeleak_text::escaped;

use super::audited_model::AuditedModel;
use super::evaluation_input::{COVERED, p_in_words};
use super::failure::check_damage;
use super::labels::{CORRECTOR, LabelledCaptures};
use super::notices::NoticeReport;
use super::report_format::ReportOutput;
use super::session::Session;
use crate::command::document::{Document, figure, paragraph, spaced};

/// Measure what sizes give away, on labelled captures
#[derive(Debug, Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    // Without a model they would say nothing.
    "section" | "prior" | "decay" => argument.requires("model"),
    _ => argument,
}))]
#[command(override_usage = "sizeleak measure [OPTIONS] --labels <FILE> [FILE]...")]
#[command(after_long_help = "Examples:\n  \
    sizeleak measure test.pcap --labels test.csv --gateway 192.168.1.20\n  \
    sizeleak measure test.pcap --labels test.csv --gateway 192.168.1.20 --model model.toml\n\n\
    It is measured how often an observer is right who learned from the labelled commands before; no model is needed. \
    With `--model` it is also measured how often the observer of `sizeleak audit` is right there, beside what the \
    model says. docs/audit.md explains every figure, docs/reference.md the keys of `--format json`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    output: ReportOutput,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let Arguments { captures, audited, output } = arguments;
    let form = output.form("sizeleak measure")?;
    let pipeline = audited.pipeline(captures)?;
    session.check(&pipeline)?;
    let model = audited.path().map(|_| audited.model()).transpose()?;
    let Measured { commands, audit, .. } = Measured::new(captures, audited, &pipeline, model.as_ref())?;
    commands.remarks.iter().for_each(|remark| say("note", remark));
    form.write(&audit, None, || table(&audit))?;
    check_damage(commands.damage.as_ref(), COVERED)
}

pub(super) struct Measured {
    /// The stages that find commands; what learns from them takes no model.
    pub(super) pipeline: Pipeline,
    pub(super) traffic: PipelineInput,
    pub(super) labels: LabelFile,
    pub(super) tolerance: Tolerance,
    pub(super) inventory: Option<Inventory>,
    pub(super) commands: LabelledCommands,
    pub(super) audit: MeasuredAudit,
}

impl Measured {
    pub(super) fn new(
        captures: &LabelledCaptures,
        audited: &AuditedModel,
        pipeline: &Pipeline,
        model: Option<&Model>,
    ) -> Result<Self> {
        let inventory = model.map_or_else(|| audited.inventory(), |model| Ok(model.inventory.clone()))?;
        let traffic = captures.input(pipeline)?;
        let labels = captures.read_labels(&traffic, pipeline, None)?;
        let sections = model.map_or(&[][..], std::slice::from_ref);
        let pipeline = captures.of_labelled_gateways(&traffic, pipeline, &labels, sections)?;
        let tolerance = labels.tolerance(captures.tolerance);
        let finding = pipeline.before(CORRECTOR);
        let settings = LearningSettings { inventory: inventory.clone(), ..LearningSettings::default() };
        let commands = NoticeReport::of(
            |notices| LabelledCommands::find(&traffic, &finding, &labels, tolerance, &settings, notices),
            |found| found.damage.as_ref(),
        )?;
        let check = model.map(|model| ModelCheck::of(captures, &pipeline, model, &audited.premises(), &commands));
        let audit = MeasuredAudit::new(&commands, inventory.as_ref(), check.transpose()?);
        Ok(Self { pipeline, traffic, labels, tolerance, inventory, commands, audit })
    }
}

pub(super) fn table(report: &MeasuredAudit) -> Document {
    let sentences: Vec<&str> =
        [Some(&report.sentence), report.model_sentence.as_ref()].into_iter().flatten().map(String::as_str).collect();
    let remarks = report.remarks.iter().flat_map(|remark| paragraph(format!("- {}", escaped(remark)), 2));
    spaced([paragraph(sentences.join(" "), 0), remarks.collect(), figure(&named(report)), measures(&report.by_size)])
}

type Row = (&'static str, fn(&MeasuredLeak) -> Value);

/// The figure of each secret that has at least so many values.
fn row(secrets: &MeasuredSecrets, (name, value): Row, least: u64) -> [Value; 4] {
    let shown = |leak: &MeasuredLeak| Value::from((leak.secrets >= least).then(|| value(leak)));
    let kinds = secrets.kinds.as_ref().map(shown).into();
    [name.into(), shown(&secrets.command), shown(&secrets.number), kinds]
}

fn within(MeasuredShare { share, interval }: MeasuredShare) -> Value {
    Value::Within(share, interval)
}

const BY_SIZE: [Row; 5] = [
    ("by guessing, V₀", |leak| within(leak.guessing)),
    ("by size", |leak| within(leak.named)),
    ("  guessing at new sizes", |leak| within(leak.frequentist)),
    ("  from all other times", |leak| within(leak.from_others)),
    ("  by anybody, V", |leak| whole_percents(leak.vulnerability).into()),
];

pub(crate) fn named(report: &MeasuredAudit) -> Figure {
    let mut rows: Vec<[Value; 4]> = BY_SIZE.iter().map(|of_size| row(&report.by_size, *of_size, 2)).collect();
    for (name, secrets) in
        [("by size and reply count", &report.with_reply_count), ("by size and reply bytes", &report.with_reply_bytes)]
    {
        rows.push(row(secrets, (name, |leak| within(leak.named)), 2));
    }
    if let Some(ModelCheck { figures: Some(figures), .. }) = &report.model {
        let of_model = |name: &str, shown: fn(&ModelFigure) -> Value| {
            [name.into(), shown(&figures.command), shown(&figures.number), Value::Unknown]
        };
        rows.push(of_model("by size, with the model", |figure| within(figure.named)));
        rows.push(of_model("  as the model says", |figure| Value::Share(figure.expected)));
        rows.push(of_model("  of all commands", |figure| Value::Share(figure.over_all_commands)));
    }
    Figure::new("without-a-model", "named correctly | command | number of actions | types of devices", rows).titled(
        "Named by an observer who learned from the commands before",
        "In brackets are intervals of 95 % (Wilson).",
    )
}

const COUNTS: [Row; 3] = [
    ("labelled commands", |leak| count(leak.commands)),
    ("  different", |leak| count(leak.secrets)),
    ("  labelled as no other", |leak| count(leak.secrets_once)),
];

const FIGURES: [Row; 7] = [
    ("  needed at least", |leak| leak.fewest_commands.map(count).into()),
    ("sizes", |leak| count(leak.outputs)),
    ("sizes say nothing: p", |leak| p_in_words(&leak.independence).into()),
    ("V / V₀", |leak| decimals(leak.times_guessing.interval).into()),
    ("V at most, by heart", |leak| Value::Share(leak.upper_bounds.learned_by_heart)),
    ("V at most, by neighbours", |leak| Value::Share(leak.upper_bounds.nearest_neighbour)),
    ("given away, in bits", |leak| {
        let MeasuredInformation { bits, interval, .. } = leak.information;
        interval.map(|Interval { low, high }| format!("{bits:.2} ({low:.2}–{high:.2})")).into()
    }),
];

/// A number that is shown without commas.
fn count(number: u64) -> Value {
    Value::Number(number as f64, 0)
}

fn measures(secrets: &MeasuredSecrets) -> Document {
    let counts = COUNTS.iter().map(|counts| row(secrets, *counts, 1));
    let rows = counts.chain(FIGURES.iter().map(|figures| row(secrets, *figures, 2)));
    figure(&Figure::new("measures", "by size | command | number of actions | types of devices", rows))
}

fn decimals(Interval { low, high }: Interval) -> String {
    if high.is_finite() { format!("{low:.1}–{high:.1}") } else { format!("≥ {low:.1}") }
}
