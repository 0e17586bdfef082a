//! A program under test with its input and the outputs that several rules look at.

use std::io;
use std::rc::Rc;

use sizeleak_frame::Frame;
use thiserror::Error;

use crate::consumed_kind::ConsumedKind;
use crate::program::{Program, Reader, Step};
use crate::recorded_stream::{RecordedStream, encode};
use crate::stage_output::StageOutput;
use crate::variation;

/// Why a rule is not kept.
#[derive(Debug, Error)]
pub(crate) enum CheckError {
    /// What was found instead.
    #[error("{0}")]
    Violation(String),
    /// The rule cannot be checked on this stream.
    #[error("not applicable")]
    NotApplicable,
    /// The program cannot be run.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<String> for CheckError {
    fn from(fault: String) -> Self {
        Self::Violation(fault)
    }
}

/// A program under test.
pub(crate) struct Trial<'a> {
    program: &'a Program,
    pub(crate) input: &'a RecordedStream,
    pub(crate) kind: ConsumedKind,
    /// The output for the whole stream.
    pub(crate) output: StageOutput,
    /// The frames that the stage itself made of the whole stream.
    made: Result<Vec<Frame>, String>,
    without_plaintext: Option<Rc<StageOutput>>,
    truncated: Option<Rc<[TruncatedRun; 2]>>,
}

/// A run on a stream that ends without a summary.
pub(crate) struct TruncatedRun {
    /// Where it ends, in words.
    pub(crate) place: &'static str,
    pub(crate) output: StageOutput,
}

impl<'a> Trial<'a> {
    /// Runs the program on the whole stream.
    pub(crate) fn new(program: &'a Program, input: &'a RecordedStream, kind: ConsumedKind) -> io::Result<Self> {
        let output = StageOutput::new(program.feed(&encode(&input.frames))?);
        let made = output.made(&input.frames, kind);
        Ok(Self { program, input, kind, output, made, without_plaintext: None, truncated: None })
    }

    /// Runs the program on a stream.
    pub(crate) fn feed(&self, stream: &[u8]) -> io::Result<StageOutput> {
        self.program.feed(stream).map(StageOutput::new)
    }

    /// Runs the program through steps, with or without a reader of its output.
    pub(crate) fn run(&self, steps: Vec<Step>, reader: Reader) -> io::Result<StageOutput> {
        self.program.run(steps, reader).map(StageOutput::new)
    }

    /// The frames that the stage itself made of the whole stream.
    pub(crate) fn made(&self) -> Result<&[Frame], String> {
        self.made.as_deref().map_err(Clone::clone)
    }

    /// Checks that the stage made the same frames again, of a stream that means the same.
    pub(crate) fn made_the_same(&self, output: &StageOutput) -> Result<(), String> {
        output.made_the_same(self.made()?, &self.input.frames, self.kind)
    }

    /// Checks that the stage processed `frames`, the intact start of a stream.
    pub(crate) fn processed(&self, output: &StageOutput, frames: &[Frame]) -> Result<(), String> {
        output.made(frames, self.kind).map(|_| ())
    }

    /// The output for the stream without plaintext sizes.
    pub(crate) fn without_plaintext(&mut self) -> io::Result<Rc<StageOutput>> {
        if let Some(output) = &self.without_plaintext {
            return Ok(Rc::clone(output));
        }
        let output = Rc::new(self.feed(&encode(&variation::without_plaintext(&self.input.frames)))?);
        self.without_plaintext = Some(Rc::clone(&output));
        Ok(output)
    }

    /// The frames of [`Trial::truncated`].
    pub(crate) fn first_half(&self) -> &'a [Frame] {
        let (_, body) = self.input.frames.split_last().map_or((None, &[][..]), |(last, body)| (Some(last), body));
        body.get(..body.len() / 2 + 1).unwrap_or_default()
    }

    /// The outputs for half of the stream, cut between two frames and inside a frame.
    pub(crate) fn truncated(&mut self) -> io::Result<Rc<[TruncatedRun; 2]>> {
        if let Some(runs) = &self.truncated {
            return Ok(Rc::clone(runs));
        }
        let half = self.first_half();
        let between = encode(half);
        // Two thirds of the next value end inside a frame, also of bulk kinds.
        let next = self.input.frames.get(half.len()).or(self.input.frames.last());
        let next = next.map_or_else(Vec::new, |next| encode(std::slice::from_ref(next)));
        let inside = [&*between, next.get(..next.len() * 2 / 3).unwrap_or_default()].concat();
        let runs = Rc::new([
            TruncatedRun { place: "between two frames", output: self.feed(&between)? },
            TruncatedRun { place: "inside a frame", output: self.feed(&inside)? },
        ]);
        self.truncated = Some(Rc::clone(&runs));
        Ok(runs)
    }
}
