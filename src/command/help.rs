//! The help of every command: headings, a short text for `-h` that fits a screen, and everything for `--help`.

use clap::Command;
use sizeleak_platform::runtime::program::EXIT_CODES;

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

/// Adds the exit codes to the long help of a subcommand, unless it explains its own.
pub(super) fn with_exit_codes(subcommand: Command) -> Command {
    let long = subcommand.get_after_long_help().or(subcommand.get_after_help());
    let examples = long.map(|text| format!("{text}\n\n")).unwrap_or_default();
    let codes = if examples.contains("Exit code") { "" } else { EXIT_CODES };
    subcommand.after_long_help(format!("{examples}{codes}").trim_end().to_owned())
}
