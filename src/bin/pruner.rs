//! The `pruner` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sizeleak_stage::program::main::<sizeleak_pruner::Options>()
}
