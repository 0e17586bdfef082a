//! The stage for live capture: an interface instead of files, through tcpdump, which leaves root by itself.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sizeleak_frame::what;
use sizeleak_platform::runtime::{
    FileProgress, Interrupt, Progress, Source, SourceCounts, SourceEmit, StageError, becomes_ready, is_ready,
};

use crate::capture_driver::CaptureDriver;
use crate::error::{CaptureError, Damage, Failures, NAME, notice};
use crate::merge::{CaptureOrder, Merge, OpenCapture};
use crate::packet_batcher::Selection;
use crate::reader::CaptureReader;

/// What the kernel buffers in KiB: tcpdump's own 2 MiB are full after a fifth of a second at 100 Mbit/s.
const KERNEL_BUFFER_KIB: &str = "8192";

/// A tcpdump that has not ended this long after it was asked to is killed.
const MAX_END: Duration = Duration::from_secs(2);

const MAX_SAID_BYTES: usize = 4096;

/// A tcpdump that captures an interface. It is killed when this is dropped.
#[derive(Debug)]
pub struct Tcpdump {
    interface: String,
    child: Child,
    said: Option<ChildStderr>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    pub(crate) kernel: u64,
    pub(crate) interface: u64,
}

impl Tcpdump {
    /// Starts to capture at most `snaplen` bytes of each packet that passes `filter`, tcpdump's own expression. Returns
    /// where it writes the capture, each packet at once.
    pub fn start(interface: &str, snaplen: Option<u32>, filter: Option<&str>) -> io::Result<(Self, ChildStdout)> {
        let mut command = Command::new("tcpdump");
        command.args(["-i", interface, "-B", KERNEL_BUFFER_KIB, "-U", "--immediate-mode", "-w", "-"]);
        if let Some(snaplen) = snaplen {
            command.args(["-s", &snaplen.to_string()]);
        }
        if let Some(filter) = filter {
            command.args(["--", filter]);
        }
        // Ctrl-C does not reach it: whoever reads ends it, and then reads the rest.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let fault = |fault: String| io::Error::other(format!("{interface}: {fault}"));
        let mut child = command.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => fault(
                "there is no tcpdump on the PATH, which captures interfaces: install it (Debian and Ubuntu: `apt-get \
                 install tcpdump`; Fedora: `dnf install tcpdump`; macOS has it), or pipe another capture into `capture -`"
                    .to_owned(),
            ),
            _ => fault(format!("tcpdump cannot be started: {error}")),
        })?;
        let (output, said) = (child.stdout.take(), child.stderr.take());
        let tcpdump = Self { interface: interface.to_owned(), child, said };
        let output = output.ok_or_else(|| fault("tcpdump has no stdout".to_owned()))?;
        Ok((tcpdump, output))
    }

    /// Waits for its end, which whoever has read all of its output does. Returns what was lost, and why it has ended
    /// unless that was asked for.
    pub(crate) fn end(&mut self) -> (Drops, io::Result<()>) {
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if start.elapsed() < MAX_END => thread::sleep(Duration::from_millis(5)),
                _ => break None,
            }
        };
        let said = self.said.take().map(said_by).unwrap_or_default();
        let fault = match status {
            Some(status) if status.success() => return (drops(&said), Ok(())),
            Some(status) => format!("tcpdump has ended ({status})"),
            None => "tcpdump writes no capture".to_owned(),
        };
        let words = message(&said);
        let colon = if words.is_empty() { "" } else { ": " };
        let fault = format!("{}: {fault}{colon}{words}; what was captured before is processed", self.interface);
        (drops(&said), Err(io::Error::other(fault)))
    }

    pub fn fault(&mut self) -> io::Error {
        let ended = self.end().1.err();
        ended.unwrap_or_else(|| io::Error::other(format!("{}: tcpdump has ended", self.interface)))
    }
}

/// What tcpdump writes. When `interrupt` is set it is asked to end, as by Ctrl-C, and the rest is read.
struct LiveOutput {
    output: ChildStdout,
    tcpdump: Pid,
    interrupt: Interrupt,
    asked: Option<Instant>,
}

impl Read for LiveOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.asked.is_none() && self.interrupt.is_set() {
                // It may have ended.
                _ = kill_process(self.tcpdump, Signal::INT);
                self.asked = Some(Instant::now());
            }
            let is_late = self.asked.is_some_and(|asked| asked.elapsed() > MAX_END);
            if is_late {
                _ = kill_process(self.tcpdump, Signal::KILL);
            }
            if becomes_ready(&self.output) {
                return self.output.read(buffer);
            }
            if is_late {
                return Ok(0);
            }
        }
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        // One that runs as another user cannot be killed, and is not waited for: it ends at its next packet.
        if self.child.kill().is_ok() {
            _ = self.child.wait();
        }
    }
}

