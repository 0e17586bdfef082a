//! Headings of flags in the help of all programs.

/// Flags for messages on stderr.
pub const MESSAGES: &str = "Messages";

/// Flags that measure a run or limit it.
pub const MEASURING: &str = "Measuring and limits";
