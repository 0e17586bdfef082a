//! The command line of `sizeleak`: a module for each subcommand, and the options they share.

mod adapt;
mod archive;
mod audit;
#[cfg(feature = "simulator")]
mod check_stage;
mod detect;
mod docs;
mod document;
mod evaluate;
mod failure;
mod frames;
mod init;
mod labels;
mod learn;
mod measure;
mod output_option;
mod pad;
mod plot;
mod profile;
mod progress;
mod record;
mod report;
mod run;
mod session;
mod shared_options;
#[cfg(feature = "simulator")]
mod simulate;
mod start_point;
mod strip;
mod survey;
mod traffic_input;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::runtime::program::EXIT_CODES;
use sizeleak_platform::telemetry::log::{LogFlags, complain, exit_with_usage};

use session::{Content, Operand, Session};

/// Shows what sizes of encrypted messages give away about people behind a gateway
#[derive(Debug, Parser)]
#[command(
    name = "sizeleak",
    version,
    after_help = "Exit code: 0 done, 1 bad input, 2 usage, 3 input cut short, 4 payload lost (`run`), 130 SIGINT.",
    after_long_help = format!(
        "Example:\n  sizeleak run pipeline.toml  # for your own gateways, and research with consent\n\nThe flags for messages go with every command.\n\n{EXIT_CODES}\n`run` ends with 4 if more of the payload than `--max-loss` was not used."
    )
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Subcommands,

    #[command(flatten)]
    log: LogFlags,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Survey(survey::Arguments),
    Run(run::Arguments),
    Archive(archive::Arguments),
    Labels(labels::Arguments),
    Record(record::Arguments),
    Learn(learn::Arguments),
    Adapt(adapt::Arguments),
    Evaluate(evaluate::Arguments),
    Profile(profile::Arguments),
    Detect(detect::Arguments),
    Audit(audit::Arguments),
    Measure(measure::Arguments),
    Pad(pad::Arguments),
    Frames(frames::Arguments),
    Plot(plot::Arguments),
    Report(report::Arguments),
    Strip(strip::Arguments),
    #[cfg(feature = "simulator")]
    Simulate(simulate::Arguments),
    #[cfg(feature = "simulator")]
    CheckStage(check_stage::Arguments),
    Init(init::Arguments),
    Docs(docs::Arguments),
}

impl Subcommands {
    fn run(self, session: &mut Session) -> Result<()> {
        match self {
            Self::Survey(arguments) => survey::run(&arguments, session),
            Self::Run(arguments) => run::run(arguments, session),
            Self::Archive(arguments) => archive::run(&arguments, session),
            Self::Labels(arguments) => labels::run(&arguments),
            Self::Record(arguments) => record::run(&arguments, session),
            Self::Learn(arguments) => learn::run(&arguments, session),
            Self::Adapt(arguments) => adapt::run(&arguments, session),
            Self::Evaluate(arguments) => evaluate::run(&arguments, session),
            Self::Profile(arguments) => profile::run(&arguments),
            Self::Detect(arguments) => detect::run(&arguments),
            Self::Audit(arguments) => audit::run(&arguments, session),
            Self::Measure(arguments) => measure::run(&arguments, session),
            Self::Pad(arguments) => pad::run(&arguments),
            Self::Frames(arguments) => frames::run(&arguments),
            Self::Plot(arguments) => plot::run(&arguments),
            Self::Report(arguments) => report::run(arguments, session),
            Self::Strip(arguments) => strip::run(&arguments),
            #[cfg(feature = "simulator")]
            Self::Simulate(arguments) => simulate::run(&arguments, session),
            #[cfg(feature = "simulator")]
            Self::CheckStage(arguments) => check_stage::run(&arguments),
            Self::Init(arguments) => init::run(&arguments),
            Self::Docs(arguments) => docs::run(&arguments, command()),
        }
    }
}

/// Whether the program takes a file for a saved frame stream, by its content.
pub fn is_saved_stream(file: &Path) -> bool {
    Operand::of(file.to_owned()).content == Content::Stream
}

/// Sets the gateway of a pipeline that has none, as the program does: that of its models, or else the only one that a survey
/// of its captures finds. Returns which, in words.
///
/// # Errors
/// A sentence and the exit code, if no gateway or several are found.
pub fn find_gateway(pipeline: &mut Pipeline, interrupt: &Interrupt) -> Result<Option<String>, (String, u8)> {
    traffic_input::find_gateway(pipeline, interrupt)
        .map_err(|error| (failure::sentence(&error), failure::exit_code(&error)))
}

fn command() -> Command {
    let command = Cli::command();
    let of_all: Vec<Arg> = command.get_arguments().filter(|flag| flag.is_global_set()).cloned().collect();
    command.mut_subcommands(|subcommand| shared_options::help_of(subcommand, &of_all))
}

/// Runs the program to its end; the first argument is its name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let matches = command().try_get_matches_from(arguments).unwrap_or_else(|error| exit_with_usage("sizeleak", error));
    let parsed = Cli::from_arg_matches(&matches).unwrap_or_else(|error| exit_with_usage("sizeleak", error));
    let screen = parsed.log.install("sizeleak");
    let (name, options) = matches.subcommand().unwrap_or(("", &matches));
    let result = Session::of(name, options, screen).and_then(|mut session| parsed.command.run(&mut session));
    let Err(error) = result else { return ExitCode::SUCCESS };
    let sentence = failure::sentence(&error);
    if !sentence.is_empty() {
        complain("sizeleak", &sentence);
    }
    ExitCode::from(failure::exit_code(&error))
}
