//! The stage: capture files in, packets out.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use sizeleak_frame::what;
use sizeleak_platform::runtime::{Interrupt, Source, SourceCounts, SourceEmit, StageError};

use crate::capture_driver::{CaptureDriver, Dating, LOST_BEFORE_NS, fast};
use crate::error::{CaptureError, Damage, Failures, NAME, notice};
use crate::merge::{CaptureOrder, Merge};
use crate::open::{content_below, is_named_capture};
use crate::packet_batcher::Selection;

#[derive(Debug)]
pub struct Capture {
    files: Vec<PathBuf>,
    /// Else a folder is reported as a file that cannot be read.
    pub(crate) reads_folders: bool,
    order: CaptureOrder,
    pub(crate) selection: Selection,
    counts: SourceCounts,
}

impl Capture {
    /// Reads these files, and all files below those that are folders; `-` is stdin.
    pub fn new(files: Vec<PathBuf>) -> Self {
        let (order, selection) = (CaptureOrder::Time, Selection::All);
        Self { files, reads_folders: true, order, selection, counts: SourceCounts::default() }
    }

    #[must_use]
    pub fn in_order(self, order: CaptureOrder) -> Self {
        Self { order, ..self }
    }
}

impl Source for Capture {
    const NAME: &'static str = NAME;

    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError> {
        let mut failures = Failures::default();
        let (files, mut skipped) = self.all_files(&mut failures, out)?;
        let unreadable_folders = failures.count();
        let named: BTreeSet<PathBuf> = self.files.iter().cloned().collect();
        let file_count = files.len() as u64;
        let progress = out.progress();
        if let Some(total) = total_bytes(&files) {
            progress.expect(total);
        }
        let (merge, errors) = Merge::new(files, self.order, interrupt, &progress);
        for error in errors {
            // In a folder there is more than captures.
            let is_other =
                error.damage.is_no_capture() && !named.contains(&error.file) && !is_named_capture(&error.file);
            if is_other {
                skipped += 1;
                out.emit(notice(what::UNSUPPORTED, None, &error).into())?;
            } else {
                failures.report(error, None, out)?;
            }
        }
        if self.order == CaptureOrder::Time
            && let Some(detail) = lost_times(&merge)
        {
            out.emit(notice(what::CLOCK, None, &detail).into())?;
        }
        let mut driver = CaptureDriver::new(merge, &self.selection, &mut failures, out, interrupt);
        driver.dating = match self.order {
            CaptureOrder::Time => None,
            CaptureOrder::Given => Some(Dating::default()),
            CaptureOrder::Untimed => Some(Dating::untimed()),
        };
        if driver.dating.is_some() {
            driver.run()?;
        } else {
            fast::run(&mut driver)?;
        }
        let CaptureDriver { merge, batcher, .. } = driver;
        if self.order == CaptureOrder::Time
            && let Some(detail) = batcher.describe_standing_time()
        {
            out.emit(notice(what::CLOCK, batcher.last_ns(), &detail).into())?;
        }
        let counters = vec![
            ("files", file_count),
            ("snaplen_cut", batcher.counts.snaplen_cut),
            ("left_out", batcher.left_out()),
            ("skipped_blocks", merge.skipped_blocks),
            ("skipped_bytes", merge.skipped_bytes),
            ("skipped_files", skipped),
            ("damaged_files", failures.count() - unreadable_folders),
        ];
        self.counts = SourceCounts { bytes_in: merge.bytes, frames_in: batcher.counts.packets, counters };
        failures.into_result()
    }

    fn counts(&self) -> SourceCounts {
        self.counts.clone()
    }
}

impl Capture {
    /// The files, folders replaced by all files below them in order of their paths, and how many others there are in the
    /// folders.
    fn all_files(&self, failures: &mut Failures, out: &mut dyn SourceEmit) -> Result<(Vec<PathBuf>, u64), StageError> {
        let (mut files, mut skipped) = (Vec::new(), 0);
        for file in &self.files {
            if !file.is_dir() {
                files.push(file.clone());
                continue;
            }
            if !self.reads_folders {
                failures.report(CaptureError { file: file.clone(), damage: Damage::Folder }, None, out)?;
                continue;
            }
            let content = content_below(file);
            for (file, error) in content.unreadable {
                failures.report(CaptureError { file, damage: Damage::Open(error) }, None, out)?;
            }
            for special in content.special {
                let detail =
                    format!("{}: is {}, and is skipped; name it to read it", special.path.display(), special.kind);
                out.emit(notice(what::UNSUPPORTED, None, &detail).into())?;
                skipped += 1;
            }
            files.extend(content.files);
        }
        Ok((files, skipped))
    }
}

/// The fewest captures that begin at the same time because their times were rewritten: a few may be of several interfaces.
const SAME_START: usize = 4;

/// What to tell the user where captures have lost their times, and would be mixed by them.
fn lost_times(merge: &Merge) -> Option<String> {
    // They are sorted.
    let starts: Vec<i64> = merge.waiting.iter().map(|file| file.starts_ns).filter(|start| *start > i64::MIN).collect();
    let same = starts.chunk_by(|one, next| one == next).map(<[i64]>::len).filter(|same| *same >= SAME_START).sum();
    let lost = starts.iter().filter(|start| **start < LOST_BEFORE_NS).count();
    let affected = lost.max(same);
    (affected > 1).then(|| {
        format!(
            "{affected} of {} captures begin at the same time, or within a year of the epoch: their times were lost or \
             rewritten, and their packets may be mixed by them; `--order given` (`order = \"given\"` in \
             pipeline.toml) reads one after the other",
            starts.len()
        )
    })
}

fn total_bytes(files: &[PathBuf]) -> Option<u64> {
    let length = |file: &PathBuf| fs::metadata(file).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    files.iter().map(length).sum()
}
