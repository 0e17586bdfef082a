//! The order in which several captures are read.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How several captures follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureOrder {
    /// By the times of their packets: where captures overlap, they are merged
    #[default]
    Time,
    /// As they are named, and those of a folder by their paths, one after the other. Times that go back are moved to
    /// follow: for captures whose times were lost or rewritten, such as one file an event that begins at zero
    Given,
}
