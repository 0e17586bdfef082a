//! `sizeleak measure`: how much labelled captures show that sizes give away, and how sure that is.

pub(super) mod model_check;
pub(super) mod report;

use anyhow::Result;
use clap::Args;
use sizeleak_evaluation::measured_leak::{MeasuredLeak, MeasuredShare};
use sizeleak_evaluation::statistics::Interval;
use sizeleak_labels::{LabelFile, Tolerance};
use sizeleak_learning::LabelledCommands;
use sizeleak_model::{Inventory, Model};
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;
use sizeleak_report::document::{Figure, NONE, Value};
use sizeleak_text::{escaped, percent};

use super::audited_model::AuditedModel;
use super::evaluation_input::COVERED;
use super::failure::damaged;
use super::labelled_captures::LabelledCaptures;
use super::notices::NoticeReport;
use super::output_option::OutputOption;
use super::report_format::ReportFormatOption;
use super::session::Session;
use crate::command::document::{Document, figure, numbers, paragraph, spaced};
use model_check::{ModelCheck, ModelFigure};
use report::{MeasuredAudit, MeasuredSecrets, p_in_words, whole_percents};

pub(super) const CORRECTOR: &str = "epsilon-corrector";

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
    model says. docs/audit.md explains every figure, and lists the keys of `--format json`.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    audited: AuditedModel,

    /// The seed of permutations and bootstraps [default: 1]
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_default_value = true)]
    seed: u64,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    output: OutputOption,
}

pub(crate) fn run(arguments: &Arguments, session: &mut Session) -> Result<()> {
    let Arguments { captures, audited, seed, format, output } = arguments;
    let form = format.form(output, "sizeleak measure")?;
    let pipeline = audited.pipeline(captures)?;
    session.check(&pipeline)?;
    let model = audited.path().map(|_| audited.model()).transpose()?;
    let Measured { commands, audit, .. } = Measured::new(captures, audited, pipeline, model.as_ref(), *seed)?;
    commands.remarks.iter().for_each(|remark| say("note", remark));
    output.write(&form.written(&audit, None, || table(&audit))?)?;
    // The figures cover what is before the damage.
    commands.damage.as_ref().map_or(Ok(()), |damage| Err(damaged(damage, COVERED)))
}

/// Labelled captures, the commands that were found for their labels, and what these show.
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
        pipeline: Pipeline,
        model: Option<&Model>,
        seed: u64,
    ) -> Result<Self> {
        let inventory = model.map_or_else(|| audited.inventory(), |model| Ok(model.inventory.clone()))?;
        let traffic = captures.input(&pipeline)?;
        let labels = captures.read_labels(&traffic, &pipeline)?;
        let tolerance = labels.tolerance(captures.tolerance);
        let mut notices = NoticeReport::default();
        let finding = pipeline.before(CORRECTOR);
        let found = LabelledCommands::find(&traffic, &finding, &labels, tolerance, &mut |notice| notices.add(notice));
        notices.print(&found, |found| found.damage.as_ref());
        let commands = found?;
        let check = model.map(|model| ModelCheck::of(captures, &pipeline, model, &audited.premises(), &commands));
        let audit = MeasuredAudit::new(&commands, inventory.as_ref(), check.transpose()?, seed);
        Ok(Self { pipeline, traffic, labels, tolerance, inventory, commands, audit })
    }
}

pub(super) fn table(report: &MeasuredAudit) -> Document {
    let sentences: Vec<&str> =
        [Some(&report.sentence), report.model_sentence.as_ref()].into_iter().flatten().map(String::as_str).collect();
    let remarks = report.remarks.iter().flat_map(|remark| paragraph(format!("- {}", escaped(remark)), 2));
    spaced([paragraph(sentences.join(" "), 0), remarks.collect(), figure(&named(report)), measures(&report.by_size)])
}

