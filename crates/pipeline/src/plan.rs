//! Places the stages of a pipeline: what runs in which process and on which thread, and what is pushed down to the capture.
//!
//! `record-sizer` shares the thread of the `flow-filter` before it, and both share that of `capture` where there is a single
//! processor: to read takes as long as all that these two do. Every stage behind them has its own; the output shares the last
//! one's where processors are few (`run`). The filter's address test is made by the `capture` right before it, which spares
//! all others' packets the way; what comes out is the same, counters included. What is recorded is recorded by the thread that
//! makes it, or by a relay behind the process that does; stages that are recorded share no thread with the next.

use std::collections::BTreeMap;
use std::path::Path;

use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::BatchLimit;
use sizeleak_runtime::{ConfigureError, Node, Runnable, StageOptions, has_several_processors};
use toml::Value;
use tracing::debug;

use super::link::Reach;
use super::process::{Origin, Program};
use super::relay::Relay;
use super::replay::SavedStream;
use super::run::PreparedRun;
use super::save::Save;
use super::tap::OutputRecorder;
use super::{ConfigError, Mode, Pipeline, SAVE, Step, Work, order};
use crate::registry;

/// What a run does besides running its stages.
#[derive(Default)]
pub struct RunOptions {
    /// Begin with this stream, behind the stage of this place (counted from 0), and leave out all stages up to it.
    pub from: Option<(usize, SavedStream)>,
    /// Record what the stages of these places put out.
    pub taps: Vec<(usize, OutputRecorder)>,
}

/// What runs together.
pub(super) enum Placement {
    /// A stage on a thread, and others attached to it; what the last one puts out is recorded.
    Thread(Box<dyn Runnable>, Vec<Box<dyn Runnable>>, Vec<OutputRecorder>),
    /// A stage in a process.
    Process(Program),
    /// A thread that hands on the bytes of the process before it, or those of a saved stream to the process behind it.
    Relay(Relay),
}

impl Placement {
    /// The name of its first stage.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Thread(first, ..) => first.name(),
            Self::Process(program) => &program.name,
            Self::Relay(relay) => &relay.stage,
        }
    }

    /// How many stages there are in it.
    pub(super) fn stages(&self) -> usize {
        match self {
            Self::Thread(_, others, _) => 1 + others.len(),
            Self::Process(_) | Self::Relay(_) => 1,
        }
    }

    /// Whether what it puts out are batches of packets or segments.
    pub(super) fn makes_batches(&self) -> bool {
        let Self::Thread(first, others, _) = self else { return false };
        let last = others.last().unwrap_or(first);
        registry::find(last.name()).is_some_and(|entry| matches!(entry.makes, "packets" | "segments"))
    }

    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Thread(..) => Reach::Thread,
            Self::Process(_) | Self::Relay(_) => Reach::Process,
        }
    }

    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Thread(..) | Self::Relay(_) => Origin::Native,
            Self::Process(program) => program.origin,
        }
    }
}

impl Pipeline {
    /// Gives every stage its options and looks for every program, before anything runs.
    ///
    /// # Errors
    /// [`ConfigError`] about the first stage that cannot be made.
    pub fn prepare(&self) -> Result<PreparedRun, ConfigError> {
        self.prepare_with(RunOptions::default())
    }

