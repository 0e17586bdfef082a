//! Where stages run: on a thread, in a process, or replaced by a forwarder of bytes. And what frames travel through
//! from one to the next: a channel between threads, bytes wherever a process or a forwarder is involved.
//!
//! A forwarder passes a byte stream on unchanged between processes, and records it on the way. Next to an external
//! program there always is one: it does not wait for what that program leaves behind. An external program may write
//! fields that this version does not know and a later stage does: decoding and encoding would drop them.

use std::io::{self, BufWriter, ErrorKind, PipeReader, Read, Write};

use sizeleak_frame::{BATCH_BYTES, Frame, FrameReader, FrameWriter, ReadError, Summary};
use sizeleak_platform::runtime::{ChannelInput, Input, Interrupt, Outcome, Runnable, StreamInput};

use crate::process::{HeldPipe, ProgramEnd, ProgramOrigin, StageProgram};
use crate::recording::OutputRecorder;
use crate::{SavedStream, registry};

pub(crate) enum Placement {
    Thread(StageThread),
    Process(StageProgram),
    /// A thread that forwards and records bytes that come from or go to a process.
    Forwarder(ByteForwarder),
}

pub(crate) struct StageThread {
    /// Each fused to the one before; never none.
    pub(crate) stages: Vec<Box<dyn Runnable>>,
    pub(crate) recorder: Option<OutputRecorder>,
}

impl StageThread {
    pub(crate) fn new(stage: Box<dyn Runnable>) -> Self {
        Self { stages: vec![stage], recorder: None }
    }

    pub(crate) fn makes_batches(&self) -> bool {
        let last = self.stages.last().and_then(|last| registry::find(last.name()));
        last.is_some_and(|entry| matches!(entry.makes, "packets" | "segments"))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.stages.iter().map(|stage| stage.name().to_owned()).collect()
    }
}

impl Placement {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Thread(thread) => thread.stages.first().map_or("", |first| first.name()),
            Self::Process(program) => &program.name,
            Self::Forwarder(forwarder) => &forwarder.stage,
        }
    }

    pub(crate) fn stage_count(&self) -> usize {
        match self {
            Self::Thread(thread) => thread.stages.len(),
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
    /// A pipe, and how the program that writes to it ends, if it is one.
    Pipe(PipeReader, Option<ProgramEnd>),
    /// A saved stream in place of stages; it ends early when the run is interrupted.
    Saved(SavedStream, Interrupt),
}

impl LinkReceiver {
    pub(crate) fn into_input(self) -> Box<dyn Input + Send> {
        match self {
            Self::Channel(input) => Box::new(input),
            Self::Saved(stream, interrupt) => Box::new(StreamInput::new(stream.input).until(interrupt)),
            pipe @ Self::Pipe(..) => Box::new(StreamInput::new(pipe.into_bytes())),
        }
    }

    /// As bytes, which a channel does not carry: no forwarder comes after a thread.
    pub(crate) fn into_bytes(self) -> Box<dyn Read + Send> {
        match self {
            Self::Channel(_) => Box::new(io::empty()),
            Self::Pipe(reader, None) => Box::new(reader),
            Self::Pipe(reader, Some(program)) => Box::new(HeldPipe::reader(reader, program, "output")),
            Self::Saved(stream, _) => stream.input,
        }
    }
}

pub(crate) struct ByteForwarder {
    pub(crate) stage: String,
    pub(crate) recorder: Option<OutputRecorder>,
}

impl ByteForwarder {
    /// Forwards the whole stream; the next stage reports faults in it. With `interrupt`, for a file that no process
    /// upstream would end, the stream ends with a summary once that is set.
    pub(crate) fn run(self, input: Box<dyn Read + Send>, output: impl Write, interrupt: Option<&Interrupt>) -> Outcome {
        let mut output = BufWriter::with_capacity(BATCH_BYTES, output);
        let ended = forward(FrameReader::new(input), &mut output, self.recorder, interrupt);
        match ended.and_then(|outcome| output.flush().map(|()| outcome)) {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Outcome::Closed,
            Err(error) => Outcome::Failed(format!("the output cannot be written: {error}")),
        }
    }
}

fn forward(
    mut reader: FrameReader<Box<dyn Read + Send>>,
    output: &mut impl Write,
    mut recorder: Option<OutputRecorder>,
    interrupt: Option<&Interrupt>,
) -> io::Result<Outcome> {
    let (mut is_begun, mut is_ended) = (false, false);
    loop {
        let read = match reader.buffered_frame() {
            Ok(Some(frame)) => {
                let value = reader.last_value();
                (is_begun, is_ended) = (true, matches!(frame, Frame::Summary(_)));
                if let Some(recorder) = &mut recorder {
                    recorder.write_all(value)?;
                }
                recorder.take_if(|_| is_ended).map_or(Ok(()), OutputRecorder::end)?;
                output.write_all(value)?;
                continue;
            }
            Ok(None) if is_begun && !is_ended && interrupt.is_some_and(Interrupt::is_set) => {
                return end_early(output).map(|()| Outcome::Interrupted);
            }
            Ok(None) => {
                output.flush()?;
                reader.fill()
            }
            Err(error) => Err(error),
        };
        match read {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::Done),
            Err(_) if is_begun && !is_ended && interrupt.is_some_and(Interrupt::is_set) => {
                return end_early(output).map(|()| Outcome::Interrupted);
            }
            Err(error @ ReadError::Io { .. }) if error.is_cut() => return Ok(Outcome::Cut(error.to_string())),
            Err(ReadError::Io { source, .. }) => return Ok(Outcome::Failed(format!("cannot be read on: {source}"))),
            Err(_) => {
                let (rest, mut input) = reader.into_rest();
                output.write_all(&rest)?;
                io::copy(&mut input, output)?;
                return Ok(Outcome::Done);
            }
        }
    }
}

/// Ends a stream after a whole frame, as an interrupted source does.
fn end_early(output: &mut impl Write) -> io::Result<()> {
    let mut writer = FrameWriter::new(output);
    writer.write(&Summary::default().into()).and_then(|()| writer.flush())
}

#[cfg(test)]
mod tests;
