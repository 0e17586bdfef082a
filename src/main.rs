//! The `sizeleak` program: runs pipelines, learns and evaluates models, simulates gateways, shows frames.

use std::process::ExitCode;

fn main() -> ExitCode {
    sizeleak::command::main(std::env::args_os())
}
