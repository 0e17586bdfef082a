//! The `sizeleak` program: runs pipelines, learns and evaluates models, simulates gateways, shows frames.

mod command;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::main()
}
