//! Processes archives of rotated captures: many files of several capture points, read once, with results in a folder
//! that later calls complete.
//!
//! An [`ArchiveRun`] finds the captures below some folders. The files of one folder are a *capture point*: they are read
//! together, merged by time, so flows go on from file to file. Of every point the output of the first three stages is
//! kept, and rebuilt only when a capture or an option has changed; the answers of the other stages are made from it
//! and written as partitions by gateway and day. Points are processed one after another or side by side; an
//! [`ArchiveWatch`] does so again and again while captures arrive: it looks for new, grown and renamed files, and processes
//! what has settled. A [`Manifest`] says what became of every file.
//!
//! Everything appears by a rename, and a description of the point last: a run that is killed leaves nothing that a later
//! one would take for a result.

mod answers;
mod chain;
mod description;
mod discovery;
mod found_file;
mod layout;
mod left_out;
mod manifest;
mod point_run;
mod unit_store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sizeleak_pipeline::{ConfigError, Pipeline};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Progress;
use sizeleak_text::TimeRange;

use crate::archive::description::{ANSWER, FileState};
use crate::archive::discovery::{Absence, CapturePoint, NamedPath, NamedPaths, capture_points};
use crate::archive::layout::{Layout, LockedLayout, remove_file};
use crate::archive::left_out::{Settling, Unprocessed};
use crate::archive::point_run::{PointRun, is_by_time};
use crate::archive::unit_store::packet_stages;

pub use description::{
    AnswersDescription, CaptureFile, DamagedPlace, FileVerdict, PartFormat, PointDescription, RecordsDescription,
};
pub use layout::ArchiveError;
pub use manifest::{Manifest, ManifestPoint};
pub use point_run::PlannedPoint;

#[derive(Debug, Clone)]
pub struct ArchiveRun {
    /// Folders of captures, and single ones.
    pub operands: Vec<PathBuf>,
    /// The pipeline; its captures are replaced.
    pub pipeline: Pipeline,
    pub out: PathBuf,
    pub format: PartFormat,
    pub jobs: usize,
    /// Each folder that is named is a point, with all below it: such as one folder a day. A pattern names the folder that
    /// it begins with.
    pub one_point: bool,
    /// A point some of whose captures are gone is rebuilt without them, instead of keeping its results.
    pub forget: bool,
    /// How long files have been left alone before they are read; zero for all.
    pub settle: Duration,
    pub range: TimeRange,
    /// Ends the run early. What is done until then stays, and a later run completes it.
    pub interrupt: Interrupt,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunResults {
    pub manifest: Manifest,
    pub stopped: BTreeSet<String>,
    /// The points that are not below what was named, and whose captures are gone: their results are kept.
    pub gone: BTreeSet<String>,
    /// How many points were new, or have other results than before.
    pub changed: usize,
}

impl RunResults {
    /// What has failed, points and files by name, with what is wrong. That the run was stopped is no failure.
    pub fn failures(&self) -> BTreeSet<(String, String)> {
        let points = self.manifest.points.iter().filter(|point| !self.stopped.contains(&point.point));
        let points = points.filter_map(|point| Some((point.point.clone(), point.fault.clone()?)));
        points.chain(self.manifest.failed_files().map(|(file, fault)| (file.path.clone(), fault))).collect()
    }
}

impl ArchiveRun {
    pub fn new(operands: Vec<PathBuf>, pipeline: Pipeline, out: PathBuf) -> Self {
        Self {
            operands,
            pipeline,
            out,
            format: PartFormat::default(),
            jobs: 1,
            one_point: false,
            forget: false,
            settle: Duration::ZERO,
            range: TimeRange::default(),
            interrupt: Interrupt::new(),
        }
    }

    /// What a run would do, as far as that is known without reading a capture. Nothing is written.
    pub fn plan(&self) -> Result<Vec<PlannedPoint>, ArchiveError> {
        let points = self.points(Absence::IsError)?;
        let (layout, progress) = (Layout::new(&self.out), Progress::new());
        let run = self.point_run(&layout, &progress, points.len())?;
        Ok(points.iter().map(|point| run.plan(point)).collect())
    }

