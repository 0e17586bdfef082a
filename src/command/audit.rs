//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory, or
//! measured on labelled captures.

mod audited_model;
mod export;
mod help_text;
mod measured;
mod padding;
mod table;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{ArgGroup, Args};
use serde::Serialize;
use sizeleak_audit::leakage::Audit;
use sizeleak_inference::space::{CommandSpace, PriorName, SpaceError};
use sizeleak_model::{Device, Model};
use sizeleak_platform::storage::RunFiles;
use sizeleak_text::escaped_lines;

use audited_model::AuditedModel;
use export::{Export, ExportOptions, Exported, ExportedObserver, Notes};
use measured::{MeasuredOutput, MeasuredRequest, SeenBy, TestedModel};
use padding::PaddingOptions;

use super::failure::Failure;
use super::labelled_captures::LabelledCaptures;
use super::output_option::{OutputOption, json_report};
use super::report_format::{ReportFormat, ReportFormatOption};

/// The options of labelled captures that stand in the short help.
const SHORT_HELP: [&str; 2] = ["labels", "gateway"];

/// The arguments that say where labelled commands are.
const OF_CAPTURES: [&str; 12] = [
    "operands",
    "input",
    "recursive",
    "from",
    "pipeline",
    "label_pattern",
    "tolerance",
    "label_zone",
    "label_offset",
    "gateway",
    "set",
    "cache",
];

/// Compute or measure what the sizes of commands give away
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("labelled").args(["labels", "labels_from_names"])))]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    id if OF_CAPTURES.contains(&id) => {
        let is_hidden = !SHORT_HELP.contains(&id) && id != "operands";
        argument.requires("labelled").hide_short_help(is_hidden)
    }
    "samples" => argument.conflicts_with("labelled"),
    "format" | "prior" | "table_json" | "curve" => argument.hide_short_help(true),
    "json" => argument.hide_short_help(false),
    _ => argument,
}))]
#[command(after_help = help_text::EXAMPLES, after_long_help = help_text::long())]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    #[command(flatten)]
    audited: AuditedModel,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    padding: PaddingOptions,

    #[command(flatten)]
    export: ExportOptions,

    #[command(flatten)]
    output: OutputOption,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let export = arguments.export.export;
    let format = match export {
        Some(_) => ReportFormat::Table,
        None => arguments.output.form(arguments.format.named(), "sizeleak audit")?.unwrap_or_default(),
    };
    if arguments.captures.are_labelled() {
        return arguments.measure(format);
    }
    let mut files = RunFiles::new();
    arguments.check_files(&mut files)?;
    let model = arguments.audited.model(&arguments.captures.log)?;
    let premises = arguments.audited.premises();
    if let Some(export) = export {
        let space = CommandSpace::new(&model, &premises)?;
        let policy = arguments.padding.policy_for(&model)?;
        let exported = Exported {
            space: &space,
            model: &model,
            knowledge: arguments.padding.knowledge(),
            policy: policy.as_ref(),
            commands_per_day: arguments.padding.commands_per_day(),
        };
        let notes = if arguments.captures.log.is_quiet() { Notes::Quiet } else { Notes::Said };
        let text = arguments.export.text(export, &exported, notes)?;
        arguments.output.write(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let prior = arguments.audited.prior_in_words(&model);
    if arguments.padding.is_asked_for() {
        let report = arguments.padding.report(&model, &premises, &prior, format, &arguments.captures.log)?;
        arguments.output.write(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let audit = Audit::new(&model, &premises)?;
    match format {
        ReportFormat::Table => {
            let text = table::table(&audit, &model, &prior);
            arguments.output.write(escaped_lines(&text).as_bytes())?;
        }
        ReportFormat::Json => {
            let report = Report::new(&audit, &model, prior, arguments);
            arguments.output.write(json_report(&report)?.as_bytes())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// An audit as JSON.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: u32,
    sentence: String,
    prior: PriorReport,
    actions: Vec<&'a str>,
    devices: Option<&'a [Device]>,
    #[serde(flatten)]
    audit: &'a Audit,
}

/// The prior that was used.
#[derive(Debug, Serialize)]
struct PriorReport {
    name: PriorName,
    decay: Option<f64>,
    sentence: String,
}

impl<'a> Report<'a> {
    fn new(audit: &'a Audit, model: &'a Model, prior: String, arguments: &Arguments) -> Self {
        Self {
            schema: 1,
            sentence: audit.sentence(),
            prior: PriorReport { name: arguments.audited.prior, decay: arguments.audited.decay, sentence: prior },
            actions: model.actions.iter().map(|action| action.name.as_str()).collect(),
            devices: model.inventory.as_ref().map(|inventory| inventory.devices.as_slice()),
            audit,
        }
    }
}

impl Arguments {
    /// What labelled captures show, beside the model if there is one.
    fn measure(&self, format: ReportFormat) -> Result<ExitCode, Failure> {
        let output = match self.export.export {
            None => MeasuredOutput::Report(format),
            Some(Export::Samples) => {
                let (secret, observer) =
                    (self.export.secret.unwrap_or_default(), self.export.observer.unwrap_or_default());
                MeasuredOutput::Samples(secret.into(), observer.into())
            }
            Some(_) => {
                return Err(Failure::usage(anyhow!(
                    "of labelled captures only samples are exported: `--export samples`"
                )));
            }
        };
        if self.padding.is_asked_for() {
            let fault =
                "padding is computed without captures; `sizeleak evaluate --what-if` says what it would hide there";
            return Err(Failure::usage(anyhow!(fault)));
        }
        let pipeline = self.captures.pipeline(self.captures.traffic.pipeline()?, &[])?;
        self.check_files(&mut self.captures.files(&pipeline))?;
        let model = match &self.audited.model {
            Some(path) => Some(TestedModel {
                path,
                model: self.audited.model(&self.captures.log)?,
                premises: self.audited.premises(),
            }),
            None => None,
        };
        let inventory = match &model {
            Some(tested) => tested.model.inventory.clone(),
            None => self.audited.inventory()?,
        };
        let (captures, seed) = (&self.captures, self.export.seed);
        let measured = MeasuredRequest { captures, pipeline, model, inventory, seed }.written(output)?;
        self.output.write(&measured.text)?;
        measured.check_damage()?;
        Ok(ExitCode::SUCCESS)
    }

    fn check_files(&self, files: &mut RunFiles) -> Result<(), Failure> {
        self.audited.add_to(files);
        self.padding.add_to(files);
        self.output.add_to(files);
        Ok(files.check()?)
    }
}

impl From<ExportedObserver> for SeenBy {
    fn from(observer: ExportedObserver) -> Self {
        match observer {
            ExportedObserver::Sizes => Self::Sizes,
            ExportedObserver::ReplyCount => Self::ReplyCount,
            ExportedObserver::Replies => Self::ReplyBytes,
        }
    }
}

impl From<SpaceError> for Failure {
    fn from(error: SpaceError) -> Self {
        match error {
            SpaceError::NoPrior | SpaceError::NoInventory(_) | SpaceError::NoNumbers => Self::usage(error),
            error => Self::from(anyhow::Error::from(error)),
        }
    }
}
