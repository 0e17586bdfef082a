//! A program under test with its input and its output.

use std::io;

use sizeleak_frame::Frame;
use thiserror::Error;

use crate::consumed_kind::ConsumedKind;
use crate::program::{ProgramStep, StdoutReader, TestedProgram};
use crate::recorded_stream::{RecordedStream, encode};
use crate::stage_output::StageOutput;

#[derive(Debug, Error)]
pub(crate) enum CheckError {
    /// What was found instead.
    #[error("{0}")]
    Violation(String),
    /// The rule cannot be checked on this stream.
    #[error("not applicable")]
    NotApplicable,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<String> for CheckError {
    fn from(fault: String) -> Self {
        Self::Violation(fault)
    }
}

pub(crate) struct Trial<'a> {
    program: &'a TestedProgram,
    pub(crate) input: &'a RecordedStream,
    pub(crate) kind: ConsumedKind,
    pub(crate) output: StageOutput,
    /// The frames that the stage itself made from the whole stream.
    made: Result<Vec<Frame>, String>,
}

impl<'a> Trial<'a> {
    /// Runs the program on the whole stream.
    pub(crate) fn new(program: &'a TestedProgram, input: &'a RecordedStream, kind: ConsumedKind) -> io::Result<Self> {
        let output = StageOutput::new(program.feed(&encode(&input.frames))?);
        let made = output.made(&input.frames, kind);
        Ok(Self { program, input, kind, output, made })
    }

    pub(crate) fn feed(&self, stream: &[u8]) -> io::Result<StageOutput> {
        self.program.feed(stream).map(StageOutput::new)
    }

    pub(crate) fn run(&self, steps: Vec<ProgramStep>, reader: StdoutReader) -> io::Result<StageOutput> {
        self.program.run(steps, reader).map(StageOutput::new)
    }

    pub(crate) fn made(&self) -> Result<&[Frame], String> {
        self.made.as_deref().map_err(Clone::clone)
    }

    /// Checks that the stage made the same frames again, from a stream with the same meaning.
    pub(crate) fn made_the_same(&self, output: &StageOutput) -> Result<(), String> {
        output.made_the_same(self.made()?, &self.input.frames, self.kind)
    }

    /// Checks that the stage processed `frames`, the intact start of a stream.
    pub(crate) fn processed(&self, output: &StageOutput, frames: &[Frame]) -> Result<(), String> {
        output.made(frames, self.kind).map(|_| ())
    }
}
