//! Commands that an observer of sizes cannot tell apart, and expects equally.

/// Commands of one size that are equally probable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandGroup {
    /// Their size in bytes.
    pub bytes: u64,
    /// How many there are; as a floating-point number, since it may exceed any integer type.
    pub commands: f64,
    /// The prior probability of each of them.
    pub probability: f64,
}
