//! What two neighbours of a pipeline are linked by: a channel between threads, a pipe wherever a process is involved.

use std::io::{self, PipeReader, PipeWriter, Read, pipe};
use std::process::Stdio;

use sizeleak_runtime::{
    ChannelInput, ChannelOutput, Input, Interrupt, Output, StreamInput, StreamOutput, channel, widen_pipe,
};

use super::replay::SavedStream;

/// What a link has to reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Another thread.
    Thread,
    /// Another process.
    Process,
}

/// The end that frames are sent into.
pub(super) enum Sending {
    Channel(ChannelOutput),
    Pipe(PipeWriter),
}

/// The end that frames come out of.
pub(super) enum Receiving {
    Channel(ChannelInput),
    Pipe(PipeReader),
    /// No stage at all, but a stream that was saved; it ends when the user asks to stop.
    SavedStream(SavedStream, Interrupt),
}

/// A link that holds `depth` parcels, if it is a channel; a pipe holds what the system gives it.
pub(super) fn link(reach: Reach, depth: usize) -> io::Result<(Sending, Receiving)> {
    match reach {
        Reach::Thread => {
            let (output, input) = channel(depth);
            Ok((Sending::Channel(output), Receiving::Channel(input)))
        }
        Reach::Process => {
            let (reader, writer) = pipe()?;
            widen_pipe(&writer);
            Ok((Sending::Pipe(writer), Receiving::Pipe(reader)))
        }
    }
}

impl Sending {
    /// As a pipe, if it is one.
    pub(super) fn into_pipe(self) -> Option<PipeWriter> {
        match self {
            Self::Channel(_) => None,
            Self::Pipe(writer) => Some(writer),
        }
    }

    /// For a stage of this process.
    pub(super) fn into_output(self) -> Box<dyn Output + Send> {
        match self {
            Self::Channel(output) => Box::new(output),
            Self::Pipe(writer) => Box::new(StreamOutput::new(writer)),
        }
    }

    /// For the stdout of another process; a channel reaches none.
    pub(super) fn into_stdout(self) -> Stdio {
        match self {
            Self::Channel(_) => Stdio::null(),
            Self::Pipe(writer) => writer.into(),
        }
    }
}

impl Receiving {
    /// For a stage of this process.
    pub(super) fn into_input(self) -> Box<dyn Input + Send> {
        match self {
            Self::Channel(input) => Box::new(input),
            Self::Pipe(reader) => Box::new(StreamInput::new(reader)),
            Self::SavedStream(replay, interrupt) => Box::new(StreamInput::new(replay.into_input()).until(interrupt)),
        }
    }

    /// As bytes; a channel carries none.
    pub(super) fn into_bytes(self) -> Box<dyn Read + Send> {
        match self {
            Self::Channel(_) => Box::new(io::empty()),
            Self::Pipe(reader) => Box::new(reader),
            Self::SavedStream(replay, _) => replay.into_input(),
        }
    }

    /// For the stdin of another process; a channel reaches none, and a saved stream goes through a relay.
    pub(super) fn into_stdin(self) -> Stdio {
        match self {
            Self::Channel(_) | Self::SavedStream(..) => Stdio::null(),
            Self::Pipe(reader) => reader.into(),
        }
    }
}