/// What a tcpdump that has ended has said. What it has started may still hold the pipe.
fn said_by(mut said: ChildStderr) -> String {
    let mut bytes = vec![0; MAX_SAID_BYTES];
    let mut length = 0;
    while length < MAX_SAID_BYTES && is_ready(&said) {
        match bytes.get_mut(length..).map_or(Ok(0), |rest| said.read(rest)) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    bytes.truncate(length);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn drops(said: &str) -> Drops {
    let count = |by: &str| {
        let count = said.lines().find_map(|line| line.strip_suffix(by)?.split(' ').next()?.parse().ok());
        count.unwrap_or(0)
    };
    Drops { kernel: count(" dropped by kernel"), interface: count(" dropped by interface") }
}

/// What it says apart from what it always says, in one line.
fn message(said: &str) -> String {
    let is_usual = |line: &str| {
        line.starts_with("tcpdump: listening on ")
            || line.starts_with("dropped privs to ")
            || [" captured", " received by filter", " dropped by kernel", " dropped by interface"]
                .iter()
                .any(|end| line.ends_with(end))
    };
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && !is_usual(line));
    lines.map(|line| line.strip_prefix("tcpdump: ").unwrap_or(line)).collect::<Vec<_>>().join(" ")
}

#[derive(Debug)]
pub(crate) struct LiveCapture {
    tcpdump: Tcpdump,
    output: Option<ChildStdout>,
    selection: Selection,
    counts: SourceCounts,
}

impl LiveCapture {
    pub(crate) fn new((tcpdump, output): (Tcpdump, ChildStdout), selection: Selection) -> Self {
        Self { tcpdump, output: Some(output), selection, counts: SourceCounts::default() }
    }

    /// A merge of what tcpdump writes alone, and why that is no capture.
    fn open(&mut self, progress: &FileProgress, interrupt: &Interrupt) -> (Merge, Option<CaptureError>) {
        let (mut merge, _) = Merge::new(Vec::new(), CaptureOrder::Time, &Interrupt::new(), &Progress::new());
        let Some(output) = self.output.take() else { return (merge, None) };
        let file = PathBuf::from(&self.tcpdump.interface);
        let opened = output.as_fd().try_clone_to_owned().map_err(Damage::Open).and_then(|handle| {
            let (tcpdump, interrupt) = (Pid::from_child(&self.tcpdump.child), interrupt.clone());
            let output = LiveOutput { output, tcpdump, interrupt, asked: None };
            Ok((CaptureReader::new(Box::new(progress.watch(output, 0)))?, handle))
        });
        let started = match opened {
            Ok((reader, handle)) => merge.advance(Box::new(OpenCapture::of_stream(file, reader, handle))),
            Err(damage) => Err(CaptureError { file, damage }),
        };
        (merge, started.err())
    }

    fn report_drops(&self, drops: Drops, last_ns: Option<i64>, out: &mut dyn SourceEmit) -> Result<(), StageError> {
        let Drops { kernel, interface } = drops;
        if kernel + interface > 0 {
            let detail = format!(
                "{}: {} packets were dropped ({kernel} by the kernel, {interface} by the interface): they came faster than \
                 they were read",
                self.tcpdump.interface,
                kernel + interface
            );
            out.emit(notice(what::GAP, last_ns, &detail).into())?;
        }
        Ok(())
    }
}

impl Source for LiveCapture {
    const NAME: &'static str = NAME;

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        let (merge, unopened) = self.open(&FileProgress::new(&out.progress()), interrupt);
        let mut failures = Failures::default();
        // A user who stops ends tcpdump, and all that it has captured is read.
        let stop = Interrupt::new();
        let mut driver = CaptureDriver::new(merge, &self.selection, &mut failures, out, &stop);
        driver.run()?;
        let CaptureDriver { merge, batcher, .. } = driver;
        let (drops, ended) = self.tcpdump.end();
        self.report_drops(drops, batcher.last_ns(), out)?;
        let counters = vec![
            ("snaplen_cut", batcher.counts.snaplen_cut),
            ("left_out", batcher.left_out()),
            ("kernel_drops", drops.kernel),
            ("interface_drops", drops.interface),
        ];
        self.counts = SourceCounts { bytes_in: merge.bytes, frames_in: batcher.counts.packets, counters };
        if interrupt.is_set() {
            return Ok(());
        }
        ended.map_err(StageError::failed)?;
        if let Some(unopened) = unopened {
            failures.report(unopened, None, out)?;
        }
        failures.into_result()
    }

    fn counts(&self) -> SourceCounts {
        self.counts.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_lines_are_no_message_and_drops_are_counted() {
        let said = "tcpdump: listening on eth1, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n\
                    7 packets captured\n12 packets received by filter\n3 packets dropped by kernel\n\
                    1 packet dropped by interface\n";
        assert_eq!((message(said), drops(said)), (String::new(), Drops { kernel: 3, interface: 1 }));
        let denied =
            "tcpdump: eth1: You don't have permission to capture on that device\n(socket: Operation not permitted)\n";
        assert_eq!(
            message(denied),
            "eth1: You don't have permission to capture on that device (socket: Operation not permitted)"
        );
        assert_eq!(drops(denied), Drops::default());
    }
}
