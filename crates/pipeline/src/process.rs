//! A stage in its own process: looks up the program, starts it, and derives an outcome from its exit. Its group ends
//! when this process does, however that happens. The program may have ended while another process, which it started,
//! holds the other end of its pipes open: that is not waited for.

use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use sizeleak_platform::runtime::{Outcome, becomes_ready_for};
use sizeleak_platform::telemetry::log::say;
use tracing::warn;

use crate::ConfigError;

/// Longer lines on the stderr of a process are split, in bytes.
const MAX_LINE: u64 = 4096;

#[derive(Debug, Clone)]
pub(crate) struct StageProgram {
    pub(crate) name: String,
    pub(crate) origin: ProgramOrigin,
    file: PathBuf,
    arguments: Vec<String>,
    /// Its working directory, if not that of the runner.
    folder: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramOrigin {
    /// This project: exit codes follow the contract, stderr holds the error.
    BuiltIn,
    /// The user: everything it prints is shown.
    External,
}

impl StageProgram {
    pub(crate) fn built_in(name: &str, arguments: impl IntoIterator<Item = String>) -> Result<Self, ConfigError> {
        let neighbour = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
        let found = neighbour.filter(|file| file.is_file()).or_else(|| on_search_path(name));
        let file = found.ok_or_else(|| {
            ConfigError::input(format!(
                "the program `{name}` is missing: it is neither next to `sizeleak` nor on the search path; `cargo \
                 build` and `cargo install` provide all of them"
            ))
        })?;
        let arguments = ["--quiet".to_owned()].into_iter().chain(arguments).collect();
        Ok(Self { name: name.to_owned(), origin: ProgramOrigin::BuiltIn, file, arguments, folder: None })
    }

    /// An external program. It runs in the folder of the pipeline file; a name with a `/` is relative to that folder.
    pub(crate) fn external(name: &str, command: &[String], folder: &Path) -> Result<Self, ConfigError> {
        let (file, arguments) = command.split_first().map_or(("", &[][..]), |(file, rest)| (file.as_str(), rest));
        // Absolute, because the program starts in another folder.
        let folder = path::absolute(if folder == Path::new("") { Path::new(".") } else { folder });
        let folder = folder.map_err(|error| ConfigError::input(format!("stage `{name}`: {error}")))?;
        let found = if file.contains('/') {
            Some(folder.join(file)).filter(|path| path.is_file())
        } else {
            on_search_path(file)
        };
        let missing = || {
            let is_here = !file.contains('/') && folder.join(file).is_file();
            let hint =
                if is_here { format!(": to name the one in this folder, write `./{file}`") } else { String::new() };
            ConfigError::input(format!("the program `{file}` of stage `{name}` is missing{hint}"))
        };
        let file = found.ok_or_else(missing)?;
        let (origin, arguments) = (ProgramOrigin::External, arguments.to_vec());
        Ok(Self { name: name.to_owned(), origin, file, arguments, folder: Some(folder) })
    }

    /// Starts it in a process group of its own: a SIGINT from the terminal goes to the runner, which stops the first
    /// stage and lets the others finish.
    pub(crate) fn start(&self, stdin: Stdio, stdout: Stdio) -> io::Result<(Child, Arc<StageGroup>)> {
        let mut command = Command::new(&self.file);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.args(&self.arguments).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let mut group = StageGroup::begin(&self.name, self.origin);
        Ok((group.spawn(&mut command)?, Arc::new(group)))
    }

    /// Waits until it ends, and sets `end` then. The stderr of an external program goes to `print`, line by line.
    pub(crate) fn wait(&self, mut child: Child, end: &ProgramEnd, mut print: impl FnMut(&str)) -> Outcome {
        let stderr = child.stderr.take();
        let mut last = String::new();
        let status = thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let status = child.wait();
                end.set();
                status
            });
            let messages = stderr.map(|pipe| HeldPipe::reader(pipe, end.clone(), STDERR));
            for line in messages.into_iter().flat_map(lines) {
                if self.origin == ProgramOrigin::External {
                    print(&line);
                }
                if !line.trim().is_empty() {
                    last = line;
                }
            }
            waiting.join().unwrap_or_else(|_| Err(io::Error::other("a thread has failed")))
        });
        match status {
            Ok(status) => self.outcome(status, &last),
            Err(error) => Outcome::Failed(format!("waiting for it failed: {error}")),
        }
    }

    fn outcome(&self, status: ExitStatus, last: &str) -> Outcome {
        let message = last.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(last);
        let ended = match (status.code(), status.signal()) {
            (Some(0), _) => return Outcome::Done,
            (Some(130), _) => return Outcome::Interrupted,
            (Some(3), _) => {
                return Outcome::Cut(if message.is_empty() { "its input was cut".into() } else { message.to_owned() });
            }
            (Some(1 | 2), _) if self.origin == ProgramOrigin::BuiltIn && !message.is_empty() => {
                return Outcome::Failed(message.to_owned());
            }
            (_, Some(1 | 2)) if self.origin == ProgramOrigin::External => return Outcome::Interrupted,
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended for an unknown reason".to_owned(),
        };
        Outcome::Failed(if message.is_empty() { ended } else { format!("{ended}: {message}") })
    }
}

