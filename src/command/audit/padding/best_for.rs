//! What a padding policy is the best for.

use serde::Serialize;
use sizeleak_audit::padding::Goal;

/// What a policy is the best for.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BestFor {
    /// At most so many expected bytes are added to a command.
    AddedBytes(f64),
    /// The command is named at most so often.
    Named(f64),
}

impl From<BestFor> for Goal {
    fn from(best: BestFor) -> Self {
        match best {
            BestFor::AddedBytes(bytes) => Self::Budget(bytes),
            BestFor::Named(named) => Self::Target(named),
        }
    }
}