    /// The same, with what the run does besides.
    ///
    /// # Errors
    /// As [`Pipeline::prepare`]. Of stages that are left out nothing is looked at.
    pub fn prepare_with(&self, arrangement: RunOptions) -> Result<PreparedRun, ConfigError> {
        order::check(&self.stages).map_err(|(line, error)| error.at(self.file.as_deref(), line).quoting(&self.text))?;
        let (behind, head) = arrangement.from.map_or((None, None), |(place, replay)| (Some(place), Some(replay)));
        let first = behind.map_or(0, |place| place + 1);
        let mut taps: BTreeMap<usize, Vec<OutputRecorder>> = BTreeMap::new();
        for (place, tap) in arrangement.taps {
            taps.entry(place).or_default().push(tap);
        }
        let seats = self.seats(first, |place| {
            taps.contains_key(&place) || self.stages.get(place).is_some_and(|step| step.save.is_some())
        })?;
        // All stages can be made: now files are.
        let first_save = if head.as_ref().is_some_and(SavedStream::is_named) { first } else { behind.unwrap_or(0) };
        let saves = self.begin_saves(first_save, &mut taps)?;
        let mut whole = Vec::new();
        let recorded = behind.and_then(|place| taps.remove(&place)).unwrap_or_default();
        if let Some(replay) = &head
            && (!recorded.is_empty() || !matches!(seats.first(), Some((Placement::Thread(..), _))))
        {
            whole.push(Placement::Relay(Relay { stage: replay.name().to_owned(), taps: recorded }));
        }
        for (mut seat, place) in seats {
            let mut recorded = taps.remove(&place).unwrap_or_default();
            if let Placement::Thread(_, _, own) = &mut seat {
                own.append(&mut recorded);
            }
            let stage = seat.name().to_owned();
            whole.push(seat);
            if !recorded.is_empty() {
                whole.push(Placement::Relay(Relay { stage, taps: recorded }));
            }
        }
        Ok(PreparedRun { head, seats: whole, queue_depth: self.queue_depth, saves })
    }

    /// A seat for every stage from this place on, with the place of the last stage in it. None follows in the seat of a stage
    /// that is recorded.
    fn seats(&self, first: usize, is_recorded: impl Fn(usize) -> bool) -> Result<Vec<(Placement, usize)>, ConfigError> {
        let mut seats: Vec<(Placement, usize)> = Vec::new();
        for step in self.stages.iter().skip(first) {
            step.tell();
        }
        // Whether the batches of the filter at a place are seen by any but the stage behind it.
        let batches = |place: usize| match self.stages.get(place + 1) {
            Some(behind) if behind.consumes() == Some("segments") && !is_recorded(place) => BatchLimit::InProcess,
            _ => BatchLimit::Contract,
        };
        let mut steps = self.stages.iter().enumerate().skip(first).peekable();
        while let Some((place, step)) = steps.next() {
            if self.mode == Mode::Threads
                && !is_recorded(place)
                && let Some((_, next)) = steps.peek().copied()
                && let Some([capture, filter]) = pushed_down(step, next, batches(place + 1))
            {
                let capture = capture.map_err(|error| self.fault(step, error))?;
                let filter = filter.map_err(|error| self.fault(next, error))?;
                if next.shares_thread() {
                    seats.push((Placement::Thread(capture, vec![filter], Vec::new()), place + 1));
                } else {
                    seats.push((Placement::Thread(capture, Vec::new(), Vec::new()), place));
                    seats.push((Placement::Thread(filter, Vec::new(), Vec::new()), place + 1));
                }
                steps.next();
                continue;
            }
            let seat = step.seat(self.mode, self.file.as_deref()).map_err(|error| self.locate(step, error))?;
            match (seat, seats.last_mut()) {
                (Placement::Thread(stage, ..), Some((Placement::Thread(_, others, _), last)))
                    if step.shares_thread() && !is_recorded(*last) =>
                {
                    others.push(stage);
                    *last = place;
                }
                (seat, _) => seats.push((seat, place)),
            }
        }
        Ok(seats)
    }

    /// Begins the files that the stages from this place on save to, and adds what fills them to the taps.
    fn begin_saves(
        &self,
        first: usize,
        taps: &mut BTreeMap<usize, Vec<OutputRecorder>>,
    ) -> Result<Vec<Save>, ConfigError> {
        let mut saves: Vec<Save> = Vec::new();
        for (place, step) in self.stages.iter().enumerate().skip(first) {
            let Some(path) = &step.save else { continue };
            let line = step.key_lines.iter().find(|(key, _)| key == SAVE).map(|(_, line)| *line);
            let at = |error: ConfigError| {
                error.at(self.file.as_deref().filter(|_| line.is_some()), line).quoting(&self.text)
            };
            if let Some(other) = saves.iter().find(|save| save.path == *path) {
                let fault = format!("`{}` saves to {} already", other.stage, path.display());
                return Err(at(ConfigError::usage(format!("`{}`: {fault}", step.name()))));
            }
            let begun = Save::begin(step.name(), path);
            let (save, tap) = begun.map_err(|fault| at(ConfigError::input(format!("`{}`: {fault}", step.name()))))?;
            saves.push(save);
            taps.entry(place).or_default().push(tap);
        }
        Ok(saves)
    }

