//! The `flow-filter` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sizeleak_runtime::program::main::<sizeleak_flow_filter::Options>()
}
