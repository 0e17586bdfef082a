//! A progress bar on stderr: how much of the captures has been read, how fast, and how long the rest takes.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::{Args, ValueEnum};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sizeleak_platform::telemetry::Progress;
use sizeleak_platform::telemetry::log::{Drawing, MESSAGES, Screen, is_for_people};

const INTERVAL: Duration = Duration::from_millis(100);

/// With a message where there are several files.
const KNOWN_TOTAL: &str = "{wide_bar} {bytes} of {total_bytes}{msg}, {bytes_per_sec}, {eta} left";

/// If it is not, as with a pipe.
const UNKNOWN_TOTAL: &str = "{spinner} {bytes} read, {bytes_per_sec}, {elapsed}";

/// If other processes read the captures.
const NOTHING_KNOWN: &str = "{spinner} {elapsed}";

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ProgressFlags {
    /// When a terminal has a progress bar: auto (while rows go to a file), always (or to a pipe) or never
    #[arg(long, value_name = "WHEN", value_enum, default_value_t, hide_possible_values = true, hide_default_value = true, help_heading = MESSAGES)]
    progress: ProgressMode,
}

/// When a progress bar is drawn: never unless stderr is a terminal, and never between rows on the same terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ProgressMode {
    /// On a terminal, while rows go to a file
    #[default]
    Auto,
    /// On a terminal, also while rows go to a pipe
    Always,
    /// Never
    Never,
}

impl ProgressFlags {
    pub(super) fn begin(&self, progress: &Progress, screen: &Screen, output: &File) -> Option<Bar> {
        let is_mixed_with_rows = match self.progress {
            ProgressMode::Auto => is_terminal_or_pipe(output),
            ProgressMode::Always => output.is_terminal(),
            ProgressMode::Never => true,
        };
        if is_mixed_with_rows { None } else { Bar::of_people(progress, screen) }
    }
}

/// Whether rows may appear on the same terminal: a pipe may end there.
fn is_terminal_or_pipe(output: &File) -> bool {
    let is_pipe = output.metadata().is_ok_and(|output| output.file_type().is_fifo() || output.file_type().is_socket());
    is_pipe || output.is_terminal()
}

/// A progress bar that is drawn until it is dropped and leaves no trace.
pub(super) struct Bar {
    drawn: ProgressBar,
    screen: Screen,
    /// Dropping it ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    pub(super) fn of_people(progress: &Progress, screen: &Screen) -> Option<Self> {
        if !is_for_people() || !io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let (alive, ended) = bounded(0);
        let (drawn, progress) = (bar.clone(), progress.clone());
        let draw = move || draw(&drawn, &progress, &ended);
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(draw).ok()?;
        screen.draw(Some(Box::new(DrawnBar(bar.clone()))));
        Some(Self { drawn: bar, screen: screen.clone(), alive: Some(alive), thread: Some(thread) })
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        drop(self.alive.take());
        // After a panic nothing is drawn any more.
        let _ended = self.thread.take().map(JoinHandle::join);
        self.screen.draw(None);
        self.drawn.finish_and_clear();
    }
}

struct DrawnBar(ProgressBar);

impl Drawing for DrawnBar {
    fn suspend(&self, write: &mut dyn FnMut()) {
        self.0.suspend(write);
    }
}

fn draw(bar: &ProgressBar, progress: &Progress, ended: &Receiver<()>) {
    let mut template = "";
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(INTERVAL) {
        let (read, total, files) = (progress.read(), progress.total(), progress.files());
        let wanted = match total {
            _ if read == 0 => NOTHING_KNOWN,
            Some(_) => KNOWN_TOTAL,
            None => UNKNOWN_TOTAL,
        };
        if wanted != template {
            template = wanted;
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        if let Some(total) = total {
            bar.set_length(total);
        }
        if let Some((done, all)) = files {
            bar.set_message(format!(", {done} of {all} files"));
        }
        bar.set_position(total.map_or(read, |total| read.min(total)));
        bar.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_valid() {
        for template in [KNOWN_TOTAL, UNKNOWN_TOTAL, NOTHING_KNOWN] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
