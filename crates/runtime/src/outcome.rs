//! How a node's run ended, and who is told of it on the way.

use sizeleak_frame::{Notice, Summary};

/// How a node's run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All input was processed and the summary written.
    Done,
    /// The user stopped it; what was done until then was written, with the summary.
    Interrupted,
    /// Nobody took its output any more.
    Closed,
    /// Its input ended too early: what came was processed, no summary was written. The cause, as far as it is known.
    Cut(String),
    /// It failed, for this reason.
    Failed(String),
}

impl Outcome {
    /// The exit code of the contract; 130 is the convention for a program stopped by SIGINT.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done | Self::Closed => 0,
            Self::Failed(_) => 1,
            Self::Cut(_) => 3,
            Self::Interrupted => 130,
        }
    }
}

/// Is told what a node makes besides its frames.
pub trait Observer: Send {
    /// A notice of this node itself, not one it passes on.
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