pub(crate) fn named(report: &MeasuredAudit) -> Figure {
    type Shown = fn(&MeasuredLeak) -> Value;
    let within = |share: MeasuredShare| Value::Within(share.share, share.interval);
    let several = |leak: &MeasuredLeak, shown: Shown| (leak.secrets > 1).then(|| shown(leak)).into();
    let all = |(name, secrets, shown): (&str, &MeasuredSecrets, Shown)| {
        let kinds = secrets.kinds.as_ref().map_or(Value::Unknown, |leak| several(leak, shown));
        [name.into(), several(&secrets.command, shown), several(&secrets.number, shown), kinds]
    };
    let nearest: Shown = |leak| Value::Within(leak.named.share, leak.named.interval);
    let rows: [(&str, &MeasuredSecrets, Shown); 7] = [
        ("by guessing, V₀", &report.by_size, |leak| Value::Within(leak.guessing.share, leak.guessing.interval)),
        ("by size", &report.by_size, nearest),
        ("  guessing at new sizes", &report.by_size, |leak| {
            Value::Within(leak.frequentist.share, leak.frequentist.interval)
        }),
        ("  from all other times", &report.by_size, |leak| {
            Value::Within(leak.from_others.share, leak.from_others.interval)
        }),
        ("  by anybody, V", &report.by_size, |leak| whole_percents(leak.vulnerability).into()),
        ("by size and reply count", &report.with_reply_count, nearest),
        ("by size and reply bytes", &report.with_reply_bytes, nearest),
    ];
    let mut rows: Vec<[Value; 4]> = rows.into_iter().map(all).collect();
    if let Some(ModelCheck { figures: Some(figures), .. }) = &report.model {
        let of_model = |name: &str, shown: &dyn Fn(&ModelFigure) -> Value| {
            [name.into(), shown(&figures.command), shown(&figures.number), Value::Unknown]
        };
        rows.push(of_model("by size, with the model", &|figure| within(figure.named)));
        rows.push(of_model("  as the model says", &|figure| Value::Share(figure.expected)));
        rows.push(of_model("  of all commands", &|figure| Value::Share(figure.over_all_commands)));
    }
    Figure::new("without-a-model", "named correctly | command | number of actions | types of devices", rows).titled(
        "Named by an observer who learned from the commands before",
        "In brackets are intervals of 95 % (Wilson).",
    )
}

struct MeasureRow(&'static str, fn(&MeasuredLeak) -> String);

const COUNTS: [MeasureRow; 3] = [
    MeasureRow("labelled commands", |leak| leak.commands.to_string()),
    MeasureRow("  different", |leak| leak.secrets.to_string()),
    MeasureRow("  labelled as no other", |leak| leak.secrets_once.to_string()),
];

/// What is measured, where there are several secrets.
const FIGURES: [MeasureRow; 7] = [
    MeasureRow("  needed at least", |leak| {
        leak.fewest_commands.map_or_else(|| NONE.to_owned(), |fewest| fewest.to_string())
    }),
    MeasureRow("sizes", |leak| leak.outputs.to_string()),
    MeasureRow("sizes say nothing: p", |leak| p_in_words(&leak.independence)),
    MeasureRow("V / V₀", |leak| decimals(leak.times_guessing.interval)),
    MeasureRow("V at most, by heart", |leak| percent(leak.upper_bounds.learned_by_heart)),
    MeasureRow("V at most, by neighbours", |leak| percent(leak.upper_bounds.nearest_neighbour)),
    MeasureRow("given away, in bits", |leak| {
        let information = leak.information;
        information.interval.map_or_else(
            || NONE.to_owned(),
            |Interval { low, high }| format!("{:.2} ({low:.2}–{high:.2})", information.bits),
        )
    }),
];

fn measures(secrets: &MeasuredSecrets) -> Document {
    let row = |MeasureRow(name, shown): &MeasureRow, least: u64| {
        let cell = |leak: &MeasuredLeak| if leak.secrets >= least { shown(leak) } else { NONE.to_owned() };
        let kinds = secrets.kinds.as_ref().map_or_else(|| NONE.to_owned(), cell);
        [(*name).to_owned(), cell(&secrets.command), cell(&secrets.number), kinds]
    };
    let rows = COUNTS.iter().map(|counts| row(counts, 1)).chain(FIGURES.iter().map(|figures| row(figures, 2)));
    numbers(["by size", "command", "number of actions", "types of devices"], rows)
}

fn decimals(Interval { low, high }: Interval) -> String {
    if high.is_finite() { format!("{low:.1}–{high:.1}") } else { format!("≥ {low:.1}") }
}
