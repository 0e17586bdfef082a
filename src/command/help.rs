//! The help of every command: headings, a short text for `-h` that fits a screen, and everything for `--help`.

use clap::Command;
use sizeleak_runtime::program::EXIT_CODES;

/// What is read.
pub(super) const INPUT: &str = "Input";

/// How answers are found.
pub(super) const STAGES: &str = "Stages";

/// What was commanded.
pub(super) const LABELS: &str = "Labels";

/// What is written.
pub(super) const OUTPUT: &str = "Output";

/// What a run costs and loses.
pub(super) const MEASURING: &str = "Measuring and limits";

/// Output of earlier runs.
pub(super) const CACHE: &str = "Cache";