fn on_search_path(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&paths).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn lines(stream: impl Read) -> impl Iterator<Item = String> {
    let mut reader = BufReader::new(stream);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned())
    })
}

/// What the guard of a group runs: a line says that the run is over; without one, this process is gone.
const GUARD: &str = "trap '' HUP INT TERM; echo; read -r line || kill -KILL 0";

/// The process group of a stage. Its first process is a guard in the shell, which waits for the end of a pipe from this
/// process: the system closes that pipe even if this process is killed. As long as the guard is not waited for, the number
/// of the group belongs to no other.
#[derive(Debug)]
pub(crate) struct StageGroup {
    pub(crate) name: String,
    pub(crate) origin: ProgramOrigin,
    /// `None` without a shell, which only means that the stage may outlive this process.
    guard: Option<Child>,
    number: Option<Pid>,
}

impl StageGroup {
    fn begin(stage: &str, origin: ProgramOrigin) -> Self {
        let begun = begin_guard();
        let guard =
            begun.map_err(|error| warn!(stage, "will not end if this program is killed: /bin/sh: {error}")).ok();
        Self { name: stage.to_owned(), origin, number: guard.as_ref().map(Pid::from_child), guard }
    }

    fn spawn(&mut self, command: &mut Command) -> io::Result<Child> {
        let child = command.process_group(self.number.map_or(0, |number| number.as_raw_nonzero().get())).spawn()?;
        self.number.get_or_insert(Pid::from_child(&child));
        Ok(child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _sent = self.number.map(|number| kill_process_group(number, signal));
    }
}

fn begin_guard() -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARD]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut guard = command.process_group(0).spawn()?;
    // Until then a signal would end the guard.
    if let Some(mut ready) = guard.stdout.take() {
        ready.read_exact(&mut [0])?;
    }
    Ok(guard)
}

/// The run is over: what is left of the group goes on by itself.
impl Drop for StageGroup {
    fn drop(&mut self) {
        if let Some(guard) = &mut self.guard {
            // A guard that is gone needs no message.
            let _told = guard.stdin.take().map(|mut guard| guard.write_all(b"over\n"));
            let _ended = guard.wait();
        }
    }
}

/// How long nothing may happen on a pipe of a program that has ended.
const GRACE: Duration = Duration::from_secs(5);

/// A program of a stage, and whether it has ended. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct ProgramEnd {
    stage: String,
    has_ended: Arc<AtomicBool>,
    grace: Duration,
}

impl ProgramEnd {
    pub(crate) fn of(stage: &str) -> Self {
        Self { stage: stage.to_owned(), has_ended: Arc::default(), grace: GRACE }
    }

    pub(crate) fn set(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

const STDERR: &str = "stderr";

/// A pipe to or from a program. Once that has ended, and nothing has happened for a while, it counts as closed; that of its
/// messages also if they go on.
#[derive(Debug)]
pub(crate) struct HeldPipe<P> {
    pipe: P,
    program: ProgramEnd,
    /// Which end of the program it is, for people.
    end: &'static str,
    quiet_since: Option<Instant>,
    is_closed: bool,
}

impl<P: AsFd> HeldPipe<P> {
    pub(crate) fn reader(pipe: P, program: ProgramEnd, end: &'static str) -> Self {
        Self { pipe, program, end, quiet_since: None, is_closed: false }
    }

    pub(crate) fn writer(pipe: P, program: ProgramEnd) -> io::Result<Self> {
        // A pipe that takes a few bytes is writable, but would wait with many.
        ioctl_fionbio(&pipe, true)?;
        Ok(Self::reader(pipe, program, "input"))
    }

    /// Waits for an event; false once the pipe counts as closed.
    fn becomes_ready(&mut self, flags: PollFlags) -> bool {
        while !self.is_closed {
            let is_ready = becomes_ready_for(&self.pipe, flags);
            if is_ready && self.end != STDERR {
                self.quiet_since = None;
                return true;
            }
            let ProgramEnd { stage, grace, .. } = &self.program;
            if self.program.is_set() && self.quiet_since.get_or_insert_with(Instant::now).elapsed() >= *grace {
                let held = format!(
                    "it has ended, but a process that it started holds its {} open: it is not waited for",
                    self.end
                );
                say(stage, &held);
                self.is_closed = true;
            } else if is_ready {
                return true;
            }
        }
        false
    }
}

impl<P: Read + AsFd> Read for HeldPipe<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.becomes_ready(PollFlags::IN) { self.pipe.read(buffer) } else { Ok(0) }
    }
}

