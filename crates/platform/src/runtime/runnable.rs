//! A stage or source of any type, ready to run: how it is configured, how it ends, and who observes it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sizeleak_frame::Frame;
use thiserror::Error;

use crate::runtime::{FailureSlot, Input, Interrupt, Output, StateError, StateSlot};
use crate::sandbox::Access;
use crate::telemetry::Meter;

pub trait Runnable: Send {
    fn name(&self) -> &str;

    fn set_meter(&mut self, meter: Meter) {
        let _ = meter;
    }

    /// Makes it continue from the state that an earlier run left.
    ///
    /// # Errors
    /// [`StateError`] if it cannot; it must not run then.
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let _ = state;
        Err(StateError::Unsupported)
    }

    /// Makes it leave its state in `slot` at the end of its input, instead of finishing what is pending.
    fn leave_state(&mut self, slot: StateSlot) -> Result<(), StateError> {
        let _ = slot;
        Err(StateError::Unsupported)
    }

    /// Makes a source that cannot read everything leave the reason in `slot` and end well behind what it could read. A
    /// stage fails as before.
    fn accept_failure(&mut self, slot: FailureSlot) {
        let _ = slot;
    }

    /// Runs it to its end. A source reads no `input`.
    fn run<'a>(
        self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &'a mut dyn Output,
        interrupt: &Interrupt,
        observer: Observer<'a>,
    ) -> Outcome;

    /// Turns it into an output that processes frames on the thread of the stage before; `None` for a source.
    fn fuse<'a>(self: Box<Self>, output: &'a mut dyn Output) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a;
}

/// A stage that runs inside the stage before it. It processes batches at once, and single frames together, as many as a
/// channel would carry, or fewer if the stage before waits for input: clocks are then read once for all of them.
pub trait FusedStage: Output {
    fn end(self: Box<Self>) -> Outcome;
}

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

/// Sees the notices of a node, not those it passes on, and the summary it writes, its own row included.
pub type Observer<'a> = Option<&'a mut (dyn FnMut(&Frame) + Send)>;

/// The options of a stage, from the command line or from `pipeline.toml`, with one set of defaults.
pub trait StageOptions: clap::Args + Serialize + DeserializeOwned + Default {
    const NAME: &'static str;

    /// What it does, in one sentence for the help text.
    const ABOUT: &'static str;

    /// Example command lines for the help text.
    const EXAMPLES: &'static [&'static str];

    /// The names of the options that hold paths.
    const PATHS: &'static [&'static str] = &[];

    /// What the stage opens while it runs: by default nothing, since its files are read when it is built.
    fn access(&self) -> Access {
        Access::default()
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError>;
}

#[derive(Debug, Error)]
pub enum ConfigureError {
    /// An option is missing or invalid: a usage error, exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A file that an option names cannot be used: exit code 1.
    #[error("{0}")]
    Input(String),
}

impl ConfigureError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Input(_) => 1,
        }
    }
}
