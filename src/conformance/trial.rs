//! A program under test with its input and its output: starts it, feeds it, collects the frames it passed on and those
//! it made, and kills it if it does not end.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, unbounded};
use rmpv::Value;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use sizeleak_frame::{Frame, Hello, ReadError, Summary};
use thiserror::Error;

use crate::conformance::recorded_stream::{ConsumedKind, RecordedStream, decode, encode};

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
        if self.ended.code() == Some(code) {
            return Ok(());
        }
        let message =
            self.last_message().map_or_else(|| "without a message".to_owned(), |line| format!("saying: {line}"));
        Err(format!("{}, {message}", self.ended.in_words()))
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

    pub(crate) fn made_the_same(&self, output: &StageOutput) -> Result<(), String> {
        output.made_the_same(self.made()?, &self.input.frames, self.kind)
    }

    pub(crate) fn processed(&self, output: &StageOutput, frames: &[Frame]) -> Result<(), String> {
        output.made(frames, self.kind).map(|_| ())
    }
}

/// How many bytes of stdout and stderr are kept; the rest is not read.
const MAX_STDOUT: usize = 64 << 20;
const MAX_STDERR: usize = 64 << 10;

const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Signals that follow each other faster may arrive as one.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct TestedProgram {
    pub command: Vec<OsString>,
    /// How long it may take to end after its input, and to answer while its input pauses.
    pub limit: Duration,
}

pub(crate) enum ProgramStep {
    Write(Vec<u8>),
    /// Waits until so many frames have come out.
    Await(usize),
    Send(Signal),
    /// Sends it again and again until the program has ended, while its input stays open.
    SendUntilEnd(Signal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdoutReader {
    Present,
    Gone,
}

#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    /// `None` if it did not end and was killed.
    pub(crate) end: Option<ExitStatus>,
    /// Whether all that was awaited came in time: frames, or its end by a signal.
    pub(crate) has_answered: bool,
}

impl FinishedRun {
    pub(crate) fn code(&self) -> Option<i32> {
        self.end.and_then(|end| end.code())
    }

    pub(crate) fn in_words(&self) -> String {
        match (self.code(), self.end.and_then(|end| end.signal())) {
            (Some(code), _) => format!("it exited with {code}"),
            (None, Some(signal)) => format!("signal {signal} ended it"),
            (None, None) => "it did not end".to_owned(),
        }
    }
}

impl TestedProgram {
    pub(crate) fn feed(&self, stream: &[u8]) -> io::Result<FinishedRun> {
        self.run(vec![ProgramStep::Write(stream.to_vec())], StdoutReader::Present)
    }

    /// Runs it to its end, or until it has taken too long.
    pub(crate) fn run(&self, steps: Vec<ProgramStep>, reader: StdoutReader) -> io::Result<FinishedRun> {
        let mut child = self.start()?;
        let is_awaited = |step: &&ProgramStep| matches!(step, ProgramStep::Await(_) | ProgramStep::SendUntilEnd(_));
        let awaited = steps.iter().filter(is_awaited).count() as u32;
        let deadline = Instant::now() + self.limit * (1 + awaited);
        let present = child.stdout.take().filter(|_| reader == StdoutReader::Present);
        let mut stdout = CollectedOutput::of(present, MAX_STDOUT);
        let stderr = CollectedOutput::of(child.stderr.take(), MAX_STDERR);
        let (id, limit, stdin) = (child.id(), self.limit, child.stdin.take());
        let feeder = thread::spawn(move || {
            let has_answered =
                stdin.is_none_or(|stdin| steps.into_iter().all(|step| step.perform(&stdin, id, &mut stdout, limit)));
            (has_answered, stdout.whole())
        });
        let end = wait(&mut child, deadline)?;
        // Its children would keep its pipes open.
        if let Some(group) = pid(id) {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let (has_answered, stdout) = feeder.join().unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr.whole()).into_owned();
        Ok(FinishedRun { stdout, stderr, end, has_answered })
    }

    fn start(&self) -> io::Result<Child> {
        let (file, arguments) = self.command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(file);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }
}

impl ProgramStep {
    fn perform(self, mut stdin: &ChildStdin, id: u32, stdout: &mut CollectedOutput, limit: Duration) -> bool {
        match self {
            // Whether the program stops reading shows in how it ends.
            Self::Write(bytes) => {
                let _read = stdin.write_all(&bytes);
            }
            Self::Await(frames) => return stdout.wait_for(frames, limit),
            Self::Send(signal) => send(signal, id),
            Self::SendUntilEnd(signal) => {
                let end = Instant::now() + limit;
                while !stdout.ends_within(BETWEEN_SIGNALS) {
                    if Instant::now() > end {
                        return false;
                    }
                    send(signal, id);
                }
            }
        }
        true
    }
}

fn send(signal: Signal, id: u32) {
    if let Some(pid) = pid(id) {
        let _gone = kill_process(pid, signal);
    }
}

/// The output of a program so far, and what is read of it on a thread of its own.
struct CollectedOutput {
    bytes: Vec<u8>,
    more: Receiver<Vec<u8>>,
}

impl CollectedOutput {
    /// Reads up to about `most` bytes of a pipe; nothing without one.
    fn of(pipe: Option<impl Read + Send + 'static>, most: usize) -> Self {
        let (sender, more) = unbounded();
        thread::spawn(move || {
            let Some(mut pipe) = pipe else { return };
            let (mut buffer, mut all) = (vec![0; 64 << 10], 0);
            while all <= most
                && let Ok(count @ 1..) = pipe.read(&mut buffer)
            {
                all += count;
                let _gone = sender.send(buffer.get(..count).unwrap_or_default().to_vec());
            }
        });
        Self { bytes: Vec::new(), more }
    }

    fn wait_for(&mut self, frames: usize, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while decode(&self.bytes).0.len() < frames {
            match self.more.recv_deadline(end) {
                Ok(more) => self.bytes.extend(more),
                Err(_) => return false,
            }
        }
        true
    }

    /// Whether the program has closed the pipe after this time.
    fn ends_within(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            match self.more.recv_deadline(end) {
                Ok(more) => self.bytes.extend(more),
                Err(error) => return error.is_disconnected(),
            }
        }
    }

    /// All of it, once the program has closed the pipe.
    fn whole(mut self) -> Vec<u8> {
        self.bytes.extend(self.more.iter().flatten());
        self.bytes
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests;
