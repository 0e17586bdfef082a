//! Keeps results up to date while captures arrive: looks for new, grown and renamed files, and processes what has settled.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sizeleak_platform::telemetry::Progress;

use crate::archive_run::{ArchiveRun, RunResults};
use crate::description::{CaptureFile, FileState, FileVerdict};
use crate::discovery::{Absence, CapturePoint};
use crate::layout::{ArchiveError, LockedLayout};
use crate::left_out::Settling;
use crate::manifest::Manifest;

/// Points that could not be processed are tried again after this time, although their files are as they were: the disk
/// may have been full.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// An archive that is watched. No other run writes to its results meanwhile.
pub struct ArchiveWatch<'a> {
    run: &'a ArchiveRun,
    locked: LockedLayout,
    /// The files of each point when it was last processed.
    processed: BTreeMap<String, PointFiles>,
    /// What the round before has left; `None` before the first one.
    last: Option<RunResults>,
    last_round: Instant,
}

pub struct WatchRound {
    points: Vec<CapturePoint>,
    changed: BTreeMap<String, PointFiles>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundResults {
    pub results: RunResults,
    /// How many files were read, or are not there any more.
    pub changed_files: usize,
    /// What has failed since the round before: points and files by name, with what is wrong.
    pub new_failures: BTreeSet<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PointFiles {
    /// The state of those that have settled; those that are growing change all the time.
    files: BTreeMap<PathBuf, Option<FileState>>,
    unopened: Vec<CaptureFile>,
}

impl<'a> ArchiveWatch<'a> {
    /// Begins to watch. A folder may be empty at first, and a pattern may match nothing.
    pub fn begin(run: &'a ArchiveRun) -> Result<Self, ArchiveError> {
        let (locked, _) = run.lock(Absence::IsAllowed)?;
        Ok(Self { run, locked, processed: BTreeMap::new(), last: None, last_round: Instant::now() })
    }

    /// Looks for files that have changed; `None` if there is nothing to do. Reads no file.
    pub fn look(&self) -> Result<Option<WatchRound>, ArchiveError> {
        let points = self.run.points(Absence::IsAllowed)?;
        let settling = Settling::since(self.run.settle);
        let again = self.again();
        let seen = points.iter().map(|point| (point.name.clone(), PointFiles::of(point, settling)));
        let changed: BTreeMap<_, _> =
            seen.filter(|(name, files)| again.contains(name) || self.processed.get(name) != Some(files)).collect();
        Ok((self.last.is_none() || !changed.is_empty()).then_some(WatchRound { points, changed }))
    }

    /// The points that could not be processed, once it is time to try them again.
    fn again(&self) -> BTreeSet<String> {
        let is_time = self.last_round.elapsed() >= AGAIN_AFTER;
        let points = self.last.iter().filter(|_| is_time).flat_map(|last| &last.manifest.points);
        points.filter(|point| point.fault.is_some()).map(|point| point.point.clone()).collect()
    }

    pub fn process(&mut self, round: WatchRound, progress: &Progress) -> Result<RoundResults, ArchiveError> {
        self.run.check_stages(&round.points)?;
        let changed: Vec<&CapturePoint> =
            round.points.iter().filter(|point| round.changed.contains_key(&point.name)).collect();
        let point_run = self.run.point_run(&self.locked.layout, progress, changed.len())?;
        let results = self.run.process(&changed, &round.points, point_run)?;
        self.processed.extend(round.changed);
        self.last_round = Instant::now();
        let before = self.last.replace(results.clone()).unwrap_or_default();
        let new_failures = results.failures().difference(&before.failures()).cloned().collect();
        let changed_files = changed_files(&before.manifest, &results.manifest);
        Ok(RoundResults { results, changed_files, new_failures })
    }
}

impl PointFiles {
    fn of(point: &CapturePoint, settling: Settling) -> Self {
        let state = |path: &PathBuf| match settling.growing(path) {
            Some(_) => None,
            None => FileState::of(path).ok(),
        };
        let files = point.files.iter().map(|path| (path.clone(), state(path))).collect();
        Self { files, unopened: point.unopened.clone() }
    }
}

/// Files that came or went, or whose content changed. Those that are growing have not been read.
fn changed_files(before: &Manifest, now: &Manifest) -> usize {
    let read = |manifest: &Manifest| -> BTreeSet<(String, FileVerdict, Option<String>)> {
        let files = manifest.files.iter().filter(|(_, file)| file.verdict != FileVerdict::Growing);
        files.map(|(_, file)| (file.path.clone(), file.verdict, file.blake3.clone())).collect()
    };
    let paths: BTreeSet<String> = read(before).symmetric_difference(&read(now)).map(|file| file.0.clone()).collect();
    paths.len()
}
