//! The `flow-filter` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sizeleak_stage::program::main::<sizeleak_flow_filter::Options>()
}
