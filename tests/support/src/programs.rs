//! Runs the real programs, alone or in a Unix pipe.

use std::env;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT};

/// The gateway's address in the bundled home and in every simulated one.
pub const GATEWAY: &str = "192.168.1.20";

/// The folder of the programs that were built with the tests: that above the test programs'.
pub fn built() -> PathBuf {
    env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// A program of this package, as just built.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(built().join(name));
    command.current_dir(root());
    command
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// A file of the bundled example, relative to where programs run.
pub fn example(name: &str) -> String {
    format!("examples/home/{name}")
}

/// A program of this package with arguments, split at spaces.
pub fn with(name: &str, arguments: &str) -> Command {
    let mut command = program(name);
    command.args(arguments.split_whitespace());
    command
}

pub fn sizeleak(arguments: &str) -> Command {
    with("sizeleak", arguments)
}

/// A line of a shell in a folder, where the programs of this package are on the PATH, and examples in `$EXAMPLES`.
pub fn shell(folder: &Path, line: &str) -> Command {
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([built()].into_iter().chain(env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).stdin(Stdio::null()).env("PATH", path);
    shell.env("HOME", folder).env("EXAMPLES", root().join("examples")).env_remove("COLUMNS");
    shell
}

/// The seven stages of a pipeline, in order.
pub const STAGES: [&str; 7] =
    ["capture", "flow-filter", "record-sizer", "command-segmenter", "epsilon-corrector", "decomposer", "pruner"];

/// The stages that are in no pipeline unless it names them.
pub const OPTIONAL_STAGES: [&str; 1] = ["detector"];

/// The seven stages over a capture of the bundled home, as a user would type them into a pipe.
pub fn seven(capture: &str) -> Vec<Command> {
    seven_with(capture, &example("model.toml"))
}

/// The seven stages over a capture of a home that this model is of.
pub fn seven_with(capture: &str, model: &str) -> Vec<Command> {
    vec![
        with("capture", capture),
        with("flow-filter", &format!("--gateway {GATEWAY}")),
        with("record-sizer", ""),
        with("command-segmenter", &format!("--model {model}")),
        with("epsilon-corrector", &format!("--model {model}")),
        with("decomposer", &format!("--model {model}")),
        with("pruner", &format!("--model {model}")),
    ]
}

/// Runs programs in a pipe and returns their outputs. Only the last one's stdout is kept.
pub fn pipe(commands: Vec<Command>) -> Vec<Output> {
    let last = commands.len() - 1;
    let mut stdin = Stdio::null();
    let mut children = Vec::new();
    for (at, mut command) in commands.into_iter().enumerate() {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        stdin = if at < last { child.stdout.take().unwrap().into() } else { Stdio::null() };
        children.push(child);
    }
    let waiting = children.into_iter().map(|child| thread::spawn(move || child.wait_with_output().unwrap()));
    waiting.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Starts a program with pipes at all its ends.
pub fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Writes to a program's stdin and returns it still open. On a thread of its own: a program may write more than a pipe
/// holds before it has read all its input.
pub fn supply(child: &mut Child, input: Vec<u8>) -> JoinHandle<ChildStdin> {
    let mut stdin = child.stdin.take().unwrap();
    thread::spawn(move || {
        // A program may stop reading.
        _ = stdin.write_all(&input);
        stdin
    })
}

/// Stops a program like Ctrl-C.
pub fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

/// The longest wait for what must happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until something is there; until then it is said what is instead.
pub fn wait_for<T>(mut found: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match found() {
            Ok(found) => return found,
            Err(instead) => assert!(start.elapsed() < PATIENCE, "{instead}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Stops a program like Ctrl-C once it has written `after` bytes, while its stdin is still open, and returns its
/// output. A program that does not get there, or does not stop, is killed.
pub fn stop(command: &mut Command, input: Vec<u8>, after: usize, before: impl FnOnce()) -> Output {
    let mut child = start(command);
    let stdin = supply(&mut child, input);
    let mut frames = vec![0; after];
    let mut output = within_patience(child, |mut child| {
        child.stdout.as_mut().unwrap().read_exact(&mut frames).unwrap();
        before();
        interrupt(&child);
        child.wait_with_output().unwrap()
    });
    drop(stdin);
    frames.append(&mut output.stdout);
    output.stdout = frames;
    output
}

/// The output of a program that should end by itself. One that does not is killed.
pub fn ended(child: Child) -> Output {
    within_patience(child, |child| child.wait_with_output().unwrap())
}

/// Works with a program that is killed if that takes too long.
fn within_patience<T>(child: Child, work: impl FnOnce(Child) -> T) -> T {
    let id = Pid::from_child(&child);
    let (over, is_over) = mpsc::channel::<()>();
    let stopper = thread::spawn(move || {
        if is_over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            _ = kill_process(id, Signal::KILL);
        }
    });
    let worked = work(child);
    drop(over);
    stopper.join().unwrap();
    worked
}

/// Lets programs that are started from now on die of SIGHUP and SIGINT, also where tests run under `nohup` or in the
/// background of a shell: a program inherits that a signal is ignored, not that it is handled.
pub fn signals_end_programs() {
    for signal in [SIGHUP, SIGINT] {
        signal_hook::flag::register_conditional_default(signal, Arc::new(true.into())).unwrap();
    }
}

/// Runs a program with these bytes on its stdin.
pub fn feed(mut command: Command, input: Vec<u8>) -> Output {
    let mut child = start(&mut command);
    let supplied = supply(&mut child, input);
    // Closes its stdin as soon as everything is written.
    let closed = thread::spawn(move || drop(supplied.join()));
    let output = child.wait_with_output().unwrap();
    closed.join().unwrap();
    output
}

/// The output of a program that must succeed.
pub fn stdout(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    output.stdout
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a program wrote to stderr, with a blank in place of each break of a line.
pub fn unbroken(output: &Output) -> String {
    stderr(output).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes a file into a folder.
pub fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    File::create(&path).unwrap().write_all(content.as_ref()).unwrap();
    path
}
