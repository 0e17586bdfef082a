//! Captures that are in the results of a point, but would not be if it was processed now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::capture_file::{FileState, FileVerdict};
use crate::description::{DescribedFile, PointDescription};
use crate::unprocessed::Unprocessed;

/// Whether captures are given up with what was found in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingCaptures {
    /// The point keeps its results, and says so.
    #[default]
    Keep,
    /// The point is rebuilt without them.
    Forget,
}

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

    /// Whether a capture that they do not have is there in part.
    fn have_beginning_of(&self, DescribedFile { file, head_ns, .. }: &DescribedFile) -> bool {
        self.begun.contains_key(&(&*file.path, *head_ns))
    }
}

impl MissingCaptures {
    /// Checks that nothing would be dropped from the results of a point that are there. `now` are all its files as they
    /// are now.
    ///
    /// # Errors
    /// What is missing, if it is not to be forgotten; and that captures are growing again, which are not missing.
    pub(crate) fn check(self, known: &PointDescription, now: &[DescribedFile]) -> Result<(), Unprocessed> {
        let there = Captures::of(now.iter().filter(|now| now.file.is_capture()));
        let outside = Captures::of(now.iter().filter(|now| now.file.verdict == FileVerdict::Outside));
        let missing = known.files.iter().filter(|known| known.has_packets() && !there.have(known));
        let (mut growing, mut left_out, mut shorter, mut gone) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for capture in missing {
            let path = &capture.file.path;
            match () {
                () if is_growing(capture, now) => growing.push(path),
                () if outside.have(capture) => left_out.push(path),
                () if there.have_beginning_of(capture) => shorter.push(path),
                () => gone.push(path),
            }
        }
        if self == Self::Keep {
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
            || capture.state.is_some_and(|before| state().is_some_and(|now| now.is_of_the_same_file(&before)))
    })
}
