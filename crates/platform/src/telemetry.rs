//! The observable state of a running pipeline: counters and times of its stages, progress through the input, messages
//! on stderr, and metrics over HTTP.
//!
//! A [`Telemetry`] collects the figures of a run. Each stage writes to its own [`Meter`]; observers read them at any
//! time:
//!
//! ```
//! use std::time::Duration;
//! use sizeleak_platform::telemetry::{FrameCounts, Telemetry};
//!
//! let telemetry = Telemetry::new();
//! let meter = telemetry.meter("record-sizer");
//! meter.figures().counts = FrameCounts { frames_in: 256, frames_out: 100, bytes_in: 90_000 };
//! meter.figures().service.record_shared(Duration::from_micros(40), 256);
//! assert_eq!(telemetry.meters()[0].figures().counts.frames_out, 100);
//! ```

mod latency;
pub mod log;
pub mod metrics;
mod tally;

pub use latency::{Latency, LatencyTable, write_latency_log};
pub use tally::{CaptureFaults, CountedNotice, NoticeTally, Tally};

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sizeleak_frame::Notice;

/// The figures of a running stage. Clones share them: the stage writes, observers read.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Metered>);

#[derive(Debug)]
struct Metered {
    stage: String,
    figures: Mutex<StageFigures>,
    progress: Progress,
}

#[derive(Debug, Default)]
pub struct StageFigures {
    pub counts: FrameCounts,
    /// The time it works on a frame.
    pub service: Latency,
    /// The time a frame waits for it.
    pub queue: Latency,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames consumed; each row of a batch counts.
    pub frames_in: u64,
    /// Frames made; each row of a batch counts.
    pub frames_out: u64,
    pub bytes_in: u64,
}

impl Meter {
    /// A meter for a stage of this name, whose source reports its reading to `progress`.
    pub fn new(stage: &str, progress: &Progress) -> Self {
        Self(Arc::new(Metered { stage: stage.to_owned(), figures: Mutex::default(), progress: progress.clone() }))
    }

    pub fn stage(&self) -> &str {
        &self.0.stage
    }

    /// Where a source reports how much it has read.
    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    /// The stage waits as long as these are held. It writes them once for some hundred frames.
    pub fn figures(&self) -> MutexGuard<'_, StageFigures> {
        lock(&self.0.figures)
    }
}

/// The figures of a run. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Telemetry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    progress: Progress,
    meters: Mutex<Vec<Meter>>,
    notices: Mutex<NoticeTally>,
    output: Mutex<Tally>,
}

impl Telemetry {
    pub fn new() -> Self {
        Self::default()
    }

    /// A meter for a stage. A name that is taken gets a number appended.
    pub fn meter(&self, stage: &str) -> Meter {
        let mut meters = lock(&self.0.meters);
        let is_taken = |name: &str| meters.iter().any(|meter| meter.stage() == name);
        let mut names = (2..).map(|number| format!("{stage}-{number}"));
        let name = if is_taken(stage) { names.find(|name| !is_taken(name)) } else { None };
        let meter = Meter::new(name.as_deref().unwrap_or(stage), &self.0.progress);
        meters.push(meter.clone());
        meter
    }

    pub fn progress(&self) -> &Progress {
        &self.0.progress
    }

    pub fn meters(&self) -> Vec<Meter> {
        lock(&self.0.meters).clone()
    }

    pub fn count_notice(&self, notice: &Notice) {
        lock(&self.0.notices).add(notice);
    }

    /// The number of notices by stage and [`Notice::what`]; beyond a number of names the rest is `other`.
    pub fn notices(&self) -> BTreeMap<(String, String), u64> {
        let notices = lock(&self.0.notices);
        notices.iter().map(|(stage, what, counted)| ((stage.to_owned(), what.to_owned()), counted.times)).collect()
    }

    /// Sets how many frames of each kind the last stage has made; each row of a batch counts.
    pub fn set_output(&self, counts: &Tally) {
        lock(&self.0.output).clone_from(counts);
    }

    pub fn output(&self) -> BTreeMap<String, u64> {
        lock(&self.0.output).0.clone()
    }
}

/// A panic while the lock was held leaves the counts valid.
fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of the input read so far, before decompression, and files. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<ReadCounts>>);

#[derive(Debug, Default)]
struct ReadCounts {
    read: u64,
    total: Option<u64>,
    files_done: u64,
    files: Option<u64>,
}

