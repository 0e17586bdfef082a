//! Where stages run: on a thread, in a process, or replaced by a forwarder of bytes. And what frames travel through from
//! one to the next: a channel between threads, bytes wherever a process or a forwarder is involved.

use std::io::{self, Read};

use sizeleak_platform::runtime::{ChannelInput, Input, Interrupt, Runnable, StreamInput};

use crate::forwarder::ByteForwarder;
use crate::process::{ProgramOrigin, StageProgram};
use crate::save::OutputRecorder;
use crate::{SavedStream, registry};

pub(crate) enum Placement {
    Thread(StageThread),
    Process(StageProgram),
    /// A thread that forwards and records bytes that come from or go to a process.
    Forwarder(ByteForwarder),
}

pub(crate) struct StageThread {
    pub(crate) first: Box<dyn Runnable>,
    pub(crate) fused: Vec<Box<dyn Runnable>>,
    pub(crate) recorder: Option<OutputRecorder>,
}

impl StageThread {
    pub(crate) fn new(stage: Box<dyn Runnable>) -> Self {
        Self { first: stage, fused: Vec::new(), recorder: None }
    }

    pub(crate) fn makes_batches(&self) -> bool {
        let last = self.fused.last().unwrap_or(&self.first);
        registry::find(last.name()).is_some_and(|entry| matches!(entry.makes, "packets" | "segments"))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        std::iter::once(&self.first).chain(&self.fused).map(|stage| stage.name().to_owned()).collect()
    }
}

impl Placement {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Thread(thread) => thread.first.name(),
            Self::Process(program) => &program.name,
            Self::Forwarder(forwarder) => &forwarder.stage,
        }
    }

    pub(crate) fn stage_count(&self) -> usize {
        match self {
            Self::Thread(thread) => 1 + thread.fused.len(),
            Self::Process(_) | Self::Forwarder(_) => 1,
        }
    }

    pub(crate) fn origin(&self) -> ProgramOrigin {
        match self {
            Self::Thread(_) | Self::Forwarder(_) => ProgramOrigin::BuiltIn,
            Self::Process(program) => program.origin,
        }
    }
}

pub(crate) enum LinkReceiver {
    Channel(ChannelInput),
    Bytes(Box<dyn Read + Send>),
    /// A saved stream in place of stages; it ends early when the run is interrupted.
    Saved(SavedStream, Interrupt),
}

impl LinkReceiver {
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
