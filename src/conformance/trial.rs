//! A program under test with its input and its output: starts it, feeds it, collects the frames it passed on and those
//! it made, and kills it if it does not end.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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

    pub(crate) fn processed(&self, output: &StageOutput, frames: &[Frame]) -> Result<(), String> {
        output.made(frames, self.kind).map(|_| ())
    }
}

/// How many bytes of stdout and stderr are kept; the rest is not read.
const MAX_STDOUT: usize = 64 << 20;
const MAX_STDERR: usize = 64 << 10;

const POLL_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug, Clone)]
pub struct TestedProgram {
    pub command: Vec<OsString>,
    /// How long it may take to end after its input, and to answer while its input pauses.
    pub limit: Duration,
}

pub(crate) enum ProgramStep {
    Write(Vec<u8>),
    WritePieces(Vec<u8>, usize),
    Await(usize),
    Send(Signal),
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
    pub(crate) end: ProgramEnd,
    /// Whether all awaited frames came in time.
    pub(crate) has_answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    Code(i32),
    Signal(i32),
    /// It did not end and was killed.
    Never,
}

/// The output of a program so far, shared between the thread that reads it and those that wait for it.
#[derive(Default)]
struct CollectedOutput {
    bytes: Mutex<Vec<u8>>,
    grew: Condvar,
}

impl TestedProgram {
    pub(crate) fn feed(&self, stream: &[u8]) -> io::Result<FinishedRun> {
        self.run(vec![ProgramStep::Write(stream.to_vec())], StdoutReader::Present)
    }

    /// Runs it to its end, or until it has taken too long.
    pub(crate) fn run(&self, steps: Vec<ProgramStep>, reader: StdoutReader) -> io::Result<FinishedRun> {
        let mut child = self.start()?;
        let awaited = steps.iter().filter(|step| matches!(step, ProgramStep::Await(_))).count() as u32;
        let deadline = Instant::now() + self.limit * (1 + awaited);
        let (stdout, stderr) = (Arc::new(CollectedOutput::default()), Arc::new(CollectedOutput::default()));
        let present = child.stdout.take().filter(|_| reader == StdoutReader::Present);
        let readers = [
            present.map(|pipe| CollectedOutput::collect_on_thread(&stdout, pipe, MAX_STDOUT)),
            child.stderr.take().map(|pipe| CollectedOutput::collect_on_thread(&stderr, pipe, MAX_STDERR)),
        ];
        let (id, limit) = (child.id(), self.limit);
        let feeder = child.stdin.take().map(|stdin| {
            let stdout = Arc::clone(&stdout);
            thread::spawn(move || steps.into_iter().all(|step| step.perform(&stdin, id, &stdout, limit)))
        });
        let end = wait(&mut child, deadline)?;
        // Its children would keep its pipes open.
        if let Some(group) = pid(id) {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let has_answered = feeder.is_none_or(|feeder| feeder.join().unwrap_or(false));
        for reader in readers.into_iter().flatten() {
            let _ended = reader.join();
        }
        let stdout = std::mem::take(&mut *stdout.bytes());
        let stderr = String::from_utf8_lossy(&stderr.bytes()).into_owned();
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
    fn perform(self, mut stdin: &ChildStdin, id: u32, stdout: &CollectedOutput, limit: Duration) -> bool {
        match self {
            // Whether the program stops reading shows in how it ends.
            Self::Write(bytes) => {
                let _read = stdin.write_all(&bytes);
            }
            Self::WritePieces(bytes, size) => {
                let _read = bytes.chunks(size.max(1)).try_for_each(|piece| stdin.write_all(piece));
            }
            Self::Await(frames) => return stdout.wait_for(frames, limit),
            Self::Send(signal) => {
                if let Some(pid) = pid(id) {
                    let _gone = kill_process(pid, signal);
                }
            }
        }
        true
    }
}

impl CollectedOutput {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects up to about `most` bytes of a pipe on a separate thread.
    fn collect_on_thread(output: &Arc<Self>, pipe: impl Read + Send + 'static, most: usize) -> JoinHandle<()> {
        let output = Arc::clone(output);
        thread::spawn(move || output.collect(pipe, most))
    }

    fn collect(&self, mut pipe: impl Read, most: usize) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut bytes = self.bytes();
            bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            self.grew.notify_all();
            if bytes.len() > most {
                return;
            }
        }
    }

    fn wait_for(&self, frames: usize, limit: Duration) -> bool {
        let waited = self.grew.wait_timeout_while(self.bytes(), limit, |bytes| decode(bytes).0.len() < frames);
        waited.is_ok_and(|(_, waited)| !waited.timed_out())
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<ProgramEnd> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(ProgramEnd::of(status));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(ProgramEnd::Never);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

impl ProgramEnd {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Never,
        }
    }
}

impl std::fmt::Display for ProgramEnd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "it exited with {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal} ended it"),
            Self::Never => formatter.write_str("it did not end"),
        }
    }
}

#[cfg(test)]
mod tests;
