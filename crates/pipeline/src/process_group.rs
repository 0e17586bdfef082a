//! The process group of a stage, which ends when this process does, however that happens.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tracing::warn;

/// What the guard of a group runs: a line says that the run is over; without one, this process is gone.
const GUARD: &str = "trap '' HUP INT TERM; echo; read -r line || kill -KILL 0";

/// A process group. Its first process is a guard in the shell, which waits for the end of a pipe from this process: the
/// system closes that pipe even if this process is killed. As long as the guard is not waited for, the number of the
/// group belongs to no other.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    guard: Child,
}

impl ProcessGroup {
    /// A new group. Without a shell there is none, which only means that a stage may outlive this process.
    pub(crate) fn begin(stage: &str) -> Option<Self> {
        let begun = Self::begin_in_shell();
        begun.map_err(|error| warn!(stage, "will not end if this program is killed: /bin/sh: {error}")).ok()
    }

    fn begin_in_shell() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", GUARD]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut group = Self { guard: command.process_group(0).spawn()? };
        // Until then a signal would end the guard.
        if let Some(mut ready) = group.guard.stdout.take() {
            ready.read_exact(&mut [0])?;
        }
        Ok(group)
    }

    /// Starts a program in this group.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        command.process_group(Pid::from_child(&self.guard).as_raw_nonzero().get()).spawn()
    }

    /// Sends a signal to all processes of the group.
    pub(crate) fn signal(&self, signal: Signal) {
        let _sent = kill_process_group(Pid::from_child(&self.guard), signal);
    }
}

/// The run is over: what is left of the group goes on by itself.
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // A guard that is gone needs no message.
        let _told = self.guard.stdin.take().map(|mut guard| guard.write_all(b"over\n"));
        let _ended = self.guard.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(group: &ProcessGroup) -> Child {
        group.spawn(Command::new("sleep").arg("1000")).unwrap()
    }

    #[test]
    fn group_ends_with_the_pipe_to_its_guard() {
        let mut group = ProcessGroup::begin("mine").unwrap();
        let mut child = sleeper(&group);
        group.signal(Signal::URG);
        drop(group.guard.stdin.take());
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn processes_go_on_after_the_end_of_a_run() {
        let group = ProcessGroup::begin("mine").unwrap();
        let mut child = sleeper(&group);
        // The guard itself ignores these.
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            kill_guard(&group, signal);
        }
        drop(group);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn kill_guard(group: &ProcessGroup, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&group.guard), signal).unwrap();
    }
}
