//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use sizeleak_leakage::{CommandSpace, LeakageError, Premises, PriorKind, with_inventory};
use sizeleak_model::{Inventory, Model, ModelSet};
use sizeleak_storage::RunFiles;
use sizeleak_telemetry::log::{LogFlags, say};
use sizeleak_text::escaped_lines;

use super::failure::Failure;
use super::output_option::OutputOption;
use super::report_format::{ReportFormat, ReportFormatOption};

/// Compute how much the sizes of commands give away, over all commands of an inventory
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak audit --model model.toml")]
pub(crate) struct Arguments {
    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE")]
    model: PathBuf,

    /// Which section of a model of several services, from 1
    #[arg(long, value_name = "NUMBER", hide_short_help = true)]
    section: Option<usize>,

    /// The devices, if they are others than those of the model
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How probable commands are before their size is seen
    #[arg(long, value_enum, default_value_t)]
    prior: Prior,

    /// How likely n + 1 actions are, compared with n [default: as learned]
    #[arg(long, value_name = "SHARE", value_parser = decay)]
    decay: Option<f64>,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    output: OutputOption,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

/// How probable commands are before their size is seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Prior {
    /// As the model learned: how many actions commands have, and how often each one occurs
    #[default]
    Learned,
    /// Each device is as likely, and each of its actions
    Devices,
    /// Every command is as likely
    Flat,
}

impl From<Prior> for PriorKind {
    fn from(prior: Prior) -> Self {
        match prior {
            Prior::Learned => Self::Learned,
            Prior::Devices => Self::Devices,
            Prior::Flat => Self::Flat,
        }
    }
}

fn decay(text: &str) -> Result<f64, String> {
    let decay = text.parse().ok().filter(|decay: &f64| *decay > 0.0 && *decay <= 1.0);
    decay.ok_or_else(|| "it must be a number above 0, at most 1".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let format = arguments.output.form(arguments.format.named(), "sizeleak audit")?.unwrap_or_default();
    arguments.check_files()?;
    let model = arguments.model()?;
    let premises = Premises { prior: arguments.prior.into(), decay: arguments.decay };
    let space = CommandSpace::new(&model, &premises)?;
    let rows = space.size_rows()?;
    let guessing = rows.iter().map(|row| row.greatest).fold(0.0, f64::max);
    let named: f64 = rows.iter().map(|row| row.greatest).sum();
    let text = match format {
        ReportFormat::Table => format!(
            "An observer who sees only sizes names the exact command in {:.0} % of cases (guessing: {:.0} %).\n",
            100.0 * named,
            100.0 * guessing
        ),
        ReportFormat::Json => serde_json::json!({ "named": named, "guessing": guessing }).to_string() + "\n",
    };
    arguments.output.write(escaped_lines(&text).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn check_files(&self) -> Result<(), Failure> {
        let mut files = RunFiles::new();
        files.reads("the model", &self.model);
        self.inventory.iter().for_each(|path| files.reads("the inventory", path));
        self.output.add_to(&mut files);
        Ok(files.check()?)
    }

    /// The model's section, with the inventory that is named.
    fn model(&self) -> Result<Model, Failure> {
        let sections = ModelSet::read(std::slice::from_ref(&self.model))?.into_sections();
        let count = sections.len();
        let number = match self.section {
            None if count > 1 => {
                let fault = "the model is about several services: name one of its sections with";
                return Err(Failure::usage(anyhow!("{fault} `--section`, from 1 to {count}")));
            }
            section => section.unwrap_or(1),
        };
        let section = number.checked_sub(1).and_then(|at| sections.into_iter().nth(at));
        let model =
            section.ok_or_else(|| Failure::usage(anyhow!("the model has no section {number}, only {count}")))?;
        let Some(path) = &self.inventory else { return Ok(model) };
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let inventory = Inventory::from_toml(&text).with_context(name)?;
        let (model, gone) = with_inventory(model, inventory).with_context(name)?;
        if !gone.is_empty() && !self.log.is_quiet() {
            let gone = gone.join(", ");
            say(
                "note",
                &format!("no device of the inventory has these actions of the model, which are left out: {gone}"),
            );
        }
        Ok(model)
    }
}

impl From<LeakageError> for Failure {
    fn from(error: LeakageError) -> Self {
        match error {
            LeakageError::NoPrior | LeakageError::NoInventory(_) | LeakageError::NoNumbers => Self::usage(error),
            error => Self::from(anyhow::Error::from(error)),
        }
    }
}
