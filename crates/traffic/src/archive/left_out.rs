//! Captures that are not read: those that are growing, those outside of a range of time, those that are gone; and points
//! that are not processed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use sizeleak_text::TimeRange;

use crate::archive::description::{CaptureFile, DescribedFile, FileState, FileVerdict, PointDescription};

/// Captures by which the same ones are found again. One that was renamed or has grown is the same; one that has shrunk
/// has lost what was found in it.
struct Captures<'a> {
    /// How many packets follow each beginning.
    begun: BTreeMap<(&'a str, Option<i64>), u64>,
    digests: BTreeSet<&'a str>,
}

impl<'a> Captures<'a> {
    fn of(files: impl Iterator<Item = &'a DescribedFile>) -> Self {
        let mut captures = Self { begun: BTreeMap::new(), digests: BTreeSet::new() };
        for DescribedFile { file, head_ns, .. } in files {
            captures.begun.insert((&file.path, *head_ns), file.packets);
            captures.digests.extend(file.blake3.as_deref());
        }
        captures
    }

    fn have(&self, DescribedFile { file, head_ns, .. }: &DescribedFile) -> bool {
        let is_known = file.blake3.as_deref().is_some_and(|digest| self.digests.contains(digest));
        is_known || self.begun.get(&(&*file.path, *head_ns)).is_some_and(|packets| *packets >= file.packets)
    }
}

/// Checks that nothing would be dropped from the results of a point that are there. `now` are all its files as they
/// are now. The error says what is missing, if it is not to be forgotten; or that captures are growing again, which are not
/// missing.
pub(crate) fn check_missing(forget: bool, known: &PointDescription, now: &[DescribedFile]) -> Result<(), Unprocessed> {
    let there = Captures::of(now.iter().filter(|now| now.file.is_capture()));
    let outside = Captures::of(now.iter().filter(|now| now.file.verdict == FileVerdict::Outside));
    let missing = known.files.iter().filter(|known| known.has_packets() && !there.have(known));
    let (mut growing, mut left_out, mut shorter, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for capture in missing {
        let path = &capture.file.path;
        match () {
            () if is_growing(capture, now) => growing.push(path),
            () if outside.have(capture) => left_out.push(path),
            () if there.begun.contains_key(&(&**path, capture.head_ns)) => shorter.push(path),
            () => gone.push(path),
        }
    }
    if !forget {
        refuse(&gone, "gone")?;
        refuse(&shorter, "shorter than before")?;
        refuse(&left_out, "outside of the range of time")?;
    }
    match growing.first() {
        Some(first) => Err(Unprocessed::Waits(format!(
            "{first}, which is in the results, has changed again: they stay as they are until it has settled"
        ))),
        None => Ok(()),
    }
}

fn refuse(missing: &[&String], what: &str) -> Result<(), Unprocessed> {
    let Some(first) = missing.first() else { return Ok(()) };
    let (count, are) = (missing.len(), if missing.len() == 1 { "is" } else { "are" });
    Err(Unprocessed::Failed(format!(
        "{count} of its captures {are} {what}, such as {first}: its results stay as they are; `--forget` rebuilds them \
         without what was found there"
    )))
}

/// Whether a capture of the results is one of those that are growing now, by its name or as the same file.
fn is_growing(capture: &DescribedFile, now: &[DescribedFile]) -> bool {
    let mut growing = now.iter().map(|now| &now.file).filter(|file| file.verdict == FileVerdict::Growing);
    growing.any(|file| {
        let state = || FileState::of(Path::new(&file.path)).ok();
        file.path == capture.file.path
            || capture.state.is_some_and(|before| state().is_some_and(|now| now.inode == before.inode))
    })
}

/// How long files have been left alone before they are read, seen from one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settling {
    time: Duration,
    now: SystemTime,
}

impl Settling {
    /// Files that are left alone for this time, from now on backwards. With none, every file has settled.
    pub(crate) fn since(time: Duration) -> Self {
        Self { time, now: SystemTime::now() }
    }

