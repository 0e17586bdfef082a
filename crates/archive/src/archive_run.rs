//! Processes an archive: its points one after another or side by side, and the manifest of all.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use blake3::Hash;
use sizeleak_pipeline::Pipeline;
use sizeleak_runtime::Interrupt;
use sizeleak_telemetry::Progress;

use crate::capture_file::CaptureFile;
use crate::description::PointDescription;
use crate::discovery::{CapturePoint, PointsOf, capture_points};
use crate::error::ArchiveError;
use crate::keys::{PointKeys, digest_of};
use crate::layout::Layout;
use crate::manifest::Manifest;
use crate::part_format::{ANSWER, PartFormat};
use crate::point_run::{Need, PointRun};
use crate::records;

/// What to process, and where results go.
#[derive(Debug, Clone)]
pub struct ArchiveRun {
    /// Folders of captures, and single ones.
    pub operands: Vec<PathBuf>,
    /// The pipeline; its captures are replaced.
    pub pipeline: Pipeline,
    /// The folder of results.
    pub out: PathBuf,
    /// The format of the answers.
    pub format: PartFormat,
    /// How many points are processed at once.
    pub jobs: usize,
    /// What is a capture point.
    pub points_of: PointsOf,
    /// Whether captures that are gone are given up with what was found in them.
    pub forget: bool,
    /// Ends the run early. What is done until then stays, and a later run completes it.
    pub interrupt: Interrupt,
}

/// What a run would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePlan {
    /// The points, by name.
    pub points: Vec<PlannedPoint>,
}

/// What a run would do with a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPoint {
    /// Its name.
    pub point: String,
    /// How many files are in its folder.
    pub files: usize,
    /// Their size on disk in bytes.
    pub bytes: u64,
    /// Whether they are read, because one of them or an option may have changed.
    pub reads_captures: bool,
    /// Whether its answers are rebuilt, from the records that are kept if captures are not read.
    pub makes_answers: bool,
}

impl ArchiveRun {
    /// What a run would do, as far as that is known without reading a capture. Nothing is written.
    ///
    /// # Errors
    /// As [`ArchiveRun::run`].
    pub fn plan(&self) -> Result<ArchivePlan, ArchiveError> {
        let points = self.points()?;
        let (layout, progress) = (Layout::new(&self.out), Progress::new());
        let run = self.point_run(&layout, &progress, program()?);
        let planned = points.iter().map(|point| {
            let need = run.need(point);
            PlannedPoint {
                point: point.name.clone(),
                files: point.files.len() + point.unopened.len(),
                bytes: point.bytes(),
                reads_captures: need == Need::Records,
                makes_answers: need != Need::Nothing,
            }
        });
        Ok(ArchivePlan { points: planned.collect() })
    }

    /// Processes all points and writes the manifest. What is wrong with single files and points is in there.
    ///
    /// # Errors
    /// [`ArchiveError`], if the archive cannot be processed at all.
    pub fn run(&self, progress: &Progress) -> Result<Manifest, ArchiveError> {
        let points = self.points()?;
        let program = program()?;
        self.check_stages(&points, program)?;
        let locked = Layout::new(&self.out).lock()?;
        let layout = &locked.layout;
        // Each capture is read once for its digest and its times, and once for its records.
        progress.expect(2 * points.iter().map(CapturePoint::bytes).sum::<u64>());
        let descriptions = || PointDescription::read_all(layout).map_err(ArchiveError::of_file(&layout.points()));
        let mut elsewhere = descriptions()?;
        elsewhere.retain(|known, _| !points.iter().any(|point| point.name == *known));
        let run = PointRun { elsewhere: captures_in(&elsewhere), ..self.point_run(layout, progress, program) };
        let faults = self.process(&points, &run);
        let manifest = Manifest::of(descriptions()?, &faults);
        manifest.write(layout)?;
        layout.remove_staging().map_err(ArchiveError::of_file(&layout.staging()))?;
        Ok(manifest)
    }