    fn fault(&self, step: &Step, error: ConfigureError) -> ConfigError {
        self.locate(step, step.fault(error))
    }

    fn locate(&self, step: &Step, error: ConfigError) -> ConfigError {
        let line = step.line_of(&error.fault);
        error.at(self.file.as_deref().filter(|_| line.is_some()), line).quoting(&self.text)
    }
}

/// A capture that makes the address test of the filter right behind it, and that filter; `None` where the two are others.
fn pushed_down(
    capture: &Step,
    filter: &Step,
    batches: BatchLimit,
) -> Option<[Result<Box<dyn Runnable>, ConfigureError>; 2]> {
    let capture = capture.options::<sizeleak_capture::Options>()?;
    let filter = FlowFilter::new(&filter.options::<sizeleak_flow_filter::Options>()?);
    let capture = match &filter {
        Ok(filter) => capture.build_for(filter.sieve(), batches),
        Err(_) => capture.build(),
    };
    let filter = filter.map(|filter| Box::new(Node::new(filter.with_batches(batches))) as Box<dyn Runnable>);
    Some([capture, filter])
}

impl Step {
    /// Tells what was set of its options.
    fn tell(&self) {
        match &self.work {
            Work::Known { entry, options } => debug!(stage = entry.name, %options, "is told"),
            Work::Foreign { name, command } => debug!(stage = name, ?command, "is told"),
        }
    }

    /// The options of this one of the seven stages, if that is what it is and they can be read.
    fn options<O: StageOptions>(&self) -> Option<O> {
        match &self.work {
            Work::Known { entry, options } if entry.name == O::NAME => {
                O::deserialize(Value::Table(options.clone())).ok()
            }
            _ => None,
        }
    }

    /// The kind it works on, if it is one of the seven stages and no source.
    fn consumes(&self) -> Option<&'static str> {
        match &self.work {
            Work::Known { entry, .. } => entry.consumes,
            Work::Foreign { .. } => None,
        }
    }

    /// Whether it works on the thread of the stage before it. To read takes as long as all that is done with packets and
    /// segments: where there is another processor, that does it.
    fn shares_thread(&self) -> bool {
        match self.consumes() {
            Some("packets") => !has_several_processors(),
            Some("segments") => true,
            _ => false,
        }
    }

    fn seat(&self, mode: Mode, file: Option<&Path>) -> Result<Placement, ConfigError> {
        let (entry, options) = match &self.work {
            Work::Foreign { name, command } => {
                let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
                return Ok(Placement::Process(Program::foreign(name, command, folder)?));
            }
            Work::Known { entry, options } => (entry, options),
        };
        let configured =
            entry.configure(options.clone()).map_err(|error| ConfigError::usage(error.message().to_owned()))?;
        // A process would find the same faults, but later, and without the line.
        let runnable = configured.build().map_err(|error| self.fault(error))?;
        match mode {
            Mode::Threads => Ok(Placement::Thread(runnable, Vec::new(), Vec::new())),
            Mode::Processes => Ok(Placement::Process(Program::native(entry.name, entry.arguments(options))?)),
        }
    }

    fn fault(&self, error: ConfigureError) -> ConfigError {
        match error {
            ConfigureError::Usage(fault) => ConfigError::usage(format!("`{}`: {fault}", self.name())),
            ConfigureError::Input(fault) => ConfigError::input(format!("`{}`: {fault}", self.name())),
        }
    }

    /// The line of the key whose value a message speaks of, if that was set in the file; else the stage's own.
    fn line_of(&self, fault: &str) -> Option<usize> {
        let Work::Known { options, .. } = &self.work else { return self.line };
        let speaks_of = |text: &str| !text.is_empty() && fault.contains(text);
        let is_about = |value: &Value| match value {
            Value::String(text) => speaks_of(text),
            Value::Array(values) => values.iter().filter_map(Value::as_str).any(speaks_of),
            _ => false,
        };
        match options.iter().find(|(_, value)| is_about(value)) {
            Some((key, _)) => self.key_lines.iter().find(|(set, _)| set == key).map(|(_, line)| *line),
            None => self.line,
        }
    }
}
