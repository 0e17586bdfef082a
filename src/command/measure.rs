//! `sizeleak measure`: how much labelled captures show that sizes give away, and how sure that is.

pub(super) mod model_check;
pub(super) mod report;
pub(super) mod table;

use anyhow::Result;
use clap::Args;
use sizeleak_labels::{LabelFile, Tolerance};
use sizeleak_learning::LabelledCommands;
use sizeleak_pipeline::{Pipeline, PipelineInput};
use sizeleak_platform::telemetry::log::say;

use super::audited_model::AuditedModel;
use super::evaluation_input::COVERED;
use super::failure::damaged;
use super::labelled_captures::LabelledCaptures;
use super::notices::NoticeReport;
use super::output_option::OutputOption;
use super::report_format::ReportFormatOption;
use super::session::Session;
use model_check::ModelCheck;
use report::MeasuredAudit;

/// The first stage that needs a model of sizes.
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
    let pipeline =
        captures.pipeline(captures.traffic.pipeline()?, audited.path().map_or(&[], std::slice::from_ref), &[])?;
    session.check(&pipeline)?;
    let model = audited.path().map(|_| audited.model()).transpose()?;
    let inventory = match &model {
        Some(model) => model.inventory.clone(),
        None => audited.inventory()?,
    };
    let commands = arguments.commands(&pipeline)?;
    let check =
        model.map(|model| ModelCheck::of(captures, &pipeline, &model, &audited.premises(), &commands)).transpose()?;
    let report = MeasuredAudit::new(&commands, inventory.as_ref(), check, *seed);
    output.write(&form.written(&report, None, || table::table(&report))?)?;
    // The figures cover what is before the damage.
    commands.damage.as_ref().map_or(Ok(()), |damage| Err(damaged(damage, COVERED)))
}

impl Arguments {
    fn commands(&self, pipeline: &Pipeline) -> Result<LabelledCommands> {
        let traffic = self.captures.input(pipeline)?;
        let labels = self.captures.read_labels(&traffic, pipeline)?;
        let tolerance = labels.tolerance(self.captures.tolerance);
        let found = labelled_commands(pipeline, &traffic, &labels, tolerance)?;
        found.remarks.iter().for_each(|remark| say("note", remark));
        Ok(found)
    }
}

/// The commands of labels.
pub(super) fn labelled_commands(
    pipeline: &Pipeline,
    traffic: &PipelineInput,
    labels: &LabelFile,
    tolerance: Tolerance,
) -> Result<LabelledCommands> {
    let mut notices = NoticeReport::default();
    let finding = pipeline.before(CORRECTOR);
    let found = LabelledCommands::find(traffic, &finding, labels, tolerance, &mut |notice| notices.add(notice));
    notices.print(&found, |found| found.damage.as_ref());
    Ok(found?)
}
