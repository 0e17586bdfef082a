//! The stage: captures in, packets out.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Notice, what};
use sizeleak_runtime::{Closed, Interrupt, Source, SourceEmit, StageError};

use crate::capture_driver::CaptureDriver;
use crate::error::{CaptureError, Damage};
use crate::merge::Merge;
use crate::packet_batcher::{Counts as Gathered, PacketBatcher, Selection};

/// The stage's name.
pub(crate) const NAME: &str = "capture";

/// Reads captures and emits their packets in order of time.
#[derive(Debug)]
pub struct Capture {
    files: Vec<PathBuf>,
    selection: Selection,
    bytes: u64,
    counts: Counts,
    gathered: Gathered,
}

#[derive(Debug, Default)]
struct Counts {
    files: u64,
    skipped_blocks: u64,
    skipped_files: u64,
    damaged_files: u64,
}

impl Capture {
    /// Reads these files, and all below those that are folders; `-` is stdin.
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self { files, selection: Selection::All, bytes: 0, counts: Counts::default(), gathered: Gathered::default() }
    }

    /// Hands on this selection of their packets.
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
        self.counts.files = files.len() as u64;
        let progress = out.progress();
        if let Some(total) = total_bytes(&files) {
            progress.expect(total);
        }
        let (merge, errors) = Merge::new(files, interrupt, &progress);
        for error in errors {
            if self.is_recursive() && matches!(error.damage, Damage::NotCapture(_) | Damage::Empty) {
                self.counts.skipped_files += 1;
                out.emit(notice(what::UNSUPPORTED, None, &error).into())?;
            } else {
                self.counts.damaged_files += 1;
                failures.tell(error, None, out)?;
            }
        }
        let mut emission = CaptureDriver::new(merge, &self.selection, &mut failures, out, interrupt);
        emission.run()?;
        let CaptureDriver { merge, filling, damaged_files, .. } = emission;
        (self.bytes, self.counts.skipped_blocks) = (merge.bytes, merge.skipped);
        self.counts.damaged_files += damaged_files;
        self.gathered = filling.counts;
        match failures.first {
            Some(error) => Err(StageError::failed(error)),
            None => Ok(()),
        }
    }

    fn bytes_in(&self) -> u64 {
        self.bytes
    }

    fn frames_in(&self) -> u64 {
        self.gathered.packets
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("files", self.counts.files),
            ("snaplen_cut", self.gathered.snaplen_cut),
            ("left_out", self.gathered.left_out),
            ("skipped_blocks", self.counts.skipped_blocks),
            ("skipped_files", self.counts.skipped_files),
            ("damaged_files", self.counts.damaged_files),
        ]
    }
}

impl Capture {
    fn is_recursive(&self) -> bool {
        self.files.iter().any(|file| file.is_dir())
    }

    /// The files themselves and, in order of their paths, all below the folders among them.
    fn all_files(&self, failures: &mut Failures, out: &mut dyn SourceEmit) -> Result<Vec<PathBuf>, StageError> {
        let mut all = Vec::new();
        for file in &self.files {
            if !file.is_dir() {
                all.push(file.clone());
                continue;
            }
            let before = all.len();
            if let Err(source) = files_below(file, &mut all) {
                failures.tell(CaptureError { file: file.clone(), damage: Damage::Open(source) }, None, out)?;
            }
            if let Some(found) = all.get_mut(before..) {
                found.sort();
            }
        }
        Ok(all)
    }
}

/// Bytes of these files together; `None` where one of them is none that has a length.
fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let length = |file: &PathBuf| fs::metadata(file).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    files.iter().map(length).sum()
}

/// Appends all regular files below a folder, in no order; `capture` reads them in that of their paths. Links to folders are
/// not followed: they may lead in circles.
///
/// # Errors
/// The system's.
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

/// What went wrong so far: told at once, and returned once everything that can be read is.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    first: Option<CaptureError>,
}

impl Failures {
    pub(crate) fn tell(
        &mut self,
        error: CaptureError,
        time_ns: Option<i64>,
        out: &mut dyn SourceEmit,
    ) -> Result<(), Closed> {
        let what = if error.damage.is_cut() { what::TRUNCATED } else { what::MALFORMED };
        out.emit(notice(what, time_ns, &error).into())?;
        self.first.get_or_insert(error);
        Ok(())
    }
}

pub(crate) fn notice(what: &'static str, time_ns: Option<i64>, error: &impl Display) -> Notice {
    Notice {
        time_ns,
        stage: Capture::NAME.into(),
        flow: None,
        what: what.into(),
        bytes: None,
        detail: Some(error.to_string()),
    }
}

/// Hands on what has gathered.
pub(crate) fn send(filling: &mut PacketBatcher, out: &mut dyn SourceEmit) -> Result<(), Closed> {
    filling.finish().map_or(Ok(()), |batch| out.emit(batch.into()))
}
