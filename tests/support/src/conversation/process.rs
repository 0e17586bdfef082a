//! A program that runs beside the test: sends it bytes, waits for bytes from it, and ends it with the test.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The longest wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which output of a program is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Its standard output; its standard input is written to.
    InOut,
    /// Its standard error.
    Error,
}

/// A running program; it ends when this is dropped.
pub(crate) struct Running {
    name: String,
    child: Child,
    heard: Receiver<Vec<u8>>,
    /// Read but not yet expected.
    pending: Vec<u8>,
}

impl Running {
    pub(crate) fn start(mut command: Command, ends: Ends) -> Result<Self, String> {
        let name = format!("{command:?}");
        let (input, output, error) = match ends {
            Ends::InOut => (Stdio::piped(), Stdio::piped(), Stdio::null()),
            Ends::Error => (Stdio::null(), Stdio::null(), Stdio::piped()),
        };
        let started = command.stdin(input).stdout(output).stderr(error).spawn();
        let mut child = started.map_err(|error| format!("{name}: {error}"))?;
        let source: Box<dyn Read + Send> = match (child.stdout.take(), child.stderr.take()) {
            (Some(output), _) => Box::new(output),
            (None, Some(error)) => Box::new(error),
            (None, None) => return Err(format!("{name}: no output to read")),
        };
        Ok(Self { name, child, heard: listen(source), pending: Vec::new() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("no standard input")?;
        input.write_all(bytes).and_then(|()| input.flush()).map_err(|error| format!("{}: {error}", self.name))
    }

    /// Waits for exactly these bytes.
    pub(crate) fn expect(&mut self, bytes: &[u8]) -> Result<(), String> {
        while self.pending.len() < bytes.len() {
            self.read_more()?;
        }
        let rest = self.pending.split_off(bytes.len());
        let heard = std::mem::replace(&mut self.pending, rest);
        if heard == bytes { Ok(()) } else { Err(format!("{}: other bytes than expected", self.name)) }
    }

    /// Waits for a line with this in it.
    pub(crate) fn expect_line(&mut self, part: &str) -> Result<(), String> {
        while !String::from_utf8_lossy(&self.pending).contains(part) {
            self.read_more()?;
        }
        Ok(())
    }

    /// Stops it like Ctrl-C and waits for its end; returns its last output.
    pub(crate) fn interrupt(mut self) -> Result<String, String> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or("no such process")?;
        kill_process(pid, Signal::INT).map_err(|error| format!("{}: {error}", self.name))?;
        self.child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        // Its end closes the pipe, so this ends.
        while self.read_more().is_ok() {}
        Ok(String::from_utf8_lossy(&self.pending).into_owned())
    }

    fn read_more(&mut self) -> Result<(), String> {
        let heard = self.heard.recv_timeout(PATIENCE);
        let heard = heard.map_err(|_| format!("{}: no further output", self.name))?;
        self.pending.extend(heard);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Reads on a thread of its own, so that waiting can time out. The thread ends with the program.
fn listen(mut source: Box<dyn Read + Send>) -> Receiver<Vec<u8>> {
    let (sender, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count @ 1..) = source.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    heard
}
