//! Places the stages of a pipeline: what runs in which process and on which thread.
//!
//! `record-sizer` shares the thread of the `flow-filter` before it, and both share that of `capture` if there is only one
//! processor; otherwise one thread reads while another one filters and sizes. Every later stage has its own thread. A `capture` directly before `flow-filter` applies its address
//! test, which drops the packets of other hosts early; frames and counters stay the same. Output is recorded by the
//! thread that makes it, or by a forwarder after the process that does, so no stage is fused to a recorded one.

use std::collections::BTreeMap;
use std::path::Path;

use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::BatchLimit;
use sizeleak_platform::runtime::{Access, ConfigureError, Node, Runnable, StageOptions, processors};
use toml::Value;
use tracing::debug;

use crate::placement::{ByteForwarder, Placement, StageThread};
use crate::process::{ProgramOrigin, StageProgram};
use crate::recording::{OutputRecorder, PendingSave};
use crate::run::PreparedRun;
use crate::stage::{PipelineStage, SAVE, StageKind, check_order, fault_of_queue_depth};
use crate::{ConfigError, Mode, Pipeline, SavedStream};

impl Pipeline {
    /// Builds every stage and looks up every program, before anything runs.
    pub fn prepare(&self) -> Result<PreparedRun, ConfigError> {
        self.prepare_from(None)
    }

    /// The same from a stream on, behind the stage at this index. Skipped stages are not checked.
    pub fn prepare_from(&self, from: Option<(usize, SavedStream)>) -> Result<PreparedRun, ConfigError> {
        check_order(&self.stages).map_err(|(line, error)| error.at(self.file.as_deref(), line, &self.text))?;
        if let Some(fault) = fault_of_queue_depth(self.settings.queue_depth) {
            return Err(ConfigError::usage(fault));
        }
        let (skipped, head) = from.map_or((None, None), |(index, stream)| (Some(index), Some(stream)));
        let first = skipped.map_or(0, |index| index + 1);
        let placements =
            self.place_stages(first, |index| self.stages.get(index).is_some_and(|stage| stage.save.is_some()))?;
        // All stages can be built: only now create files.
        let first_save =
            if head.as_ref().is_some_and(|stream| stream.path.is_some()) { first } else { skipped.unwrap_or(0) };
        let mut files = self.files(Some(first_save));
        if let Some(stream) = head.as_ref().and_then(|stream| stream.path.as_ref()) {
            files.reads("the saved stream", stream);
        }
        files.check().map_err(|conflict| ConfigError::usage(conflict.to_string()))?;
        let (saves, mut recorders) = self.begin_saves(first_save)?;
        let mut access = self.access(first, &placements, &saves);
        if let (Some(access), Some(stream)) = (&mut access, &head) {
            stream.unopened.iter().for_each(|file| access.read(file));
        }
        let mut all = Vec::new();
        let of_head = skipped.and_then(|index| recorders.remove(&index));
        if let Some(stream) = &head
            && (of_head.is_some() || !matches!(placements.first(), Some((Placement::Thread(_), _))))
        {
            all.push(Placement::Forwarder(ByteForwarder { stage: stream.name().to_owned(), recorder: of_head }));
        }
        for (mut placement, last) in placements {
            let mut recorder = recorders.remove(&last);
            if let Placement::Thread(thread) = &mut placement {
                thread.recorder = recorder.take();
            }
            let stage = placement.name().to_owned();
            if let Some(before @ Placement::Process(_)) = all.last()
                && matches!(placement, Placement::Process(_))
                && [before, &placement].iter().any(|process| process.origin() == ProgramOrigin::External)
            {
                let stage = before.name().to_owned();
                all.push(Placement::Forwarder(ByteForwarder { stage, recorder: None }));
            }
            all.push(placement);
            if recorder.is_some() {
                all.push(Placement::Forwarder(ByteForwarder { stage, recorder }));
            }
        }
        Ok(PreparedRun { head, placements: all, queue_depth: self.settings.queue_depth, saves, access })
    }

