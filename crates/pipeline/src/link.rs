//! The link between two neighbouring stages: a channel between threads, a pipe wherever a process is involved.

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::process::Stdio;

use sizeleak_platform::runtime::{
    ChannelInput, ChannelOutput, Input, Interrupt, Output, StreamInput, StreamOutput, channel, widen_pipe,
};

use crate::SavedStream;
use crate::held_pipe::{HeldPipe, ProgramEnd};

/// What frames travel through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkKind {
    /// A channel, between two threads of this process.
    Channel,
    /// A pipe, to or from another process.
    Pipe,
}

/// The sending end.
pub(crate) enum LinkSender {
    Channel(ChannelOutput),
    Pipe(PipeWriter),
    /// To an external program.
    Program(HeldPipe<PipeWriter>),
}

/// The receiving end.
pub(crate) enum LinkReceiver {
    Channel(ChannelInput),
    Pipe(PipeReader),
    /// From an external program.
    Program(HeldPipe<PipeReader>),
    /// A saved stream in place of stages; it ends early when the run is interrupted.
    Saved(SavedStream, Interrupt),
}

/// A link; a channel holds at most `depth` parcels, a pipe as much as the system allows. `ends` are the external programs
/// before and after it.
pub(crate) fn link(
    kind: LinkKind,
    depth: usize,
    ends: [Option<&ProgramEnd>; 2],
) -> io::Result<(LinkSender, LinkReceiver)> {
    match kind {
        LinkKind::Channel => {
            let (output, input) = channel(depth);
            Ok((LinkSender::Channel(output), LinkReceiver::Channel(input)))
        }
        LinkKind::Pipe => {
            let (reader, writer) = pipe()?;
            widen_pipe(&writer);
            let [before, after] = ends.map(Option::<&ProgramEnd>::cloned);
            let sender = match after {
                Some(program) => LinkSender::Program(HeldPipe::writer(writer, program)?),
                None => LinkSender::Pipe(writer),
            };
            let receiver = match before {
                Some(program) => LinkReceiver::Program(HeldPipe::reader(reader, program)),
                None => LinkReceiver::Pipe(reader),
            };
            Ok((sender, receiver))
        }
    }
}

impl LinkSender {
    /// For a stage of this process.
    pub(crate) fn into_output(self) -> Box<dyn Output + Send> {
        match self {
            Self::Channel(output) => Box::new(output),
            Self::Pipe(writer) => Box::new(StreamOutput::new(writer)),
            Self::Program(writer) => Box::new(StreamOutput::new(writer)),
        }
    }

    /// The pipe, if it is one.
    pub(crate) fn into_pipe(self) -> Option<Box<dyn Write + Send>> {
        match self {
            Self::Channel(_) => None,
            Self::Pipe(writer) => Some(Box::new(writer)),
            Self::Program(writer) => Some(Box::new(writer)),
        }
    }

    /// For the stdout of another process: neither a channel nor, without a forwarder between them, an external program
    /// comes after one.
    pub(crate) fn into_stdout(self) -> Stdio {
        match self {
            Self::Channel(_) | Self::Program(_) => Stdio::null(),
            Self::Pipe(writer) => writer.into(),
        }
    }
}

impl LinkReceiver {
    /// For a stage of this process.
    pub(crate) fn into_input(self) -> Box<dyn Input + Send> {
        match self {
            Self::Channel(input) => Box::new(input),
            Self::Pipe(reader) => Box::new(StreamInput::new(reader)),
            Self::Program(reader) => Box::new(StreamInput::new(reader)),
            Self::Saved(stream, interrupt) => Box::new(StreamInput::new(stream.into_input()).until(interrupt)),
        }
    }

    /// As bytes, which a channel does not carry.
    pub(crate) fn into_bytes(self) -> Box<dyn Read + Send> {
        match self {
            Self::Channel(_) => Box::new(io::empty()),
            Self::Pipe(reader) => Box::new(reader),
            Self::Program(reader) => Box::new(reader),
            Self::Saved(stream, _) => stream.into_input(),
        }
    }

    /// For the stdin of another process; a saved stream and an external program's output get there through a forwarder.
    pub(crate) fn into_stdin(self) -> Stdio {
        match self {
            Self::Channel(_) | Self::Program(_) | Self::Saved(..) => Stdio::null(),
            Self::Pipe(reader) => reader.into(),
        }
    }
}
