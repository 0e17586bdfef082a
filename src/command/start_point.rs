//! Where `sizeleak run` starts, at the captures or at saved streams, and the file ./pipeline.toml that it may find.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use sizeleak_pipeline::registry::STAGES;
use sizeleak_pipeline::{Pipeline, PreparedRun, RunEnding, RunReport, SavedStream};
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::log::say;

use super::failure::{usage, with_code};
use super::session::Session;
use super::traffic_input::TrafficInput;

#[derive(Debug)]
pub(super) struct StartPoint {
    /// The saved streams that it continues from, one after another.
    from: Vec<PathBuf>,
    /// Whether nothing is read at all.
    has_no_traffic: bool,
}

impl StartPoint {
    pub(super) fn of(input: &TrafficInput) -> Result<Self> {
        let from = input.streams();
        if let Some(again) = named_twice(&from) {
            let fault = anyhow!("{} is named twice: its traffic would count twice", again.display());
            return Err(with_code(2, fault));
        }
        Ok(Self { from, has_no_traffic: false })
    }

    /// Where a run starts that continues an earlier one: at its captures, if it has any.
    pub(super) fn continued(has_no_traffic: bool) -> Self {
        Self { from: Vec::new(), has_no_traffic }
    }

    pub(super) fn has_no_traffic(&self) -> bool {
        self.has_no_traffic
    }

    /// Prepares the run of a pipeline up to where it makes these kinds; `found` is a
    /// pipeline whose model nobody named. Nothing is written if two files conflict.
    pub(super) fn prepare(
        &self,
        pipeline: &mut Pipeline,
        kinds: &[String],
        found: Option<&FoundPipeline>,
        session: &mut Session,
        interrupt: &Interrupt,
    ) -> Result<PreparedRun> {
        let from = if !self.from.is_empty() {
            let replay = self.open_streams(interrupt)?;
            let position = pipeline.index_of(&replay)?;
            found.map_or(Ok(()), |found| found.check_behind(position, kinds))?;
            *pipeline = pipeline.making(kinds, Some(position));
            session.check_files(pipeline.files(Some(position + 1)))?;
            say("sizeleak", &format!("{} from {}", pipeline.output_of(position), replay.name()));
            Some((position, replay))
        } else if self.has_no_traffic {
            *pipeline = pipeline.making(kinds, None);
            session.check_files(pipeline.files(Some(1)))?;
            let source = pipeline.resolved_stages().first().map_or("", |stage| stage.entry.name);
            Some((0, SavedStream::empty(source)?))
        } else {
            *pipeline = pipeline.making(kinds, None);
            session.check(pipeline)?;
            None
        };
        Ok(pipeline.prepare_from(from)?)
    }

    fn open_streams(&self, interrupt: &Interrupt) -> Result<SavedStream> {
        let opened = match &*self.from {
            [only] => SavedStream::open(only, interrupt),
            several => SavedStream::joined(several, interrupt),
        };
        opened.map_err(|error| {
            if interrupt.is_set() { with_code(130, anyhow!("stopped before the first frame")) } else { error.into() }
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

/// Where it is.
const FILE: &str = "pipeline.toml";

/// The key of stages that use a model.
const MODEL: &str = "model";

/// Says that a pipeline is used that was found, not named.
pub(super) fn report_found() {
    say("sizeleak", &format!("pipeline ./{FILE}"));
}

#[derive(Debug)]
pub(super) struct FoundPipeline(Pipeline);

impl FoundPipeline {
    /// The pipeline of the current folder, if none is named and there is one.
    pub(super) fn of(input: &TrafficInput) -> Result<Option<Self>> {
        let file = Path::new(FILE);
        if input.pipeline()?.is_some() || !file.is_file() {
            return Ok(None);
        }
        Ok(Some(Self(Pipeline::read(file)?)))
    }

    pub(super) fn pipeline(&self) -> &Pipeline {
        &self.0
    }

    /// Checks that captures which the user names are not answered with a model that only the file names: they may be of
    /// another gateway. Only the stages that make these kinds run.
    pub(super) fn check(&self, input: &TrafficInput, kinds: &[String]) -> Result<()> {
        if input.captures().is_empty() { Ok(()) } else { refuse_model(&self.0.making(kinds, None)) }
    }

    /// Checks the same of a saved stream, which the stage at this index made.
    pub(super) fn check_behind(&self, index: usize, kinds: &[String]) -> Result<()> {
        refuse_model(&self.0.making(kinds, Some(index)).behind(index))
    }
}

fn refuse_model(pipeline: &Pipeline) -> Result<()> {
    let Some(model) = STAGES.iter().find_map(|stage| pipeline.option(stage.name, MODEL)) else { return Ok(()) };
    let model = model.as_str().map_or_else(|| model.to_string(), str::to_owned);
    Err(usage!(
        "the input is named here, but its model only in ./{FILE} ({model}), which may be of another gateway: name the \
         model with `--model FILE`, use that pipeline with `sizeleak run {FILE} …`, or run the standard pipeline from \
         another folder"
    ))
}
