//! The command line of `sizeleak`: one module a subcommand.

mod check_stage;
mod documentation;
mod evaluate;
mod failure;
mod frames;
mod labelled;
mod learn;
mod observation;
mod run;
mod simulate;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use failure::Failure;

/// Shows what the sizes of encrypted messages give away about the people behind an IoT gateway
#[derive(Debug, Parser)]
#[command(
    name = "sizeleak",
    version,
    after_help = "For auditing one's own gateways, and for research with consent.\nExit code: 0 done, 1 bad input or \
                  I/O, 2 usage, 3 the input was cut short, 130 stopped by SIGINT."
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
    Frames(frames::Arguments),
    Simulate(simulate::Arguments),
    CheckStage(check_stage::Arguments),
    Completions(documentation::Completions),
    Man(documentation::Man),
}

/// Runs the program to its end.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Subcommands::Run(arguments) => run::run(&arguments),
        Subcommands::Learn(arguments) => learn::run(&arguments),
        Subcommands::Evaluate(arguments) => evaluate::run(&arguments),
        Subcommands::Frames(arguments) => frames::run(&arguments),
        Subcommands::Simulate(arguments) => simulate::run(&arguments),
        Subcommands::CheckStage(arguments) => check_stage::run(&arguments),
        Subcommands::Completions(arguments) => documentation::completions(&arguments),
        Subcommands::Man(arguments) => documentation::man(&arguments),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("sizeleak: {failure}");
        ExitCode::from(failure.exit_code())
    })
}

/// Standard output as a file: the standard library would buffer it by lines.
fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}