    /// The file, if it may be growing. What cannot be looked at is not.
    pub(crate) fn growing(&self, path: &Path) -> Option<CaptureFile> {
        if self.time.is_zero() {
            return None;
        }
        let metadata = path.metadata().ok()?;
        let modified = metadata.modified().ok()?;
        let reason = match self.now.duration_since(modified) {
            Ok(age) if age >= self.time => return None,
            // Clocks of file servers differ a little.
            _ if modified <= self.now + self.time => {
                let seconds = self.time.as_secs_f64();
                format!("was modified within {seconds} s and may be growing: a later call reads it")
            }
            _ => "was modified in the future, by the clock of this machine: it is read once that time has passed, \
                  after `touch`, or with `--settle 0s`"
                .to_owned(),
        };
        let file = CaptureFile::unread(path, FileVerdict::Growing, reason);
        Some(CaptureFile { bytes: Some(metadata.len()), ..file })
    }
}

/// Gives a capture the verdict that it has in a range of time, whatever range it was looked at for before. Captures count
/// as a whole: one with a packet on either side of a bound is inside.
pub(crate) fn judge(range: &TimeRange, file: &mut CaptureFile) {
    if !matches!(file.verdict, FileVerdict::Whole | FileVerdict::Damaged | FileVerdict::Outside) {
        return;
    }
    let is_before = file.last_ns.zip(range.since_ns).is_some_and(|(last, since)| last < since);
    let is_behind = file.first_ns.zip(range.until_ns).is_some_and(|(first, until)| first >= until);
    file.verdict = match file.damaged_places {
        _ if is_before || is_behind => FileVerdict::Outside,
        0 => FileVerdict::Whole,
        _ => FileVerdict::Damaged,
    };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unprocessed {
    Failed(String),
    /// A file that is in its results is growing again. Nothing is wrong.
    Waits(String),
    Stopped,
}

impl From<String> for Unprocessed {
    fn from(fault: String) -> Self {
        Self::Failed(fault)
    }
}

impl Unprocessed {
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Failed(fault) => Some(fault.clone()),
            Self::Stopped => Some("was not processed before the call was stopped: run again".to_owned()),
            Self::Waits(_) => None,
        }
    }

    pub(crate) fn waits_for(&self) -> Option<String> {
        match self {
            Self::Waits(sentence) => Some(sentence.clone()),
            Self::Failed(_) | Self::Stopped => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::*;

    #[test]
    fn files_are_growing_until_they_are_left_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let modified = |time: SystemTime| File::options().append(true).open(&file).unwrap().set_modified(time).unwrap();
        let settling = Settling::since(Duration::from_secs(30));
        let second = Duration::from_secs(1);
        let reason = || settling.growing(file.path()).map(|growing| growing.reason.unwrap());
        modified(settling.now - 29 * second);
        assert_eq!(reason().unwrap(), "was modified within 30 s and may be growing: a later call reads it");
        modified(settling.now - 30 * second);
        assert_eq!(reason(), None);
        modified(settling.now + 20 * second);
        assert!(reason().unwrap().contains("within"));
        modified(settling.now + 90 * second);
        assert!(reason().unwrap().contains("in the future"));
        assert!(Settling::since(Duration::ZERO).growing(file.path()).is_none());
        assert!(settling.growing(Path::new("/nowhere/at/all")).is_none());
    }

    #[test]
    fn captures_without_a_packet_in_the_range_are_outside_until_the_range_has_one() {
        let file = CaptureFile::unread(Path::new("a"), FileVerdict::Damaged, String::new());
        let mut file = CaptureFile { first_ns: Some(10), last_ns: Some(19), damaged_places: 1, ..file };
        let mut verdict = |since_ns, until_ns| {
            judge(&TimeRange { since_ns, until_ns }, &mut file);
            file.verdict
        };
        assert_eq!(verdict(Some(20), None), FileVerdict::Outside);
        assert_eq!(verdict(None, Some(10)), FileVerdict::Outside);
        for (since, until) in [(Some(19), None), (None, Some(11)), (Some(12), Some(13)), (None, None)] {
            assert_eq!(verdict(since, until), FileVerdict::Damaged, "{since:?} {until:?}");
        }
        let mut empty = CaptureFile::unread(Path::new("a"), FileVerdict::Whole, String::new());
        judge(&TimeRange { since_ns: Some(20), until_ns: None }, &mut empty);
        assert_eq!(empty.verdict, FileVerdict::Whole, "a capture without packets has no times");
        let mut other = CaptureFile { verdict: FileVerdict::NoCapture, ..file.clone() };
        judge(&TimeRange { since_ns: Some(20), until_ns: None }, &mut other);
        assert_eq!(other.verdict, FileVerdict::NoCapture);
    }
}
