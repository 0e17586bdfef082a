//! How a node ended, and the observer of its notices and summary.

use sizeleak_frame::{Notice, Summary};

/// How a node ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All input was processed and the summary written.
    Done,
    /// The user interrupted it; everything until then was written, with the summary.
    Interrupted,
    /// The receiver of its output is gone.
    Closed,
    /// Its input ended early, for this reason: the frames that arrived were processed, no summary was written.
    Cut(String),
    /// It failed, for this reason.
    Failed(String),
}

impl Outcome {
    /// Why it ended, if it was cut or failed.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Cut(cause) | Self::Failed(cause) => Some(cause),
            Self::Done | Self::Interrupted | Self::Closed => None,
        }
    }

    /// The exit code of the contract; 130 is the convention after SIGINT.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done | Self::Closed => 0,
            Self::Failed(_) => 1,
            Self::Cut(_) => 3,
            Self::Interrupted => 130,
        }
    }
}

/// Sees the notices and the summary of a node.
pub trait Observer: Send {
    /// A notice of this node, not one it passes on.
    fn notice(&mut self, notice: &Notice);

    /// The summary the node writes, its own row included.
    fn summary(&mut self, summary: &Summary);
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn notice(&mut self, _: &Notice) {}

    fn summary(&mut self, _: &Summary) {}
}