    /// Processes all points and writes the manifest. What is wrong with single files and points is in there.
    pub fn run(&self, progress: &Progress) -> Result<RunResults, ArchiveError> {
        let (locked, points) = self.lock(Absence::IsError)?;
        let point_run = self.point_run(&locked.layout, progress, points.len())?;
        self.process(&points, point_run)
    }

    /// Locks the folder of results, and finds the points. A call that is refused creates no folder.
    fn lock(&self, absence: Absence) -> Result<(LockedLayout, Vec<CapturePoint>), ArchiveError> {
        let layout = Layout::new(&self.out);
        let locked = if layout.exists() { Some(layout.clone().lock()?) } else { None };
        let points = self.points(absence)?;
        self.check_stages(&points)?;
        Ok((locked.map_or_else(|| layout.lock(), Ok)?, points))
    }

    fn process(&self, points: &[CapturePoint], run: PointRun<'_>) -> Result<RunResults, ArchiveError> {
        let layout = run.layout;
        layout.begin_staging().map_err(ArchiveError::of_file(&layout.staging()))?;
        // Each capture is read once for its digest and its times, and once for its records.
        run.progress.expect_files(points.iter().map(|point| point.files.len() as u64).sum());
        run.progress.expect(2 * points.iter().map(CapturePoint::bytes).sum::<u64>());
        let descriptions = || PointDescription::read_all(layout).map_err(ArchiveError::of_file(&layout.points()));
        let before = descriptions()?;
        let mut elsewhere = before.clone();
        elsewhere.retain(|known, _| !points.iter().any(|point| point.name == *known));
        let run = PointRun { elsewhere: captures_in(&elsewhere), ..run };
        let mut unprocessed = self.process_each(points, &run);
        elsewhere.retain(|_, point| point.files().all(|file| !Path::new(&file.path).exists()));
        for (name, point) in &elsewhere {
            if let Err(fault) = run.answer_again(point) {
                unprocessed.insert(name.clone(), Unprocessed::Failed(fault));
            }
        }
        let after = descriptions()?;
        let is_as_before =
            |(name, point): &(&String, &PointDescription)| before.get(*name).is_some_and(|it| it.has_results_of(point));
        let changed = after.iter().filter(|point| !is_as_before(point)).count();
        let manifest = Manifest::of(after, &unprocessed);
        manifest.write(layout)?;
        layout.remove_staging().map_err(ArchiveError::of_file(&layout.staging()))?;
        let stopped = unprocessed.into_iter().filter(|(_, why)| *why == Unprocessed::Stopped);
        let stopped = stopped.map(|(point, _)| point).collect();
        Ok(RunResults { manifest, stopped, gone: elsewhere.into_keys().collect(), changed })
    }

