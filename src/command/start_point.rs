//! Where `sizeleak run` starts: at the captures, or at saved streams.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use sizeleak_pipeline::{Pipeline, PreparedRun, RunEnding, RunReport, SavedStream};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::say;

use super::failure::Failure;
use super::found_pipeline::FoundPipeline;
use super::traffic_input::TrafficInput;

/// Where a run starts.
#[derive(Debug)]
pub(super) struct StartPoint {
    /// The saved streams that it continues from, one after another.
    from: Vec<PathBuf>,
    /// Whether nothing is read at all.
    has_no_traffic: bool,
}

impl StartPoint {
    /// Where a run starts that reads this input.
    pub(super) fn of(input: &TrafficInput) -> Result<Self, Failure> {
        let from = input.streams();
        if let Some(again) = named_twice(&from) {
            let fault = anyhow!("{} is named twice: its traffic would count twice", again.display());
            return Err(Failure::usage(fault));
        }
        Ok(Self { from, has_no_traffic: false })
    }

    /// Where a run starts that continues an earlier one: at its captures, if it has any.
    pub(super) fn continued(has_no_traffic: bool) -> Self {
        Self { from: Vec::new(), has_no_traffic }
    }

    /// Whether nothing is read at all.
    pub(super) fn has_no_traffic(&self) -> bool {
        self.has_no_traffic
    }

    /// Prepares the run of a pipeline whose other `files` these are, up to where it makes these kinds; `found` is a
    /// pipeline whose model nobody named. Nothing is written if two files conflict.
    pub(super) fn prepare(
        &self,
        pipeline: &mut Pipeline,
        kinds: &[String],
        found: Option<&FoundPipeline>,
        mut files: RunFiles,
        interrupt: &Interrupt,
    ) -> Result<PreparedRun, Failure> {
        let from = if !self.from.is_empty() {
            let replay = self.open_streams(interrupt)?;
            let position = pipeline.index_of(&replay)?;
            found.map_or(Ok(()), |found| found.check_behind(position, kinds))?;
            *pipeline = pipeline.making(kinds, Some(position));
            self.from.iter().for_each(|file| files.reads("the saved stream", file));
            files.extend(pipeline.files(Some(position + 1)));
            files.check()?;
            say("sizeleak", &format!("{} from {}", pipeline.output_of(position), replay.name()));
            Some((position, replay))
        } else if self.has_no_traffic {
            *pipeline = pipeline.making(kinds, None);
            files.extend(pipeline.files(Some(1)));
            files.check()?;
            let source = pipeline.resolved_stages().first().map_or("", |stage| stage.entry.name);
            Some((0, SavedStream::empty(source)?))
        } else {
            *pipeline = pipeline.making(kinds, None);
            files.extend(pipeline.files(None));
            files.check()?;
            None
        };
        Ok(pipeline.prepare_from(from)?)
    }

    /// The saved streams, as one.
    fn open_streams(&self, interrupt: &Interrupt) -> Result<SavedStream, Failure> {
        let opened = match &*self.from {
            [only] => SavedStream::open(only, interrupt),
            several => SavedStream::joined(several, interrupt),
        };
        opened.map_err(|error| {
            if interrupt.is_set() {
                Failure::with_code(130, anyhow!("stopped before the first frame"))
            } else {
                error.into()
            }
        })
    }
}

/// Reports files that were not saved; `run` is `None` if the run failed.
pub(super) fn report_unsaved(saves: &[PathBuf], run: Option<&RunReport>) {
    let kept = run.map_or(&[][..], |run| &run.saved);
    let why = match run.map(|run| run.ending) {
        None => "the run failed",
        Some(RunEnding::Interrupted) => "the run was stopped",
        Some(RunEnding::Closed) => "the output was not read to its end",
        Some(RunEnding::Done) => "the next stage did not read to its end",
    };
    for path in saves.iter().filter(|path| !kept.contains(path)) {
        say("sizeleak", &format!("{} is not written: {why}", path.display()));
    }
}

/// The first file that is another one's, whatever its names are.
fn named_twice(files: &[PathBuf]) -> Option<&Path> {
    let mut seen = BTreeSet::new();
    let mut is_again = |file: &&Path| !seen.insert(file.canonicalize().unwrap_or_else(|_| file.to_path_buf()));
    files.iter().map(PathBuf::as_path).find(|file| is_again(file))
}
