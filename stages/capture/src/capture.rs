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
use crate::packet_batcher::Selection;

/// Reads captures and emits their packets in order of time.
#[derive(Debug)]
pub struct Capture {
    files: Vec<PathBuf>,
    selection: Selection,
    bytes: u64,
    packets: u64,
    counters: Vec<(&'static str, u64)>,
}

impl Capture {
    /// Reads these files, and all files below those that are folders; `-` is stdin.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self { files, selection: Selection::All, bytes: 0, packets: 0, counters: Vec::new() }
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
        let (file_count, mut skipped_files) = (files.len() as u64, 0);
        let progress = out.progress();
        if let Some(total) = total_bytes(&files) {
            progress.expect(total);
        }
        let (merge, errors) = Merge::new(files, interrupt, &progress);
        for error in errors {
            if self.is_recursive() && matches!(error.damage, Damage::NotCapture(_) | Damage::Empty) {
                skipped_files += 1;
                out.emit(notice(what::UNSUPPORTED, None, &error).into())?;
            } else {
                failures.report(error, None, out)?;
            }
        }
        let mut driver = CaptureDriver::new(merge, &self.selection, &mut failures, out, interrupt);
        fast::run(&mut driver)?;
        let CaptureDriver { merge, batcher, .. } = driver;
        (self.bytes, self.packets) = (merge.bytes, batcher.counts.packets);
        self.counters = vec![
            ("files", file_count),
            ("snaplen_cut", batcher.counts.snaplen_cut),
            ("left_out", batcher.left_out()),
            ("skipped_blocks", merge.skipped_blocks),
            ("skipped_files", skipped_files),
            ("damaged_files", failures.count - unreadable_folders),
        ];
        failures.into_result()
    }

    fn bytes_in(&self) -> u64 {
        self.bytes
    }

    fn frames_in(&self) -> u64 {
        self.packets
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counters.clone()
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

/// The total size of these files in bytes; `None` if the size of one is unknown.
fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let length = |file: &PathBuf| fs::metadata(file).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    files.iter().map(length).sum()
}

/// Appends all files below a folder, in no particular order; `capture` reads them in order of their paths. Links to
/// folders are not followed: they may form loops.
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
