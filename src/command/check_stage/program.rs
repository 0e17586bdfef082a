//! The program that is checked: started, fed, listened to, and ended where it does not end by itself.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::output::read;

/// What is kept of a program's stdout and stderr; one that writes more is not read on.
const MOST_OUTPUT: usize = 64 << 20;
const MOST_WORDS: usize = 64 << 10;
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A program with its arguments.
pub(super) struct Program {
    pub(super) command: Vec<OsString>,
    /// How long it may take to end, once it has all its input, or to answer while its input pauses.
    pub(super) limit: Duration,
}

/// What is done to a program while it runs, one after another. Behind the last step its stdin is closed.
pub(super) enum Step {
    /// Feed it these bytes.
    Write(Vec<u8>),
    /// Feed it these bytes in pieces of so many.
    WritePieces(Vec<u8>, usize),
    /// Wait until it has written so many frames.
    Await(usize),
    /// Send it a signal.
    Send(Signal),
}

/// Who reads what the program writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Attentive,
    Gone,
}

/// How a run of the program ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    pub(super) end: End,
    /// Whether everything that was awaited came in time.
    pub(super) answered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
    /// It did not end, and was killed.
    Never,
}

/// What a program has written so far, shared between who listens and who waits for it.
#[derive(Default)]
struct Heard {
    bytes: Mutex<Vec<u8>>,
    grew: Condvar,
}

impl Program {
    /// Runs it on a whole stream.
    pub(super) fn fed(&self, stream: &[u8]) -> io::Result<Ended> {
        self.run(vec![Step::Write(stream.to_vec())], Reader::Attentive)
    }

    /// Runs it to its end, or until it has taken too long.
    pub(super) fn run(&self, steps: Vec<Step>, reader: Reader) -> io::Result<Ended> {
        let mut child = self.start()?;
        let awaited = steps.iter().filter(|step| matches!(step, Step::Await(_))).count() as u32;
        let deadline = Instant::now() + self.limit * (1 + awaited);
        let heard = Arc::new(Heard::default());
        let stdout = child.stdout.take().filter(|_| reader == Reader::Attentive);
        let listening = stdout.map(|stdout| {
            let heard = Arc::clone(&heard);
            thread::spawn(move || heard.listen(stdout, MOST_OUTPUT))
        });
        let words = Arc::new(Heard::default());
        let hearing = child.stderr.take().map(|stderr| {
            let words = Arc::clone(&words);
            thread::spawn(move || words.listen(stderr, MOST_WORDS))
        });
        let (id, limit) = (child.id(), self.limit);
        let doing = child.stdin.take().map(|stdin| {
            let heard = Arc::clone(&heard);
            thread::spawn(move || steps.into_iter().all(|step| step.be_done(&stdin, id, &heard, limit)))
        });
        let end = wait(&mut child, deadline)?;
        // Whatever it started goes with it: else its pipes stay open.
        if let Some(group) = pid(id) {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let answered = doing.is_none_or(|doing| doing.join().unwrap_or(false));
        for thread in [listening, hearing].into_iter().flatten() {
            let _ended = thread.join();
        }
        let stdout = std::mem::take(&mut *heard.bytes());
        let stderr = String::from_utf8_lossy(&words.bytes()).into_owned();
        Ok(Ended { stdout, stderr, end, answered })
    }

    fn start(&self) -> io::Result<Child> {
        let (file, arguments) = self.command.split_first().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(file);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).spawn()
    }
}

impl Step {
    /// Does it; false where something awaited did not come.
    fn be_done(self, mut stdin: &ChildStdin, id: u32, heard: &Heard, limit: Duration) -> bool {
        match self {
            // A program that stops reading shows that by how it ends.
            Self::Write(bytes) => {
                let _read = stdin.write_all(&bytes);
            }
            Self::WritePieces(bytes, size) => {
                let _read = bytes.chunks(size.max(1)).try_for_each(|some| stdin.write_all(some));
            }
            Self::Await(frames) => return heard.until(frames, limit),
            Self::Send(signal) => {
                if let Some(pid) = pid(id) {
                    let _gone = kill_process(pid, signal);
                }
            }
        }
        true
    }
}

impl Heard {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, mut stream: impl Read, most: usize) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let mut bytes = self.bytes();
            bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            self.grew.notify_all();
            if bytes.len() > most {
                return;
            }
        }
    }

    fn until(&self, frames: usize, limit: Duration) -> bool {
        let waited = self.grew.wait_timeout_while(self.bytes(), limit, |bytes| read(bytes).0.len() < frames);
        waited.is_ok_and(|(_, waited)| !waited.timed_out())
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

fn wait(child: &mut Child, deadline: Instant) -> io::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::of(status));
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Ok(End::Never);
        }
        thread::sleep(LOOK_EVERY);
    }
}

impl End {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Never,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(formatter, "it exited with {code}"),
            Self::Signal(signal) => write!(formatter, "signal {signal} ended it"),
            Self::Never => formatter.write_str("it did not end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Hello;

    use super::super::recorded::encode;
    use super::*;

    fn shell(script: &str, limit_ms: u64) -> Program {
        let command = ["sh", "-c", script].map(OsString::from).to_vec();
        Program { command, limit: Duration::from_millis(limit_ms) }
    }

    #[test]
    fn what_a_program_does_is_seen() {
        let ended = shell("cat; echo why >&2; exit 4", 10_000).fed(b"frames").unwrap();
        assert_eq!((&*ended.stdout, &*ended.stderr, ended.end), (&b"frames"[..], "why\n", End::Code(4)));
        assert_eq!(shell("kill -9 $$", 10_000).fed(b"").unwrap().end, End::Signal(9));
        assert!(Program { command: vec!["./no-such-program".into()], ..shell("", 1) }.fed(b"").is_err());
    }

    #[test]
    fn one_that_does_not_end_is_ended_with_all_it_started() {
        let ended = shell("sleep 1000 & sleep 1000", 50).fed(b"").unwrap();
        assert_eq!(ended.end, End::Never);
        // One that reads nothing holds its feeder up no longer.
        assert_eq!(shell("sleep 1000", 50).fed(&vec![0; 1 << 20]).unwrap().end, End::Never);
    }

    #[test]
    fn what_is_awaited_comes_or_not() {
        let hello = Hello { schema: 1, stage: "x".into(), version: "1".into(), upstream: Vec::new() };
        let hello = encode(&[hello.into()]);
        let steps = |frames| vec![Step::Write(hello.clone()), Step::Await(frames), Step::Write(b"b".to_vec())];
        let ended = shell("cat", 10_000).run(steps(1), Reader::Attentive).unwrap();
        assert_eq!(ended.stdout, [&*hello, b"b"].concat());
        assert!(ended.answered && ended.end == End::Code(0));
        assert!(!shell("cat", 50).run(steps(2), Reader::Attentive).unwrap().answered);
        let signalled = vec![Step::Send(Signal::TERM)];
        assert_eq!(shell("exec sleep 1000", 10_000).run(signalled, Reader::Gone).unwrap().end, End::Signal(15));
    }
}
