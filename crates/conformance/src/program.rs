//! Runs the program under test: starts it, feeds it, collects its output, and kills it if it does not end.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::recorded_stream::decode;

#[cfg(test)]
mod tests;

/// How many bytes of stdout and stderr are kept; the rest is not read.
const MAX_STDOUT: usize = 64 << 20;
const MAX_STDERR: usize = 64 << 10;

/// How often a program is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A program with its arguments.
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