impl<P: Write + AsFd> Write for HeldPipe<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return written,
            }
            if !self.becomes_ready(PollFlags::OUT) {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    fn end(script: &str) -> (Outcome, Vec<String>) {
        let program =
            StageProgram::external("mine", &["sh".into(), "-c".into(), script.into()], Path::new("")).unwrap();
        let (child, _group) = program.start(Stdio::null(), Stdio::null()).unwrap();
        let mut lines = Vec::new();
        let outcome = program.wait(child, &ProgramEnd::of("mine"), |line| lines.push(line.to_owned()));
        (outcome, lines)
    }

    #[test]
    fn exit_status_determines_the_outcome() {
        assert_eq!(end("echo hello >&2"), (Outcome::Done, vec!["hello".to_owned()]));
        assert_eq!(end("echo why >&2; echo >&2; exit 4").0, Outcome::Failed("ended with exit code 4: why".into()));
        assert_eq!(end("kill -9 $$").0, Outcome::Failed("was killed by signal 9".into()));
        // A program inherits that a signal is ignored, as it is for tests in the background, not that it is handled.
        signal_hook::flag::register(signal_hook::consts::SIGINT, std::sync::Arc::default()).unwrap();
        assert_eq!(end("kill -2 $$").0, Outcome::Interrupted);
        assert_eq!(end("exit 3").0, Outcome::Cut("its input was cut".into()));
    }

    #[test]
    fn external_program_runs_in_the_folder_of_the_pipeline_file() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("mine.sh");
        std::fs::write(&script, "pwd >&2; cat data.txt >&2").unwrap();
        std::fs::write(folder.path().join("data.txt"), "found").unwrap();
        let program = StageProgram::external("mine", &["sh".into(), "mine.sh".into()], folder.path()).unwrap();
        let mut lines = Vec::new();
        let (child, _group) = program.start(Stdio::null(), Stdio::null()).unwrap();
        program.wait(child, &ProgramEnd::of("mine"), |line| lines.push(line.to_owned()));
        assert_eq!(lines, [folder.path().canonicalize().unwrap().display().to_string(), "found".to_owned()]);
    }

    #[test]
    fn missing_program_is_an_error_that_names_it() {
        let error = StageProgram::external("mine", &["no-such-program".into()], Path::new("")).unwrap_err();
        assert!(error.to_string().contains("`no-such-program` of stage `mine` is missing"), "{error}");
        let error = StageProgram::built_in("no-such-stage", Vec::new()).unwrap_err();
        assert!(error.to_string().contains("neither next to"), "{error}");
    }

    #[test]
    fn endless_line_is_split() {
        let longest = lines(io::repeat(b'x').take(100_000)).map(|line| line.len()).max();
        assert_eq!(longest, Some(MAX_LINE as usize));
    }

    fn sleeper(group: &mut StageGroup) -> Child {
        group.spawn(Command::new("sleep").arg("1000")).unwrap()
    }

    #[test]
    fn group_ends_with_the_pipe_to_its_guard() {
        let mut group = StageGroup::begin("mine", ProgramOrigin::External);
        let mut child = sleeper(&mut group);
        group.signal(Signal::URG);
        drop(group.guard.as_mut().unwrap().stdin.take());
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn processes_go_on_after_the_end_of_a_run() {
        let mut group = StageGroup::begin("mine", ProgramOrigin::External);
        let mut child = sleeper(&mut group);
        // The guard itself ignores these.
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            kill_guard(&group, signal);
        }
        drop(group);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn kill_guard(group: &StageGroup, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(group.guard.as_ref().unwrap()), signal).unwrap();
    }

    fn ended() -> ProgramEnd {
        let end = ProgramEnd { grace: Duration::from_millis(200), ..ProgramEnd::of("mine") };
        end.set();
        end
    }

    #[test]
    fn bytes_written_before_the_end_are_read() {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"late").unwrap();
        let mut read = Vec::new();
        HeldPipe::reader(reader, ended(), "output").read_to_end(&mut read).unwrap();
        assert_eq!(read, b"late");
    }

    #[test]
    fn pipe_that_nobody_empties_counts_as_closed() {
        let (reader, writer) = pipe().unwrap();
        let mut writer = HeldPipe::writer(writer, ended()).unwrap();
        assert_eq!(writer.write_all(&vec![0; 1 << 22]).unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(reader);
    }
}
