//! Where stages run: on a thread, in a process, or replaced by a forwarder of bytes. And what frames travel through from
//! one to the next: a channel between threads, bytes wherever a process or a forwarder is involved.

use std::io::{self, Read};

use sizeleak_platform::runtime::{ChannelInput, Input, Interrupt, Runnable, StreamInput};

use crate::forwarder::ByteForwarder;
use crate::process::{ProgramOrigin, StageProgram};
use crate::save::OutputRecorder;
use crate::{SavedStream, registry};

/// What runs together.
pub(crate) enum Placement {
    /// Stages on one thread.
    Thread(StageThread),
    /// A stage in its own process.
    Process(StageProgram),
    /// A thread that forwards and records bytes that come from or go to a process.
    Forwarder(ByteForwarder),
}

/// Stages that share a thread.
pub(crate) struct StageThread {
    pub(crate) first: Box<dyn Runnable>,
    /// The stages fused to the one before them.
    pub(crate) fused: Vec<Box<dyn Runnable>>,
    /// The recorder of the last stage's output.
    pub(crate) recorder: Option<OutputRecorder>,
}

impl StageThread {
    /// A thread for one stage.
    pub(crate) fn new(stage: Box<dyn Runnable>) -> Self {
        Self { first: stage, fused: Vec::new(), recorder: None }
    }

    /// Whether its output is batches of packets or segments.
    pub(crate) fn makes_batches(&self) -> bool {
        let last = self.fused.last().unwrap_or(&self.first);
        registry::find(last.name()).is_some_and(|entry| matches!(entry.makes, "packets" | "segments"))
    }

    /// The names of its stages in order.
    pub(crate) fn names(&self) -> Vec<String> {
        std::iter::once(&self.first).chain(&self.fused).map(|stage| stage.name().to_owned()).collect()
    }
}

impl Placement {
    /// The name of its first stage.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Thread(thread) => thread.first.name(),
            Self::Process(program) => &program.name,
            Self::Forwarder(forwarder) => &forwarder.stage,
        }
    }

    /// How many stages it holds.
    pub(crate) fn stage_count(&self) -> usize {
        match self {
            Self::Thread(thread) => 1 + thread.fused.len(),
            Self::Process(_) | Self::Forwarder(_) => 1,
        }
    }

    /// Whose code it runs.
    pub(crate) fn origin(&self) -> ProgramOrigin {
        match self {
            Self::Thread(_) | Self::Forwarder(_) => ProgramOrigin::BuiltIn,
            Self::Process(program) => program.origin,
        }
    }
}

/// The receiving end of a link.
pub(crate) enum LinkReceiver {
    Channel(ChannelInput),
    Bytes(Box<dyn Read + Send>),
    /// A saved stream in place of stages; it ends early when the run is interrupted.
    Saved(SavedStream, Interrupt),
}

impl LinkReceiver {
    /// For a stage of this process.
    pub(crate) fn into_input(self) -> Box<dyn Input + Send> {
        match self {
            Self::Channel(input) => Box::new(input),
            Self::Bytes(bytes) => Box::new(StreamInput::new(bytes)),
            Self::Saved(stream, interrupt) => Box::new(StreamInput::new(stream.into_input()).until(interrupt)),
        }
    }

    /// As bytes, which a channel does not carry: no forwarder comes after a thread.
    pub(crate) fn into_bytes(self) -> Box<dyn Read + Send> {
        match self {
            Self::Channel(_) => Box::new(io::empty()),
            Self::Bytes(bytes) => bytes,
            Self::Saved(stream, _) => stream.into_input(),
        }
    }
}