    fn point_run<'a>(&'a self, layout: &'a Layout, progress: &'a Progress, program: Hash) -> PointRun<'a> {
        let (pipeline, format, forget) = (&self.pipeline, self.format, self.forget);
        let (interrupt, publishing, elsewhere) = (&self.interrupt, Mutex::new(()), BTreeMap::new());
        PointRun { layout, pipeline, format, program, forget, progress, interrupt, publishing, elsewhere }
    }

    /// The points, which do not overlap with the results.
    fn points(&self) -> Result<Vec<CapturePoint>, ArchiveError> {
        if self.pipeline.makes().is_some_and(|kind| kind != ANSWER) {
            let fault =
                format!("an archive keeps frames of kind `{ANSWER}`: its pipeline ends with `pruner` or `decomposer`");
            return Err(ArchiveError::Pipeline(fault));
        }
        // It may not exist yet, but the folder it is in does.
        let out = self.out.canonicalize().or_else(|_| {
            let above = self.out.parent().filter(|above| !above.as_os_str().is_empty());
            let above = above.map_or_else(|| PathBuf::from("."), ToOwned::to_owned).canonicalize()?;
            Ok(above.join(self.out.file_name().unwrap_or_default()))
        });
        let out = out.map_err(ArchiveError::of_file(&self.out))?;
        for operand in &self.operands {
            let input = operand.canonicalize().map_err(ArchiveError::of_file(operand))?;
            if out.starts_with(&input) || input.starts_with(&out) {
                return Err(ArchiveError::Inside { out: self.out.clone(), input: operand.clone() });
            }
        }
        capture_points(&self.operands, self.points_of)
    }

    /// Checks that all stages can be built, with the first file that seems to be a capture.
    fn check_stages(&self, points: &[CapturePoint], program: Hash) -> Result<(), ArchiveError> {
        let first = points.iter().flat_map(|point| &point.files).find(|file| sizeleak_capture::is_capture(file));
        if let Some(first) = first {
            let pipeline = records::reading(&self.pipeline, std::slice::from_ref(first))?;
            pipeline.prepare()?;
            // Its digest does not matter here.
            let digests = BTreeMap::from([(first.clone(), program)]);
            PointKeys::of(&pipeline, &digests, program, self.format).map_err(ArchiveError::Pipeline)?;
        }
        Ok(())
    }

    /// Processes the points on as many threads as there are jobs. Returns why points could not be processed.
    fn process(&self, points: &[CapturePoint], run: &PointRun<'_>) -> BTreeMap<String, String> {
        let (next, faults) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let work = || {
            while let Some(point) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(fault) = run.process(point) {
                    faults.lock().unwrap_or_else(PoisonError::into_inner).insert(point.name.clone(), fault);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.jobs.min(points.len()) {
                scope.spawn(work);
            }
            work();
        });
        faults.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manifest {
    /// The files of which something is missing, with what is wrong.
    pub fn failed_files(&self) -> impl Iterator<Item = (&CaptureFile, String)> {
        let failed = self.files.iter().filter(|(_, file)| file.is_failure());
        failed.map(|(_, file)| (file, file.fault().unwrap_or_default()))
    }
}

/// The points that have captures, by the digests of these.
fn captures_in(points: &BTreeMap<String, PointDescription>) -> BTreeMap<String, String> {
    let captures = points.iter().flat_map(|(name, point)| point.files().map(move |file| (name, file)));
    let with_packets = captures.filter(|(_, file)| file.packets > 0);
    with_packets.filter_map(|(name, file)| Some((file.sha256.clone()?, name.clone()))).collect()
}

/// The digest of the running program.
fn program() -> Result<Hash, ArchiveError> {
    let path = env::current_exe().map_err(ArchiveError::of_file(&PathBuf::from("this program")))?;
    digest_of(&path).map_err(ArchiveError::of_file(&path))
}
