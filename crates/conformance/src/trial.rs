//! A program under test with its input and its output: the frames it passed on and the frames it made.

use std::io;

use rmpv::Value;
use sizeleak_frame::{Frame, Hello, ReadError, Summary};
use thiserror::Error;

use crate::program::{FinishedRun, ProgramEnd, ProgramStep, StdoutReader, TestedProgram};
use crate::recorded_stream::{ConsumedKind, RecordedStream, decode, encode};

/// A finished run of a stage with its decoded output.
#[derive(Debug)]
pub(crate) struct StageOutput {
    pub(crate) ended: FinishedRun,
    pub(crate) frames: Vec<Frame>,
    /// Why the output is not a whole stream.
    fault: Option<ReadError>,
}

impl StageOutput {
    pub(crate) fn new(ended: FinishedRun) -> Self {
        let (frames, fault) = decode(&ended.stdout);
        Self { ended, frames, fault }
    }

    pub(crate) fn hello(&self) -> Option<&Hello> {
        self.frames.iter().find_map(|frame| if let Frame::Hello(hello) = frame { Some(&**hello) } else { None })
    }

    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.frames.iter().find_map(|frame| if let Frame::Summary(summary) = frame { Some(summary) } else { None })
    }

    pub(crate) fn ended_with(&self, code: i32) -> Result<(), String> {
        if self.ended.end == ProgramEnd::Code(code) {
            return Ok(());
        }
        let message =
            self.last_message().map_or_else(|| "without a message".to_owned(), |line| format!("saying: {line}"));
        Err(format!("{}, {message}", self.ended.end))
    }

    pub(crate) fn is_readable(&self) -> Result<(), String> {
        self.fault.as_ref().map_or(Ok(()), |fault| Err(format!("its output cannot be read: {fault}")))
    }

    pub(crate) fn is_without_summary(&self) -> Result<(), String> {
        match &self.fault {
            _ if self.summary().is_some() => {
                Err("it wrote a summary, so the next stage takes the stream to be complete".into())
            }
            Some(ReadError::Cut { inside: 0, .. }) | None => Ok(()),
            Some(fault) => Err(format!("its output cannot be read: {fault}")),
        }
    }

    /// Checks that stderr says why it failed, without a stack trace.
    pub(crate) fn explains_itself(&self) -> Result<(), String> {
        let is_trace = |line: &str| {
            line.starts_with("Traceback") || line.contains("panicked at") || line.starts_with("goroutine ")
        };
        match (self.ended.stderr.lines().find(|line| is_trace(line)), self.last_message()) {
            (Some(trace), _) => Err(format!("stderr has a stack trace: {trace}")),
            (None, None) => Err("stderr is empty".into()),
            (None, Some(_)) => Ok(()),
        }
    }

    fn last_message(&self) -> Option<&str> {
        self.ended.stderr.lines().map(str::trim).rfind(|line| !line.is_empty())
    }

    /// Checks that the stage made the frames `expected` from `input`.
    pub(crate) fn made_the_same(&self, expected: &[Frame], input: &[Frame], kind: ConsumedKind) -> Result<(), String> {
        self.ended_with(0)?;
        let made = self.made(input, kind)?;
        let mut pairs = expected.iter().zip(&made).zip(1..);
        if let Some(((one, other), number)) = pairs.find(|((one, other), _)| !is_same(one, other)) {
            let (one, other) = (one.kind(), other.kind());
            return Err(format!("frame {number} that it made (`{one}`) changed (now a `{other}`)"));
        }
        if made.len() != expected.len() {
            return Err(format!("it made {} frames, not {}", made.len(), expected.len()));
        }
        Ok(())
    }

    /// The frames that the stage itself made: its output without the frames of `input` that it had to pass on, which
    /// must be there, in order.
    pub(crate) fn made(&self, input: &[Frame], kind: ConsumedKind) -> Result<Vec<Frame>, String> {
        let mut expected = passed_on(input, kind).peekable();
        let mut made = Vec::new();
        let mut seen: u64 = 0;
        for frame in self.frames.iter().filter(|frame| !is_end(frame)) {
            if expected.next_if(|expected| is_same(expected, frame)).is_some() {
                seen += 1;
            } else {
                made.push(frame.clone());
            }
        }
        match expected.next() {
            None => Ok(made),
            Some(missing) => Err(format!(
                "of the frames to pass on, the first {seen} came; number {} (`{}`) is missing, out of order or changed",
                seen + 1,
                missing.kind()
            )),
        }
    }
}

pub(crate) fn passed_on(input: &[Frame], kind: ConsumedKind) -> impl Iterator<Item = &Frame> {
    input.iter().filter(move |frame| !is_end(frame) && frame.kind() != kind.name())
}

fn is_end(frame: &Frame) -> bool {
    matches!(frame, Frame::Hello(_) | Frame::Summary(_))
}

/// Whether two frames are equal, however they are encoded.
pub(crate) fn is_same(one: &Frame, other: &Frame) -> bool {
    match (one, other) {
        (Frame::Unknown(one), Frame::Unknown(other)) => {
            one.kind == other.kind && plain(&one.value).is_some_and(|value| plain(&other.value) == Some(value))
        }
        _ => one == other,
    }
}

fn plain(mut value: &[u8]) -> Option<Value> {
    rmpv::decode::read_value(&mut value).ok().map(widened)
}

/// The value with every float widened to 64 bits: some languages have no other type of float.
fn widened(value: Value) -> Value {
    match value {
        Value::F32(number) => Value::F64(number.into()),
        Value::Array(values) => Value::Array(values.into_iter().map(widened).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (widened(key), widened(value))).collect())
        }
        other => other,
    }
}

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
