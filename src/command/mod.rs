//! The command line of `sizeleak`: one module a subcommand.

mod cache;
mod check_stage;
mod compare;
mod documentation;
mod evaluate;
mod failure;
mod frames;
mod gateway_seen;
mod init;
mod labelled;
mod learn;
mod observation;
mod plot;
mod progress;
mod reuse;
mod run;
mod schema;
mod simulate;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use sizeleak_runtime::program::EXIT_CODES;
use sizeleak_telemetry::log::{LogFlags, complain};

pub use failure::Failure;

/// Shows what the sizes of encrypted messages give away about the people behind an IoT gateway
#[derive(Debug, Parser)]
#[command(
    name = "sizeleak",
    version,
    after_help = format!(
        "Examples:\n  sizeleak run pipeline.toml\n  sizeleak init my-home\n\nFor auditing one's own gateways, and for \
         research with consent.\n{EXIT_CODES}"
    )
)]
pub struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Run(run::Arguments),
    Learn(learn::Arguments),
    Evaluate(evaluate::Arguments),
    Compare(compare::Arguments),
    Frames(frames::Arguments),
    Plot(plot::Arguments),
    Cache(cache::Arguments),
    Simulate(simulate::Arguments),
    CheckStage(check_stage::Arguments),
    Init(init::Arguments),
    Schema(schema::Arguments),
    Completions(documentation::Completions),
    Man(documentation::Man),
}

impl Subcommands {
    /// How much is said on stderr.
    fn log(&self) -> &LogFlags {
        const USUAL: &LogFlags = &LogFlags::DEFAULT;
        match self {
            Self::Run(arguments) => &arguments.log,
            Self::Learn(arguments) => &arguments.observation.log,
            Self::Evaluate(arguments) => &arguments.subject.observation.log,
            Self::Compare(arguments) => &arguments.subject.observation.log,
            _ => USUAL,
        }
    }
}

/// The command line of the program. What its exit codes mean stands below every subcommand's help.
fn command() -> Command {
    Cli::command().mut_subcommands(|subcommand| {
        let examples = subcommand.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
        // One that says what its own mean has said it.
        let codes = if examples.contains("Exit code") { "" } else { EXIT_CODES };
        subcommand.after_help(format!("{examples}{codes}").trim_end().to_owned())
    })
}

/// Runs the program to its end.
pub fn main() -> ExitCode {
    let parsed = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    let screen = parsed.command.log().install("sizeleak");
    let result = match parsed.command {
        Subcommands::Run(arguments) => run::run(&arguments, &screen),
        Subcommands::Learn(arguments) => learn::run(&arguments),
        Subcommands::Evaluate(arguments) => evaluate::run(&arguments),
        Subcommands::Compare(arguments) => compare::run(&arguments),
        Subcommands::Frames(arguments) => frames::run(&arguments),
        Subcommands::Plot(arguments) => plot::run(&arguments),
        Subcommands::Cache(arguments) => cache::run(&arguments),
        Subcommands::Simulate(arguments) => simulate::run(&arguments),
        Subcommands::CheckStage(arguments) => check_stage::run(&arguments),
        Subcommands::Init(arguments) => init::run(&arguments),
        Subcommands::Schema(arguments) => schema::run(&arguments),
        Subcommands::Completions(arguments) => documentation::completions(&arguments),
        Subcommands::Man(arguments) => documentation::man(&arguments),
    };
    result.unwrap_or_else(|failure| {
        complain("sizeleak", &failure.to_string());
        ExitCode::from(failure.exit_code())
    })
}

/// Standard output as a file: the standard library would buffer it by lines.
fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Writes a whole result to a file, or to standard output, which may be closed before its end.
fn write(file: Option<&Path>, result: &[u8]) -> anyhow::Result<()> {
    let (written, name) = match file {
        Some(path) => (File::create(path).and_then(|mut file| file.write_all(result)), path.display().to_string()),
        None => (stdout().and_then(|mut stdout| stdout.write_all(result)), "the output".to_owned()),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(anyhow!("{name} cannot be written: {error}")),
        _ => Ok(()),
    }
}