    /// What the points, so many of them, have in common at this moment.
    fn point_run<'a>(
        &'a self,
        layout: &'a Layout,
        progress: &'a Progress,
        points: usize,
    ) -> Result<PointRun<'a>, ArchiveError> {
        Ok(PointRun {
            layout,
            pipeline: &self.pipeline,
            packet_stages: packet_stages(&self.pipeline).map_err(ArchiveError::usage)?,
            format: self.format,
            forget: self.forget,
            settling: Settling::since(self.settle),
            range: self.range,
            looks_ahead: self.jobs > points,
            progress,
            interrupt: &self.interrupt,
            publishing: Mutex::new(()),
            elsewhere: BTreeMap::new(),
        })
    }

    fn points(&self, absence: Absence) -> Result<Vec<CapturePoint>, ArchiveError> {
        if self.pipeline.makes().is_some_and(|kind| kind != ANSWER) {
            let fault =
                format!("an archive keeps frames of kind `{ANSWER}`: its pipeline ends with `pruner` or `decomposer`");
            return Err(ArchiveError::usage(fault));
        }
        // It may not exist yet, but the folder it is in does.
        let out = self.out.canonicalize().or_else(|_| {
            let above = self.out.parent().filter(|above| !above.as_os_str().is_empty());
            let above = above.map_or_else(|| PathBuf::from("."), ToOwned::to_owned).canonicalize()?;
            Ok(above.join(self.out.file_name().unwrap_or_default()))
        });
        let out = out.map_err(ArchiveError::of_file(&self.out))?;
        let named = NamedPaths::of(&self.operands, absence)?;
        for NamedPath { path, base } in &named.paths {
            let input = match path.canonicalize() {
                // A link to nothing that a pattern matches is one of the files.
                Err(_) if base.is_some() => continue,
                input => input.map_err(ArchiveError::of_file(path))?,
            };
            if out.starts_with(&input) || input.starts_with(&out) {
                return Err(ArchiveError::usage(format!(
                    "{} and {} lie inside each other: name a folder elsewhere for the results",
                    self.out.display(),
                    path.display()
                )));
            }
        }
        if !self.range.is_everything() && !is_by_time(&self.pipeline) {
            let fault = "captures whose times are not used (`capture.order`) cannot be chosen by time";
            return Err(ArchiveError::usage(fault.to_owned()));
        }
        let mut points = capture_points(named, self.one_point)?;
        points.extend(self.emptied(&points)?);
        points.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(points)
    }

    /// The points of the results whose folders are there, below those named, and hold nothing any more.
    fn emptied(&self, found: &[CapturePoint]) -> Result<Vec<CapturePoint>, ArchiveError> {
        let layout = Layout::new(&self.out);
        if !layout.exists() {
            return Ok(Vec::new());
        }
        let mut known = PointDescription::read_all(&layout).map_err(ArchiveError::of_file(&layout.points()))?;
        known.retain(|name, _| found.iter().all(|found| found.name != *name));
        let operands: Vec<PathBuf> = self.operands.iter().filter_map(|operand| operand.canonicalize().ok()).collect();
        let folder = |point: &PointDescription| {
            let folders = point.files().filter_map(|file| Path::new(&file.path).parent()?.canonicalize().ok());
            let is_named = |folder: &PathBuf| {
                let is_of_other = found.iter().any(|point| point.folder == *folder);
                !is_of_other && operands.iter().any(|operand| folder.starts_with(operand))
            };
            folders.filter(is_named).find(|folder| folder.is_dir())
        };
        let point = |(name, point): (String, PointDescription)| {
            Some(CapturePoint { folder: folder(&point)?, name, ..CapturePoint::default() })
        };
        Ok(known.into_iter().filter_map(point).collect())
    }

    /// Checks that all stages can be built, with the first file that seems to be a capture.
    fn check_stages(&self, points: &[CapturePoint]) -> Result<(), ArchiveError> {
        packet_stages(&self.pipeline).map_err(ArchiveError::usage)?;
        let first = points.iter().flat_map(|point| &point.files).find(|file| sizeleak_capture::is_capture(file));
        if let Some(first) = first {
            let mut pipeline = self.pipeline.clone();
            pipeline.read_captures(std::slice::from_ref(first))?;
            pipeline.prepare()?;
        }
        Ok(())
    }

    /// Processes points on as many threads as there are jobs. Returns why some were not.
    fn process_each(&self, points: &[CapturePoint], run: &PointRun<'_>) -> BTreeMap<String, Unprocessed> {
        let (next, unprocessed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = || {
            while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(why) = run.process(point) {
                    // What a stopped run says is no fault.
                    let why = if self.interrupt.is_set() { Unprocessed::Stopped } else { why };
                    unprocessed.lock().unwrap_or_else(PoisonError::into_inner).insert(point.name.clone(), why);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.jobs.min(points.len()) {
                scope.spawn(work);
            }
            work();
        });
        unprocessed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn captures_in(points: &BTreeMap<String, PointDescription>) -> BTreeMap<String, String> {
    let files = points.iter().flat_map(|(name, point)| point.files().map(move |file| (name, file)));
    let with_packets = files.filter(|(_, file)| file.is_capture() && file.packets > 0);
    with_packets.filter_map(|(name, file)| Some((file.blake3.clone()?, name.clone()))).collect()
}

/// Removes everything that the results hold of a point: its answers, records, states and description. What the folder of
/// its captures holds, if it is still there, comes back with the next run over it.
pub fn forget_point(out: &Path, point: &str) -> Result<(), ArchiveError> {
    let layout = Layout::new(out);
    if !layout.exists() {
        return Err(ArchiveError::no_manifest(out));
    }
    let LockedLayout { layout, .. } = &layout.lock()?;
    let descriptions = || PointDescription::read_all(layout).map_err(ArchiveError::of_file(&layout.points()));
    if !descriptions()?.contains_key(point) {
        let out = out.display();
        let fault = format!("{out} holds no point `{point}`: `sizeleak archive status {out}` lists its points");
        return Err(ConfigError::input(fault).into());
    }
    // The description goes last: until then a killed call can be repeated.
    answers::remove_parts(layout, point, &BTreeSet::new())
        .and_then(|()| layout.remove_records(point))
        .and_then(|()| remove_file(&layout.description(point)))
        .map_err(ArchiveError::of_file(out))?;
    Manifest::of(descriptions()?, &BTreeMap::new()).write(layout)
}

/// Points that could not be processed are tried again after this time, although their files are as they were: the disk
/// may have been full.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

/// An archive that is watched. No other run writes to its results meanwhile.
pub struct ArchiveWatch<'a> {
    run: &'a ArchiveRun,
    locked: LockedLayout,
    /// The files that the round before has processed, and what it has left; `None` before the first one.
    last: Option<(SeenFiles, RunResults)>,
    last_round: Instant,
}

/// The files of the points: the state of those that have settled, for those that are growing change all the time; and the
/// names of those that are not opened.
type SeenFiles = BTreeMap<String, (BTreeMap<PathBuf, Option<FileState>>, Vec<CaptureFile>)>;

/// A look at the points, of which some files have changed. What has not is not read again.
pub struct WatchRound {
    points: Vec<CapturePoint>,
    seen: SeenFiles,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundResults {
    pub results: RunResults,
    /// How many files were read, or are not there any more.
    pub changed_files: usize,
    /// What has failed since the round before: points and files by name, with what is wrong.
    pub new_failures: BTreeSet<(String, String)>,
}

impl<'a> ArchiveWatch<'a> {
    /// Begins to watch. A folder may be empty at first, and a pattern may match nothing.
    pub fn begin(run: &'a ArchiveRun) -> Result<Self, ArchiveError> {
        let (locked, _) = run.lock(Absence::IsAllowed)?;
        Ok(Self { run, locked, last: None, last_round: Instant::now() })
    }

    /// Looks for files that have changed; `None` if there is nothing to do. Reads no file.
    pub fn look(&self) -> Result<Option<WatchRound>, ArchiveError> {
        let points = self.run.points(Absence::IsAllowed)?;
        let settling = Settling::since(self.run.settle);
        let state = |path: &PathBuf| match settling.growing(path) {
            Some(_) => None,
            None => FileState::of(path).ok(),
        };
        let files = |point: &CapturePoint| {
            let files = point.files.iter().map(|path| (path.clone(), state(path))).collect();
            (point.name.clone(), (files, point.unopened.clone()))
        };
        let seen: SeenFiles = points.iter().map(files).collect();
        let is_again = self.last_round.elapsed() >= AGAIN_AFTER;
        let is_done = self.last.as_ref().is_some_and(|(before, results)| {
            let mut points = results.manifest.points.iter();
            *before == seen && !(is_again && points.any(|point| point.fault.is_some()))
        });
        Ok((!is_done).then_some(WatchRound { points, seen }))
    }

    pub fn process(&mut self, round: WatchRound, progress: &Progress) -> Result<RoundResults, ArchiveError> {
        self.run.check_stages(&round.points)?;
        let point_run = self.run.point_run(&self.locked.layout, progress, round.points.len())?;
        let results = self.run.process(&round.points, point_run)?;
        self.last_round = Instant::now();
        let before = self.last.replace((round.seen, results.clone())).map(|(_, results)| results).unwrap_or_default();
        let new_failures = results.failures().difference(&before.failures()).cloned().collect();
        let changed_files = changed_files(&before.manifest, &results.manifest);
        Ok(RoundResults { results, changed_files, new_failures })
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
