//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory.

mod export;
mod padding;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use serde::Serialize;
use sizeleak_leakage::{Audit, CommandSpace, LeakageError, Premises, PriorKind, with_inventory};
use sizeleak_model::{Device, Inventory, Model, ModelSet};
use sizeleak_storage::RunFiles;
use sizeleak_telemetry::log::{LogFlags, say};
use sizeleak_text::escaped_lines;

use export::{ExportOptions, Exported, Notes};
use padding::PaddingOptions;

use super::failure::Failure;
use super::output_option::{OutputOption, json_report};
use super::report_format::{ReportFormat, ReportFormatOption};

/// Compute what sizes give away, over all commands of a home
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --prior devices --json\n  \
    sizeleak audit --model model.toml --best --budget 20% --table-json table.json")]
#[command(after_long_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75\n  \
    sizeleak audit --model model.toml --export csv --secret number -o joint.csv\n  \
    sizeleak audit --model model.toml --export maybenot --policy padme -o trace.log\n  \
    sizeleak audit --model model.toml --policy padme\n  \
    sizeleak audit --model model.toml --best --budget 20% --least-set 10 --table-c padding_table.c\n  \
    sizeleak audit --model model.toml --curve --csv -o curve.csv\n  \
    sizeleak audit --model model.toml --countermeasures --policy padme\n  \
    sizeleak audit --model model.toml --dummies 30% --replies one-size\n\n\
    Nothing is sampled: all commands that the inventory allows are summed over, with what the model has learned of their \
    sizes, of ε and of replies. The observer has the model and the prior and guesses as well as these allow. \
    docs/audit.md explains every figure.\n\n\
    JSON keys: schema, sentence, prior {name, decay, sentence}, actions (their names), devices (null without an inventory; \
    a list: name, count, actions), commands, sizes, most_actions, left_out (the probability of commands of more actions), \
    block_bytes (null unless sizes are seen in blocks), by_size, with_known_epsilon, with_reply_count, with_replies (null \
    if replies say nothing, or if their observer is in the list too_many) (each: is_exact (false: upper bounds), command, \
    number, kinds (null without an inventory)), repeated (a list: observations, named), in_the_end, by_number (a list: \
    actions, commands, probability, sizes, alone, named), collisions (a list: actions, bytes, commands (counts in the \
    order of `actions`)). Each of command, number and kinds: secrets, outputs, guessing, named, times_guessing, \
    above_guessing, min_entropy_bits, capacity, prior_bits, information_bits, remaining_bits, security, least_security, \
    tries (tries, guessing, named), worst_posterior, certain (posterior, probability), smallest_set, alone, sets (from, \
    to, probability).\n\n\
    With padding (docs/padding.md), JSON keys are: schema, sentence, prior, policy, commands_per_day, command_bytes, padded \
    {name, added_bytes, added_share, megabytes_a_day, by_size}, unpadded; of `--policy` also repeated (a list: \
    observations, named), named_with_known_key; of `--best` also goal, floor_named, \
    floor_added_share (null if they are not computed), floor_left_out (why not); of `--best --random` also table (like \
    padded), named_after_two, named_in_the_end, named_without_epsilon, named_with_known_key (each: table, random). Those of \
    `--curve`: schema, prior, guessing, command_bytes, commands_per_day, floor_left_out, points (a list: policy, \
    added_bytes, added_share, megabytes_a_day, named, times_guessing, information_bits, number_named, floor_named). Those of `--batch`, `--dummies`, `--delay` and `--replies`: schema, sentence, \
    prior, countermeasures (their names), commands_per_day, command_bytes, before, after (each: by_size, with_replies (null \
    if the model does not know what replies say), real_named (how often it is said rightly whether a command is real), cost \
    {added_bytes, added_share, added_reply_bytes, megabytes_a_day, added_messages_a_day, added_replies_a_day (these null \
    where the model does not know replies), mean_delay_seconds, most_delay_seconds (null: no limit)}); by_size and \
    with_replies: is_exact, command, number, kinds, each with guessing, named, times_guessing, information_bits, \
    worst_posterior, smallest_set. Those of `--countermeasures`: schema, prior, policy, commands_per_day, command_bytes, \
    countermeasures (a list: name, effect (as `after`; null if it cannot be computed), fault (why, else null)).")]
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
    #[arg(long, value_name = "SHARE", value_parser = decay, hide_short_help = true)]
    decay: Option<f64>,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    padding: PaddingOptions,

    #[command(flatten)]
    export: ExportOptions,

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
    let export = arguments.export.export;
    let format = match export {
        Some(_) => ReportFormat::Table,
        None => arguments.output.form(arguments.format.named(), "sizeleak audit")?.unwrap_or_default(),
    };
    arguments.check_files()?;
    let model = arguments.model()?;
    let premises = Premises { prior: arguments.prior.into(), decay: arguments.decay };
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
        let notes = if arguments.log.is_quiet() { Notes::Quiet } else { Notes::Said };
        let text = arguments.export.text(export, &exported, notes)?;
        arguments.output.write(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let prior = arguments.prior_in_words(&model);
    if arguments.padding.is_asked_for() {
        let report = arguments.padding.report(&model, &premises, &prior, format, &arguments.log)?;
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
    name: PriorKind,
    decay: Option<f64>,
    sentence: String,
}

impl<'a> Report<'a> {
    fn new(audit: &'a Audit, model: &'a Model, prior: String, arguments: &Arguments) -> Self {
        Self {
            schema: 1,
            sentence: audit.sentence(),
            prior: PriorReport { name: arguments.prior.into(), decay: arguments.decay, sentence: prior },
            actions: model.actions.iter().map(|action| action.name.as_str()).collect(),
            devices: model.inventory.as_ref().map(|inventory| inventory.devices.as_slice()),
            audit,
        }
    }
}

impl Arguments {
    fn check_files(&self) -> Result<(), Failure> {
        let mut files = RunFiles::new();
        files.reads("the model", &self.model);
        self.inventory.iter().for_each(|path| files.reads("the inventory", path));
        self.padding.add_to(&mut files);
        self.output.add_to(&mut files);
        Ok(files.check()?)
    }

    /// How probable commands are taken to be.
    fn prior_in_words(&self, model: &Model) -> String {
        let number = self.decay.map_or_else(
            || "the number of actions is as learned".to_owned(),
            |decay| format!("each number of actions is {decay} times as likely as one less"),
        );
        let labels = model.learned.commands;
        match self.prior {
            Prior::Learned if self.decay.is_none() => format!("learned from {labels} labelled commands"),
            Prior::Learned => {
                format!("how often each action occurs is learned from {labels} labelled commands; {number}")
            }
            Prior::Devices => format!("each device is as likely, and each of its actions; {number}"),
            Prior::Flat => "each command is as likely".to_owned(),
        }
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
        if model.kinds.is_some() && !model.actions.is_empty() && !self.log.is_quiet() {
            say("note", "commands that the model knows only as kinds are left out: the audit is about sums of actions");
        }
        let Some(path) = &self.inventory else { return Ok(model) };
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        let inventory = Inventory::from_toml(&text).with_context(name)?;
        let (model, gone) = with_inventory(model, inventory).with_context(name)?;
        if model.actions.is_empty() {
            let path = path.display();
            let fault = "no device has an action that the model has sizes of: name actions as the model does";
            return Err(Failure::usage(anyhow!("{path}: {fault}")));
        }
        let unknown = model.inventory.as_ref().map(|inventory| inventory.unlearned(&model.actions).join(", "));
        let notes = [
            ("no device of the inventory has these actions of the model, which are left out", gone.join(", ")),
            ("the model does not know these actions of the inventory, which are left out", unknown.unwrap_or_default()),
        ];
        for (note, actions) in notes.iter().filter(|(_, actions)| !actions.is_empty() && !self.log.is_quiet()) {
            say("note", &format!("{note}: {actions}"));
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
