//! The program that sends commands: started for each, or once and fed by lines. And lines of
//! text that come while something else goes on, and the clock of this machine.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Map, Value, json};
use sizeleak_evaluation::experiment::{DeviceAction, Step};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_text::escaped;

/// A program that takes longer has hung: its command does not count.
const MAX_DURATION: Duration = Duration::from_mins(1);

/// What a program said is waited for so long after its end.
const MAX_LATE: Duration = Duration::from_millis(200);

/// How often a running program is asked whether it has ended.
const BETWEEN_CHECKS: Duration = Duration::from_millis(2);

/// The most bytes of a program's messages that are repeated, and of an answer that is read.
const MAX_MESSAGE: u64 = 400;

pub(super) enum Sender {
    Started(String),
    /// This process runs all the time: a line for each, and it answers by a line.
    Fed(Fed),
    Asked(Person),
}

pub(super) struct Fed {
    text: String,
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

pub(super) fn listed(devices: &[DeviceAction]) -> String {
    let device = |DeviceAction { device, index, action }: &DeviceAction| format!("{device} {index} {action}");
    devices.iter().map(device).collect::<Vec<_>>().join(", ")
}

fn told(step: &Step, actions: &[String]) -> Value {
    let counts = actions.iter().zip(&step.counts).filter(|(_, count)| **count > 0);
    let counts: Map<String, Value> = counts.map(|(name, count)| (name.clone(), json!(count))).collect();
    json!({ "number": step.number, "actions": counts, "devices": step.devices })
}

pub(super) fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    // Ctrl-C does not reach it: the recording ends it.
    command.process_group(0).arg("-c").arg(text);
    command
}

/// Ends a [`shell`], with all that it started: a shell that is killed alone leaves that running.
pub(super) fn end(child: &mut Child) {
    _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    _ = child.wait();
}

impl Sender {
    pub(super) fn fed(text: &str) -> anyhow::Result<Self> {
        let mut child = shell(text)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{text}` cannot be started"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(anyhow!("`{text}` has no stdin or stdout"));
        };
        let answers = lines_of(output, MAX_MESSAGE);
        Ok(Self::Fed(Fed { text: text.to_owned(), child, input, answers }))
    }

    pub(super) fn send(&mut self, step: &Step, actions: &[String]) -> Result<(), String> {
        match self {
            Self::Started(text) => run(text, &told(step, actions).to_string()),
            Self::Fed(fed) => fed.send(&told(step, actions).to_string()),
            Self::Asked(person) => person.ask(step),
        }
    }
}

pub(super) fn run(text: &str, told: &str) -> Result<(), String> {
    let child = shell(text).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("`{text}` cannot be started: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read it is not at fault.
        _ = writeln!(input, "{told}");
    }
    let errors = child.stderr.take();
    let (sender, said) = bounded(1);
    thread::spawn(move || {
        let mut message = Vec::new();
        if let Some(mut errors) = errors {
            _ = errors.by_ref().take(MAX_MESSAGE).read_to_end(&mut message);
            _ = std::io::copy(&mut errors, &mut std::io::sink());
        }
        _ = sender.send(String::from_utf8_lossy(&message).trim().to_owned());
    });
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < MAX_DURATION => thread::sleep(BETWEEN_CHECKS),
            Ok(None) => {
                end(&mut child);
                return Err(format!("it took longer than {} s", MAX_DURATION.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    if status.success() {
        return Ok(());
    }
    // Something that it started may still hold its stderr: then its end is not waited for.
    let message = said.recv_timeout(MAX_LATE).unwrap_or_default();
    Err(format!("{status}{}{message}", if message.is_empty() { "" } else { ": " }))
}

impl Fed {
    fn send(&mut self, told: &str) -> Result<(), String> {
        while self.answers.try_recv().is_ok() {}
        let fed = writeln!(self.input, "{told}").and_then(|()| self.input.flush());
        fed.map_err(|error| self.ended(&error.to_string()))?;
        match self.answers.recv_timeout(MAX_DURATION) {
            Ok(answer) => match answer.trim() {
                "ok" => Ok(()),
                other => Err(other.to_owned()),
            },
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer within {} s", MAX_DURATION.as_secs())),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended("its output ended")),
        }
    }

    fn ended(&self, reason: &str) -> String {
        format!("`{}` has ended: {reason}", self.text)
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// How often it is looked whether the recording was interrupted.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Nobody waits so long between the device and Enter: what came before was not this command, in nanoseconds.
pub(super) const HANDS_NS: i64 = 30_000_000_000;

pub(super) struct Person {
    answers: Receiver<String>,
    interrupt: Interrupt,
    /// Whether they said that the command before the present one went wrong.
    pub(super) takes_back_last: bool,
}

impl Person {
    pub(super) fn new(interrupt: Interrupt) -> Self {
        Self { answers: lines_of(io::stdin(), MAX_MESSAGE), interrupt, takes_back_last: false }
    }

    /// Asks for a command until it is done. `Err` is why it was not.
    pub(super) fn ask(&mut self, step: &Step) -> Result<(), String> {
        self.takes_back_last = false;
        let together = if step.devices.len() > 1 { ", as one command" } else { "" };
        let command = format!("{:>3}.  {}{together}", step.number, escaped(&listed(&step.devices)));
        let line = "═".repeat(command.chars().count() + 2);
        let keys = "Enter when it is done · s to skip it · u if the last one went wrong";
        let told = |text: String| writeln!(io::stderr(), "{text}").map_err(|error| error.to_string());
        told(format!("\n  {line}\n  {command}\n  {line}\n  {keys}"))?;
        loop {
            match self.answers.recv_timeout(BETWEEN_LOOKS) {
                Ok(answer) => match answer.trim() {
                    "" => return Ok(()),
                    "s" => return Err("skipped".to_owned()),
                    "u" => {
                        self.takes_back_last = true;
                        told(format!("  The last one does not count. {command}"))?;
                    }
                    _ => told(format!("  {keys}"))?,
                },
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_set() => return Err("interrupted".to_owned()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err("stdin has ended: nobody answers".to_owned()),
            }
        }
    }
}

const QUEUE: usize = 16;

/// The lines of an input, while there are any, each with its end; a line of more than `most` bytes comes in parts.
pub(crate) fn lines_of(input: impl Read + Send + 'static, most: u64) -> Receiver<String> {
    let (sender, lines) = bounded(QUEUE);
    thread::spawn(move || {
        let mut input = BufReader::new(input);
        let mut line = String::new();
        while matches!(input.by_ref().take(most).read_line(&mut line), Ok(1..)) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    lines
}

pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