    /// Places the stages from index `first` on; each placement comes with the index of its last stage. No stage is
    /// fused to one that is recorded.
    fn place_stages(
        &self,
        first: usize,
        is_recorded: impl Fn(usize) -> bool,
    ) -> Result<Vec<(Placement, usize)>, ConfigError> {
        let mut placements: Vec<(Placement, usize)> = Vec::new();
        let mut stages =
            self.stages.iter().enumerate().skip(first).inspect(|(_, stage)| stage.log_options()).peekable();
        while let Some((index, stage)) = stages.next() {
            if self.settings.mode == Mode::Threads
                && !is_recorded(index)
                && let Some((filter_index, filter)) = stages.peek().copied()
                && let Some(built) = capture_and_filter(stage, filter, self.batch_limit(filter_index, &is_recorded))
            {
                stages.next();
                let [capture, built_filter] = built;
                let mut thread = StageThread::new(capture.map_err(|error| self.locate(stage, stage.fault(error)))?);
                let built_filter = built_filter.map_err(|error| self.locate(filter, filter.fault(error)))?;
                if filter.shares_thread() {
                    thread.stages.push(built_filter);
                } else {
                    placements.push((Placement::Thread(thread), index));
                    thread = StageThread::new(built_filter);
                }
                placements.push((Placement::Thread(thread), filter_index));
                continue;
            }
            let placement = stage.place(self).map_err(|error| self.locate(stage, error))?;
            match (placement, placements.last_mut()) {
                (Placement::Thread(thread), Some((Placement::Thread(before), last)))
                    if stage.shares_thread() && !is_recorded(*last) =>
                {
                    before.stages.extend(thread.stages);
                    *last = index;
                }
                (placement, _) => placements.push((placement, index)),
            }
        }
        Ok(placements)
    }

    /// What a run of these placements, the first of which is of the stage at index `first`, opens while it runs; `None`
    /// if some of them start programs, which need what they need.
    fn access(&self, first: usize, placements: &[(Placement, usize)], saves: &[PendingSave]) -> Option<Access> {
        if placements.iter().any(|(placement, _)| matches!(placement, Placement::Process(_))) {
            return None;
        }
        let mut access = Access::default();
        for stage in self.stages.iter().skip(first) {
            if let StageKind::BuiltIn { entry, options } = &stage.kind {
                access.extend((entry.configure)(options.clone()).ok()?.access());
            }
        }
        for file in saves.iter().map(|save| &save.path).chain(&self.settings.latency_log) {
            access.write_beside(file);
        }
        Some(access)
    }

    /// How large the batches of the filter at this index may be: only stages on its own thread may see large ones.
    fn batch_limit(&self, filter: usize, is_recorded: impl Fn(usize) -> bool) -> BatchLimit {
        let next = self.stages.get(filter + 1).and_then(PipelineStage::consumes);
        if next == Some("segments") && !is_recorded(filter) { BatchLimit::InProcess } else { BatchLimit::Contract }
    }

    fn begin_saves(&self, first: usize) -> Result<(Vec<PendingSave>, BTreeMap<usize, OutputRecorder>), ConfigError> {
        let (mut saves, mut recorders) = (Vec::new(), BTreeMap::new());
        for (index, stage) in self.stages.iter().enumerate().skip(first) {
            let Some(path) = &stage.save else { continue };
            let (save, recorder) = PendingSave::begin(stage.name(), path).map_err(|fault| {
                let fault = ConfigError::input(format!("`{}`: {fault}", stage.name()));
                self.at_line(stage.line_of_key(SAVE), fault)
            })?;
            saves.push(save);
            recorders.insert(index, recorder);
        }
        Ok((saves, recorders))
    }

    fn locate(&self, stage: &PipelineStage, error: ConfigError) -> ConfigError {
        self.at_line(stage.line_of_fault(&error.fault), error)
    }

    fn at_line(&self, line: Option<usize>, error: ConfigError) -> ConfigError {
        error.at(self.file.as_deref().filter(|_| line.is_some()), line, &self.text)
    }
}

