//! What pipelines are run over: captures, or saved streams. They are read once; every later run continues from what
//! was kept of them before the segmenter.

mod part;

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sizeleak_frame::{Frame, Notice};
use sizeleak_packet::AddressSet;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_text::{TimeRange, counted};

use crate::cause::RunEnding;
use crate::error::{ConfigError, InputError, RunError};
use crate::pipeline::Pipeline;
use crate::recording::SavedStream;
use crate::run::PreparedRun;
pub use part::InputPart;
use part::{GatewayFilter, PartRecorder, join, own_interrupt};

/// The last stage whose output does not depend on how commands are found. It is small.
const LAST_OF_FRONT: &str = "record-sizer";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// The captures that the pipeline's `capture` reads, in order of time.
    Captures,
    CaptureByCapture(Vec<PathBuf>),
    Streams(Vec<PathBuf>),
}

#[derive(Debug)]
pub struct PipelineInput {
    source: InputSource,
    shifts_overlapping: bool,
    /// When the commands are from that runs show; they read everything.
    range: TimeRange,
    kept: Mutex<Vec<(String, Arc<KeptInput>)>>,
}

#[derive(Debug)]
struct KeptInput {
    /// Deleted with its folder.
    stream: PathBuf,
    _folder: tempfile::TempDir,
    stage: String,
    parts: Vec<InputPart>,
    damage: Option<RunError>,
}

impl PipelineInput {
    pub fn new(source: InputSource) -> Self {
        Self { source, shifts_overlapping: false, range: TimeRange::default(), kept: Mutex::new(Vec::new()) }
    }

    /// Captures of the same times are shifted, instead of refused: their times were rewritten, and order alone counts.
    #[must_use]
    pub fn shifting_overlapping(self, shifts_overlapping: bool) -> Self {
        Self { shifts_overlapping, ..self }
    }

