//! `sizeleak audit`: what the sizes of a gateway's commands give away, computed over all commands of an inventory, or
//! measured on labelled captures.

mod export;
mod measured;
mod padding;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::{ArgGroup, Args, ValueEnum};
use serde::Serialize;
use sizeleak_leakage::{Audit, CommandSpace, LeakageError, Premises, PriorKind, with_inventory};
use sizeleak_model::{Device, Inventory, Model, ModelSet};
use sizeleak_storage::RunFiles;
use sizeleak_telemetry::log::say;
use sizeleak_text::escaped_lines;

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
#[command(after_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --best --budget 20% --table-json table.json\n  \
    sizeleak audit test.pcap --labels test.csv --gateway 192.168.1.20")]
#[command(after_long_help = "Examples:\n  \
    sizeleak audit --model model.toml\n  \
    sizeleak audit --model model.toml --inventory larger-home.toml --prior devices --decay 0.75\n  \
    sizeleak audit --model model.toml --export csv --secret number -o joint.csv\n  \
    sizeleak audit --model model.toml --export maybenot --policy padme -o trace.log\n  \
    sizeleak audit --model model.toml --policy padme\n  \
    sizeleak audit --model model.toml --best --budget 20% --least-set 10 --table-c padding_table.c\n  \
    sizeleak audit --model model.toml --curve --csv -o curve.csv\n  \
    sizeleak audit --model model.toml --countermeasures --policy padme\n  \
    sizeleak audit --model model.toml --dummies 30% --replies one-size\n  \
    sizeleak audit test.pcap --labels test.csv --gateway 192.168.1.20 --model model.toml\n\n\
    Without captures nothing is sampled: all commands that the inventory allows are summed over, with what the model has learned of their \
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
    With `--labels`, it is measured how often an observer of labelled captures is right who learned from the \
    commands before; no model is needed. With `--model` it is also measured how often the observer of the audit is right there, \
    beside what the model says. JSON keys are then: schema, sentence, model_sentence (null without figures of a model), \
    remarks (sentences on what cannot be concluded), actions, labels {matched, missed, ambiguous, spurious}, by_size, \
    with_reply_count, with_reply_bytes (each: command, number, kinds (null if they are not known)), order (as \
    independence, of the labels and their order), model (null without one: learned_from (those of the captures that the \
    model was learned from), commands, unknown_commands, other_ciphers, unknown_sizes, figures (null with a fault: command, number (each: \
    named, expected, agrees, over_all_commands)), fault), seed. Each of command, number and kinds: commands, secrets, \
    secrets_once, outputs, guessing, frequentist, named, from_others (each: share, interval {low, high}), vulnerability {low, high}, \
    upper_bounds {learned_by_heart, nearest_neighbour}, times_guessing {ratio, interval (high is null without bound)}, \
    independence {permutations, as_great, p_value}, information {bits, interval (null if `covered` is below 0.95), \
    covered}, fewest_commands (null if no number is enough).\n\n\
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
    #[command(flatten)]
    pub(super) captures: LabelledCaptures,

    /// The model of the gateway, made by `sizeleak learn`
    #[arg(long, value_name = "FILE", required_unless_present = "labelled")]
    model: Option<PathBuf>,

    /// Which section of a model of several services, from 1
    #[arg(long, value_name = "NUMBER", requires = "model", hide_short_help = true)]
    section: Option<usize>,

    /// The devices, if they are others than those of the model
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How probable commands are before their size is seen
    #[arg(long, value_enum, default_value_t, requires = "model")]
    prior: Prior,

    /// How likely n + 1 actions are, compared with n [default: as learned]
    #[arg(long, value_name = "SHARE", value_parser = decay, requires = "model", hide_short_help = true)]
    decay: Option<f64>,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    padding: PaddingOptions,

    #[command(flatten)]
    export: ExportOptions,

    #[command(flatten)]
    output: OutputOption,
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
    if arguments.captures.are_labelled() {
        return arguments.measure(format);
    }
    let mut files = RunFiles::new();
    arguments.check_files(&mut files)?;
    let model = arguments.model()?;
    let premises = arguments.premises();
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
        let model = match &self.model {
            Some(path) => Some(TestedModel { path, model: self.model()?, premises: self.premises() }),
            None => None,
        };
        let inventory = match &model {
            Some(tested) => tested.model.inventory.clone(),
            None => self.inventory()?,
        };
        let (captures, seed) = (&self.captures, self.export.seed);
        let measured = MeasuredRequest { captures, pipeline, model, inventory, seed }.written(output)?;
        self.output.write(&measured.text)?;
        measured.check_damage()?;
        Ok(ExitCode::SUCCESS)
    }

    fn premises(&self) -> Premises {
        Premises { prior: self.prior.into(), decay: self.decay }
    }

    fn check_files(&self, files: &mut RunFiles) -> Result<(), Failure> {
        self.model.iter().for_each(|path| files.reads("the model", path));
        self.inventory.iter().for_each(|path| files.reads("the inventory", path));
        self.padding.add_to(files);
        self.output.add_to(files);
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

    /// The inventory that is named.
    fn inventory(&self) -> Result<Option<Inventory>, Failure> {
        let Some(path) = &self.inventory else { return Ok(None) };
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).with_context(name)?;
        Ok(Some(Inventory::from_toml(&text).with_context(name)?))
    }

    /// The model's section, with the inventory that is named.
    fn model(&self) -> Result<Model, Failure> {
        let sections = ModelSet::read(self.model.as_slice())?.into_sections();
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
        if model.kinds.is_some() && !model.actions.is_empty() && !self.captures.log.is_quiet() {
            say("note", "commands that the model knows only as kinds are left out: the audit is about sums of actions");
        }
        let (Some(path), Some(inventory)) = (&self.inventory, self.inventory()?) else { return Ok(model) };
        let name = || path.display().to_string();
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
        for (note, actions) in notes.iter().filter(|(_, actions)| !actions.is_empty() && !self.captures.log.is_quiet())
        {
            say("note", &format!("{note}: {actions}"));
        }
        Ok(model)
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

impl From<LeakageError> for Failure {
    fn from(error: LeakageError) -> Self {
        match error {
            LeakageError::NoPrior | LeakageError::NoInventory(_) | LeakageError::NoNumbers => Self::usage(error),
            error => Self::from(anyhow::Error::from(error)),
        }
    }
}