/// A `capture` that applies the address test of the `flow-filter` after it, and that filter; `None` for other stages.
fn capture_and_filter(
    capture: &PipelineStage,
    filter: &PipelineStage,
    batches: BatchLimit,
) -> Option<[Result<Box<dyn Runnable>, ConfigureError>; 2]> {
    let capture = capture.options::<sizeleak_capture::Options>()?;
    let filter = FlowFilter::new(&filter.options::<sizeleak_flow_filter::Options>()?);
    let capture = match &filter {
        Ok(filter) => capture.build_for(filter.prefilter(), batches),
        Err(_) => capture.build(),
    };
    let filter = filter.map(|filter| Box::new(Node::new(filter.with_batches(batches))) as Box<dyn Runnable>);
    Some([capture, filter])
}

impl PipelineStage {
    fn log_options(&self) {
        match &self.kind {
            StageKind::BuiltIn { entry, options } => debug!(stage = entry.name, %options, "configured"),
            StageKind::Embedded { name, .. } => debug!(stage = name, "configured"),
            StageKind::External { name, command } => debug!(stage = name, ?command, "configured"),
        }
    }

    fn options<O: StageOptions>(&self) -> Option<O> {
        match &self.kind {
            StageKind::BuiltIn { entry, options } if entry.name == O::NAME => {
                O::deserialize(Value::Table(options.clone())).ok()
            }
            _ => None,
        }
    }

    fn consumes(&self) -> Option<&'static str> {
        self.entry()?.consumes
    }

    /// Whether it runs on the thread of the previous stage.
    fn shares_thread(&self) -> bool {
        match self.consumes() {
            // Reading takes as long as filtering and sizing: another processor does these, if there is one.
            Some("packets") => processors() == 1,
            Some("segments") => true,
            _ => false,
        }
    }

    fn place(&self, pipeline: &Pipeline) -> Result<Placement, ConfigError> {
        let (entry, options) = match &self.kind {
            StageKind::BuiltIn { entry, options } => (entry, options),
            StageKind::Embedded { build, .. } => return Ok(Placement::Thread(StageThread::new((build.0)()))),
            StageKind::External { name, command } => {
                let folder = pipeline.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
                return Ok(Placement::Process(StageProgram::external(name, command, folder)?));
            }
        };
        let configured =
            (entry.configure)(options.clone()).map_err(|error| ConfigError::usage(error.message().to_owned()))?;
        // Its process would find the same faults, but later, and without the line.
        let runnable = configured.build().map_err(|error| self.fault(error))?;
        match pipeline.settings.mode {
            Mode::Threads => Ok(Placement::Thread(StageThread::new(runnable))),
            Mode::Processes => {
                let unconfined = (!pipeline.settings.sandbox).then(|| "--no-sandbox".to_owned());
                let arguments = unconfined.into_iter().chain(entry.arguments(options));
                Ok(Placement::Process(StageProgram::built_in(entry.name, arguments)?))
            }
        }
    }

    fn fault(&self, error: ConfigureError) -> ConfigError {
        match error {
            ConfigureError::Usage(fault) => ConfigError::usage(format!("`{}`: {fault}", self.name())),
            ConfigureError::Input(fault) => ConfigError::input(format!("`{}`: {fault}", self.name())),
        }
    }

    /// The line of the key whose value the message quotes, if that was set in the file; else the line of the stage.
    fn line_of_fault(&self, fault: &str) -> Option<usize> {
        let StageKind::BuiltIn { options, .. } = &self.kind else { return self.line };
        let quotes = |text: &str| !text.is_empty() && fault.contains(text);
        let is_quoted = |value: &Value| match value {
            Value::String(text) => quotes(text),
            Value::Array(values) => values.iter().filter_map(Value::as_str).any(quotes),
            _ => false,
        };
        match options.iter().find(|(_, value)| is_quoted(value)) {
            Some((key, _)) => self.line_of_key(key),
            None => self.line,
        }
    }
}
