//! The command line of `sizeleak`: one module a subcommand.

mod failure;
mod simulate;

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
    Simulate(simulate::Arguments),
}

/// Runs the program to its end.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Subcommands::Simulate(arguments) => simulate::run(&arguments),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("sizeleak: {failure}");
        ExitCode::from(failure.exit_code())
    })
}