impl Progress {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many bytes there are to read.
    pub fn expect(&self, total: u64) {
        lock(&self.0).total = Some(total);
    }

    /// Adds bytes that were read. Call it once per buffer, not per packet.
    pub fn add(&self, bytes: u64) {
        lock(&self.0).read += bytes;
    }

    pub fn expect_files(&self, files: u64) {
        lock(&self.0).files = Some(files);
    }

    pub fn add_files(&self, files: u64) {
        lock(&self.0).files_done += files;
    }

    /// How many files are done, and how many there are; `None` if files are not counted.
    pub fn files(&self) -> Option<(u64, u64)> {
        let counts = lock(&self.0);
        let files = counts.files.filter(|files| *files > 0)?;
        Some((counts.files_done.min(files), files))
    }

    pub fn read(&self) -> u64 {
        lock(&self.0).read
    }

    /// Bytes to read in total; `None` if that is unknown, as for a pipe.
    pub fn total(&self) -> Option<u64> {
        lock(&self.0).total
    }
}

/// How far one file has been read. Bytes that are read again count once.
#[derive(Debug, Clone, Default)]
pub struct FileProgress {
    all: Progress,
    offset: Arc<AtomicU64>,
}

impl FileProgress {
    pub fn new(all: &Progress) -> Self {
        Self { all: all.clone(), offset: Arc::default() }
    }

    pub fn reach(&self, offset: u64) {
        let before = self.offset.fetch_max(offset, Ordering::Relaxed);
        self.all.add(offset.saturating_sub(before));
    }

    /// Counts what is read from `input`, whose next byte is at `offset`.
    pub fn watch<R>(&self, input: R, offset: u64) -> ProgressReader<R> {
        ProgressReader { input, offset, progress: self.clone() }
    }
}

#[derive(Debug)]
pub struct ProgressReader<R> {
    input: R,
    offset: u64,
    progress: FileProgress,
}

impl<R: Read> Read for ProgressReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.offset += count as u64;
        self.progress.reach(self.offset);
        Ok(count)
    }
}

impl<R: AsFd> AsFd for ProgressReader<R> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(stage: &str, what: String) -> Notice {
        Notice::new(stage.to_owned(), what, String::new())
    }

    #[test]
    fn repeated_stage_names_get_a_number() {
        let telemetry = Telemetry::new();
        let names = ["cat", "pruner", "cat", "cat-3", "cat"].map(|stage| telemetry.meter(stage).stage().to_owned());
        assert_eq!(names, ["cat", "pruner", "cat-2", "cat-3", "cat-4"]);
        assert_eq!(telemetry.meters().len(), 5);
    }

    #[test]
    fn figures_of_the_output_are_replaced_and_notices_counted() {
        let telemetry = Telemetry::new();
        for what in ["gap", "gap", "cut"] {
            telemetry.count_notice(&notice("mine", what.to_owned()));
        }
        assert_eq!(telemetry.notices()[&("mine".to_owned(), "gap".to_owned())], 2);
        let mut kinds = Tally::default();
        for _ in 0..2 {
            kinds.add("command", 5);
            telemetry.set_output(&kinds);
        }
        assert_eq!(telemetry.output(), [("command".to_owned(), 10)].into());
    }

    #[test]
    fn files_are_counted_where_their_number_is_known() {
        let progress = Progress::new();
        progress.add_files(1);
        assert_eq!(progress.files(), None);
        progress.expect_files(3);
        assert_eq!(progress.files(), Some((1, 3)));
        progress.add_files(7);
        assert_eq!(progress.files(), Some((3, 3)));
    }

    #[test]
    fn bytes_read_again_count_once() {
        let (progress, content) = (Progress::new(), [0; 100]);
        assert_eq!((progress.read(), progress.total()), (0, None));
        progress.expect(0);
        assert_eq!(progress.total(), Some(0));
        let (one, other) = (FileProgress::new(&progress), FileProgress::new(&progress));
        let read = |watched: &mut ProgressReader<&[u8]>, count| watched.read_exact(&mut vec![0; count]).unwrap();
        read(&mut one.watch(&content, 0), 60);
        assert_eq!(progress.read(), 60);
        read(&mut one.watch(&content[40..], 40), 10);
        assert_eq!(progress.read(), 60);
        read(&mut one.watch(&content[40..], 40), 60);
        read(&mut other.watch(&content, 0), 7);
        assert_eq!(progress.read(), 107);
    }
}