    /// Leaves out records, and commands with what is said of them, that are not of this time.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Self { range, ..self }
    }

    /// Runs a pipeline over the input until it ends or a signal stops it: notices go to `on_notice`, all other frames to
    /// `on_frame`.
    ///
    /// Returns what is wrong with the captures, if anything; frames from before the damage have been passed on.
    pub fn observe(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
        on_frame: impl FnMut(Frame) + Send,
    ) -> Result<Option<RunError>, InputError> {
        self.observe_apart(pipeline, on_notice, on_frame, |_| {})
    }

    /// The same, with what is of other times apart.
    pub fn observe_apart(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
        mut on_frame: impl FnMut(Frame) + Send,
        mut on_other: impl FnMut(Frame) + Send,
    ) -> Result<Option<RunError>, InputError> {
        let (mut others, mut is_any) = (0, false);
        let damage = self.observe_all(pipeline, on_notice, |frame| match frame.time_ns() {
            Some(time_ns) if !self.range.contains(time_ns) => {
                others += 1;
                on_other(frame);
            }
            time_ns => {
                is_any |= time_ns.is_some();
                on_frame(frame);
            }
        })?;
        if is_any || others == 0 {
            return Ok(damage);
        }
        Err(ConfigError::input(format!("none of the {} is {}", counted(others, "command", "commands"), self.range))
            .into())
    }

    /// The same, with what is of other times.
    pub fn observe_all(
        &self,
        pipeline: &Pipeline,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
        on_frame: impl FnMut(Frame) + Send,
    ) -> Result<Option<RunError>, InputError> {
        let Some(kept) = self.kept(pipeline)? else {
            return observe_run(pipeline.prepare()?, on_notice, on_frame);
        };
        let frames = if kept.stage == LAST_OF_FRONT { "records" } else { "commands" };
        let name = format!("the {frames} of the input");
        let stream = SavedStream::of_file(name, File::open(&kept.stream)?)?;
        let index = pipeline.index_of(&stream)?;
        let damage = observe_run(pipeline.prepare_from(Some((index, stream)))?, on_notice, on_frame)?;
        Ok(kept.damage.clone().or(damage))
    }

    /// The parts of the input in order of time: files that are read one after another; none if they are read together.
    pub fn parts(&self, pipeline: &Pipeline) -> Result<Vec<InputPart>, InputError> {
        Ok(self.kept(pipeline)?.map_or_else(Vec::new, |kept| kept.parts.clone()))
    }

    /// Whether the input begins with commands, so that there are no records to find others in.
    pub fn has_records(&self, pipeline: &Pipeline) -> Result<bool, InputError> {
        Ok(self.kept(pipeline)?.is_none_or(|kept| kept.stage == LAST_OF_FRONT))
    }

    pub fn streams(&self) -> &[PathBuf] {
        match &self.source {
            InputSource::Streams(files) => files,
            InputSource::Captures | InputSource::CaptureByCapture(_) => &[],
        }
    }

    /// What was kept for a pipeline, made if it is the first with such a front; `None` if its stages up to the records
    /// are not all known, so that it is run as a whole.
    fn kept(&self, pipeline: &Pipeline) -> Result<Option<Arc<KeptInput>>, InputError> {
        let Some(stage) = self.last_kept_stage(pipeline)? else { return Ok(None) };
        let front = pipeline.until(&stage)?;
        let key = key_of(&front);
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = all.iter().find(|(other, _)| *other == key) {
            return Ok(Some(Arc::clone(kept)));
        }
        let kept = Arc::new(self.keep(&front, stage)?);
        all.push((key, Arc::clone(&kept)));
        Ok(Some(kept))
    }

    fn last_kept_stage(&self, pipeline: &Pipeline) -> Result<Option<String>, InputError> {
        let known = pipeline.resolved_stages();
        let records = known.iter().position(|stage| stage.entry.name == LAST_OF_FRONT);
        let Some(first) = self.streams().first() else {
            return match (records, &self.source) {
                (None, InputSource::CaptureByCapture(_)) => Err(unknown_front()),
                (records, _) => Ok(records.map(|_| LAST_OF_FRONT.to_owned())),
            };
        };
        let stream = open_stream(first)?;
        let maker = pipeline.index_of(&stream)?;
        match (records, known.get(maker)) {
            (Some(records), _) if maker <= records => Ok(Some(LAST_OF_FRONT.to_owned())),
            (_, Some(stage)) => Ok(Some(stage.entry.name.to_owned())),
            (_, None) => Err(unknown_front()),
        }
    }

    fn keep(&self, front: &Pipeline, stage: String) -> Result<KeptInput, InputError> {
        let folder = tempfile::Builder::new().prefix("sizeleak-").tempdir()?;
        let gateways = match self.streams() {
            [] => None,
            _ => Some(gateways_of(front)?),
        };
        let mut recorder = PartRecorder { folder: folder.path(), stage: &stage, parts: Vec::new(), damage: None };
        let mut filter = GatewayFilter::new(gateways);
        match &self.source {
            InputSource::Captures => recorder.record(front, PathBuf::new(), None, &mut filter)?,
            InputSource::CaptureByCapture(captures) => {
                let mut front = front.clone();
                if captures.len() > 1 && front.option("flow-filter", "allow-absent").is_none() {
                    // A capture of one event may lack the gateway.
                    front.set("flow-filter", "allow-absent", true)?;
                }
                for capture in captures {
                    if let Err(error) = File::open(capture)
                        && captures.len() > 1
                    {
                        recorder.record_unreadable(capture, &error)?;
                        continue;
                    }
                    front.read_captures(std::slice::from_ref(capture))?;
                    recorder.record(&front, capture.clone(), None, &mut filter)?;
                }
            }
            InputSource::Streams(files) => {
                for file in files {
                    let stream = open_stream(file)?;
                    let index = front.index_of(&stream)?;
                    recorder.record(front, file.clone(), Some((index, stream)), &mut filter)?;
                }
            }
        }
        filter.check(self.streams())?;
        let PartRecorder { mut parts, damage, .. } = recorder;
        let stream = folder.path().join("joined.frames.zst");
        join(&mut parts, self.shifts_overlapping, &stream)?;
        let parts = if self.source == InputSource::Captures { Vec::new() } else { parts };
        Ok(KeptInput { stream, _folder: folder, stage, parts, damage })
    }
}

fn key_of(front: &Pipeline) -> String {
    front.resolved_stages().iter().fold(String::new(), |mut key, stage| {
        // Writing to a string does not fail.
        _ = writeln!(key, "[{}]\n{}", stage.entry.name, stage.options);
        key
    })
}

fn unknown_front() -> InputError {
    let fault = "the pipeline's first stages are not `capture`, `flow-filter` and `record-sizer`: it cannot read files \
                 one after another or continue from them";
    ConfigError::usage(fault.to_owned()).into()
}

fn open_stream(file: &Path) -> Result<SavedStream, InputError> {
    Ok(SavedStream::open(file, &Interrupt::new())?)
}

/// The gateways that the user named; none are all.
fn gateways_of(front: &Pipeline) -> Result<AddressSet, InputError> {
    let named = front.option("flow-filter", "gateway").and_then(toml::Value::as_array);
    let named = named.into_iter().flatten().filter_map(toml::Value::as_str);
    Ok(AddressSet::parse(named).map_err(|error| ConfigError::usage(format!("flow-filter.gateway: {error}")))?)
}

fn observe_run(
    run: PreparedRun,
    on_notice: &mut (dyn FnMut(&Notice) + Send),
    mut on_frame: impl FnMut(Frame) + Send,
) -> Result<Option<RunError>, InputError> {
    let mut sink = |frame: Frame| -> io::Result<()> {
        match &frame {
            Frame::Notice(notice) => on_notice(notice),
            _ => on_frame(frame),
        }
        Ok(())
    };
    match run.run(&own_interrupt()?, &mut sink) {
        Ok(report) if report.ending == RunEnding::Interrupted => Err(InputError::Interrupted),
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(error)),
    }
}
