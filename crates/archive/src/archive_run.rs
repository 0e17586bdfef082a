//! Processes an archive: its points one after another or side by side, and the manifest of all.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use sizeleak_pipeline::Pipeline;
use sizeleak_runtime::Interrupt;
use sizeleak_telemetry::Progress;

use crate::capture_file::CaptureFile;
use crate::description::PointDescription;
use crate::discovery::{CapturePoint, PointsOf, capture_points};
use crate::error::ArchiveError;
use crate::keys::packet_stages;
use crate::layout::Layout;
use crate::manifest::Manifest;
use crate::part_format::{ANSWER, PartFormat};
use crate::plan::ArchivePlan;
use crate::point_run::{PointRun, is_by_time};
use crate::tap_fault::TapFault;
use crate::taps::{Tap, with_tapped_point};

/// What to process, and where results go.
#[derive(Debug, Clone)]
pub struct ArchiveRun {
    /// Folders of captures, and single ones.
    pub operands: Vec<PathBuf>,
    /// Captures of the same traffic at several places; the clock of the first tap is that of all.
    pub taps: Vec<Tap>,
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

impl ArchiveRun {
    /// What a run would do, as far as that is known without reading a capture. Nothing is written.
    ///
    /// # Errors
    /// As [`ArchiveRun::run`].
    pub fn plan(&self) -> Result<ArchivePlan, ArchiveError> {
        let points = self.points()?;
        let (layout, progress) = (Layout::new(&self.out), Progress::new());
        let run = self.point_run(&layout, &progress, points.len())?;
        Ok(ArchivePlan { points: points.iter().map(|point| run.plan(point)).collect() })
    }

    /// Processes all points and writes the manifest. What is wrong with single files and points is in there.
    ///
    /// # Errors
    /// [`ArchiveError`], if the archive cannot be processed at all.
    pub fn run(&self, progress: &Progress) -> Result<Manifest, ArchiveError> {
        let points = self.points()?;
        self.check_stages(&points)?;
        let locked = Layout::new(&self.out).lock()?;
        let layout = &locked.layout;
        // Each capture is read once for its digest and its times, and once for its records.
        progress.expect(2 * points.iter().map(CapturePoint::bytes).sum::<u64>());
        let descriptions = || PointDescription::read_all(layout).map_err(ArchiveError::of_file(&layout.points()));
        let mut elsewhere = descriptions()?;
        elsewhere.retain(|known, _| !points.iter().any(|point| point.name == *known));
        let run = PointRun { elsewhere: captures_in(&elsewhere), ..self.point_run(layout, progress, points.len())? };
        let faults = self.process(&points, &run);
        let manifest = Manifest::of(descriptions()?, &faults);
        manifest.write(layout)?;
        layout.remove_staging().map_err(ArchiveError::of_file(&layout.staging()))?;
        Ok(manifest)
    }

    /// What the points, so many of them, have in common.
    fn point_run<'a>(
        &'a self,
        layout: &'a Layout,
        progress: &'a Progress,
        points: usize,
    ) -> Result<PointRun<'a>, ArchiveError> {
        Ok(PointRun {
            layout,
            pipeline: &self.pipeline,
            packet_stages: packet_stages(&self.pipeline).map_err(ArchiveError::Pipeline)?,
            format: self.format,
            forget: self.forget,
            looks_ahead: self.jobs > points,
            progress,
            interrupt: &self.interrupt,
            publishing: Mutex::new(()),
            elsewhere: BTreeMap::new(),
        })
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
        if !self.taps.is_empty() && !is_by_time(&self.pipeline) {
            return Err(TapFault::WithoutTimes.into());
        }
        Ok(with_tapped_point(capture_points(&self.operands, self.points_of)?, &self.taps, &out)?)
    }

    /// Checks that all stages can be built, with the first file that seems to be a capture.
    fn check_stages(&self, points: &[CapturePoint]) -> Result<(), ArchiveError> {
        packet_stages(&self.pipeline).map_err(ArchiveError::Pipeline)?;
        let first = points.iter().flat_map(|point| &point.files).find(|file| sizeleak_capture::is_capture(file));
        if let Some(first) = first {
            let mut pipeline = self.pipeline.clone();
            pipeline.read_captures(std::slice::from_ref(first))?;
            pipeline.prepare()?;
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
