//! A bar on stderr that shows how much of the captures was read, how fast, and how long the rest takes.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::{Args, ValueEnum};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sizeleak_telemetry::Progress;
use sizeleak_telemetry::log::{Drawing, LogFlags, LogFormat, Screen};

/// How often the bar is drawn anew.
const EVERY: Duration = Duration::from_millis(100);

/// Where the end is known.
const KNOWN: &str = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// Where it is not, as of a pipe.
const UNKNOWN: &str = "{spinner} {bytes} read, {bytes_per_sec}, {elapsed}";

/// Where what is read is not known either, since other processes do it.
const ELSEWHERE: &str = "{spinner} {elapsed}";

/// The flag that says when there is a bar.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ProgressFlags {
    /// When a progress bar is drawn on stderr
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    progress: When,
}

/// When a progress bar is drawn: never where stderr is no terminal, nor beside rows on the same terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal, while rows are written to a file
    #[default]
    Auto,
    /// On a terminal, also while rows go into a pipe
    Always,
    /// Not at all
    Never,
}

impl ProgressFlags {
    /// Begins to draw, if it is to be; rows go to `output`.
    pub(super) fn begin(&self, progress: &Progress, screen: &Screen, output: &File, log: &LogFlags) -> Option<Bar> {
        let is_disturbed = match self.progress {
            When::Auto => is_terminal_or_pipe(output),
            When::Always => output.is_terminal(),
            When::Never => true,
        };
        let is_text = log.format() == LogFormat::Text && !log.is_quiet();
        (is_text && !is_disturbed && io::stderr().is_terminal())
            .then(|| Bar::begin(progress.clone(), screen.clone()))?
    }
}

/// Whether a person may see rows on the way: a pipe may well end on the same terminal.
fn is_terminal_or_pipe(output: &File) -> bool {
    let is_pipe = output.metadata().is_ok_and(|output| output.file_type().is_fifo() || output.file_type().is_socket());
    is_pipe || output.is_terminal()
}

/// A bar that is drawn until it is dropped, and leaves nothing behind.
pub(super) struct Bar {
    drawn: ProgressBar,
    screen: Screen,
    /// Its end tells the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// `None` where no thread can be had.
    fn begin(progress: Progress, screen: Screen) -> Option<Self> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let (alive, ended) = bounded(0);
        let drawn = bar.clone();
        let draw = move || draw(&drawn, &progress, &ended);
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(draw).ok()?;
        screen.draw(Some(Box::new(Drawn(bar.clone()))));
        Some(Self { drawn: bar, screen, alive: Some(alive), thread: Some(thread) })
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        drop(self.alive.take());
        // Had it panicked, nothing would be drawn any more.
        let _ended = self.thread.take().map(JoinHandle::join);
        self.screen.draw(None);
        self.drawn.finish_and_clear();
    }
}

/// What lines on the same screen are written above.
struct Drawn(ProgressBar);

impl Drawing for Drawn {
    fn suspend(&self, write: &mut dyn FnMut()) {
        self.0.suspend(write);
    }
}

fn draw(bar: &ProgressBar, progress: &Progress, ended: &Receiver<()>) {
    let mut template = "";
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
        let (read, total) = (progress.read(), progress.total());
        let wanted = match total {
            _ if read == 0 => ELSEWHERE,
            Some(_) => KNOWN,
            None => UNKNOWN,
        };
        if wanted != template {
            template = wanted;
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(total.map_or(read, |total| read.min(total)));
        bar.tick();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_can_be_read() {
        for template in [KNOWN, UNKNOWN, ELSEWHERE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
