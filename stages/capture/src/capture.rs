//! The stage: capture files in, packets out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::what;
use sizeleak_runtime::{Interrupt, Source, SourceEmit, StageError};

use crate::capture_driver::{CaptureDriver, fast};
use crate::error::{CaptureError, Damage};
use crate::merge::Merge;
use crate::notice::{Failures, NAME, notice};
use crate::packet_batcher::{PacketCounts, Selection};

/// Reads captures and emits their packets in order of time.
#[derive(Debug)]
pub struct Capture {
    files: Vec<PathBuf>,
    selection: Selection,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    bytes: u64,
    packets: PacketCounts,
    left_out: u64,
    files: u64,
    skipped_blocks: u64,
    skipped_files: u64,
    damaged_files: u64,
}

impl Capture {
    /// Reads these files, and all files below those that are folders; `-` is stdin.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self { files, selection: Selection::All, counters: Counters::default() }
    }

    /// Passes on this selection of the packets.
    #[must_use]
    pub(crate) fn selecting(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }
}

impl Source for Capture {
    const NAME: &'static str = NAME;

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        let mut failures = Failures::default();
        let files = self.all_files(&mut failures, out)?;
        let unreadable_folders = failures.count;
        self.counters.files = files.len() as u64;
        let progress = out.progress();
        if let Some(total) = total_bytes(&files) {
            progress.expect(total);
        }
        let (merge, errors) = Merge::new(files, interrupt, &progress);
        for error in errors {
            if self.is_recursive() && matches!(error.damage, Damage::NotCapture(_) | Damage::Empty) {
                self.counters.skipped_files += 1;
                out.emit(notice(what::UNSUPPORTED, None, &error).into())?;
            } else {
                failures.report(error, None, out)?;
            }
        }
        let mut driver = CaptureDriver::new(merge, &self.selection, &mut failures, out, interrupt);
        fast::run(&mut driver)?;
        let CaptureDriver { merge, batcher, .. } = driver;
        (self.counters.bytes, self.counters.skipped_blocks) = (merge.bytes, merge.skipped_blocks);
        (self.counters.packets, self.counters.left_out) = (batcher.counts, batcher.left_out());
        self.counters.damaged_files = failures.count - unreadable_folders;
        failures.into_result()
    }

    fn bytes_in(&self) -> u64 {
        self.counters.bytes
    }

    fn frames_in(&self) -> u64 {
        self.counters.packets.packets
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("files", self.counters.files),
            ("snaplen_cut", self.counters.packets.snaplen_cut),
            ("left_out", self.counters.left_out),
            ("skipped_blocks", self.counters.skipped_blocks),
            ("skipped_files", self.counters.skipped_files),
            ("damaged_files", self.counters.damaged_files),
        ]
    }
}

impl Capture {
    fn is_recursive(&self) -> bool {
        self.files.iter().any(|file| file.is_dir())
    }

    /// The files, folders replaced by all files below them in order of their paths.
    fn all_files(&self, failures: &mut Failures, out: &mut dyn SourceEmit) -> Result<Vec<PathBuf>, StageError> {
        let mut all = Vec::new();
        for file in &self.files {
            if !file.is_dir() {
                all.push(file.clone());
                continue;
            }
            let before = all.len();
            if let Err(source) = files_below(file, &mut all) {
                failures.report(CaptureError { file: file.clone(), damage: Damage::Open(source) }, None, out)?;
            }
            if let Some(found) = all.get_mut(before..) {
                found.sort();
            }
        }
        Ok(all)
    }
}

/// The size of these files together; `None` if the size of one is unknown.
fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let length = |file: &PathBuf| fs::metadata(file).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    files.iter().map(length).sum()
}

/// Appends all files below a folder, in no particular order; `capture` reads them in order of their paths. Links to folders
/// are not followed: they may form loops.
///
/// # Errors
/// A folder that cannot be read.
pub fn files_below(folder: &Path, all: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_symlink() && entry.path().is_dir() => {}
                _ => all.push(entry.path()),
            }
        }
    }
    Ok(())
}
