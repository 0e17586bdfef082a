//! The help of every command: headings, a short text for `-h` that fits a screen, and everything for `--help`.

use clap::{Arg, Command};

pub(super) use sizeleak_platform::telemetry::headings::MEASURING;

/// What is read.
pub(super) const INPUT: &str = "Input";

/// How answers are found.
pub(super) const STAGES: &str = "Stages";

/// What is written.
pub(super) const OUTPUT: &str = "Output";

/// Padding, and what else hides commands.
pub(super) const PADDING: &str = "Padding";

/// How precision grows.
pub(super) const CURVE: &str = "Learning curve";

/// Differences between pipelines.
pub(super) const COMPARISON: &str = "Options with several pipelines";

/// Models of parts of the labels.
pub(super) const FOLDS: &str = "Options with --folds";

/// The help of a subcommand without the flags of all commands, which that of the program has.
pub(super) fn without_flags_of_all(subcommand: Command, of_all: &[Arg]) -> Command {
    subcommand.args(of_all.iter().cloned().map(|flag| flag.hide(true)))
}
