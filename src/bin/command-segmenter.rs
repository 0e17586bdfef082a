//! The `command-segmenter` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    sizeleak_platform::runtime::program::main::<sizeleak_command_segmenter::Options>()
}
