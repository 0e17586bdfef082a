//! Places the stages of a pipeline: what runs in which process and on which thread, and what is pushed down to the capture.
//!
//! Stages of one process that hand batches of packets or segments to each other share a thread: to pass a batch on to
//! another one costs more than the work on it. The address test of a `flow-filter` right behind `capture` is made by
//! that, which spares all others' packets the way; what comes out is the same, counters included.

use std::path::Path;

use sizeleak_flow_filter::FlowFilter;
use sizeleak_stage::{ConfigureError, Node, Runnable, StageOptions};
use toml::Value;
use tracing::debug;

use super::link::Reach;
use super::process::{Origin, Program};
use super::run::Prepared;
use super::{ConfigError, Mode, Pipeline, Step, Work, order};

/// What runs together.
pub(super) enum Seat {
    /// A stage on a thread, and others attached to it.
    Thread(Box<dyn Runnable>, Vec<Box<dyn Runnable>>),
    /// A stage in a process.
    Process(Program),
}

impl Seat {
    /// The name of its first stage.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Thread(first, _) => first.name(),
            Self::Process(program) => &program.name,
        }
    }

    /// How many stages there are in it.
    pub(super) fn stages(&self) -> usize {
        match self {
            Self::Thread(_, others) => 1 + others.len(),
            Self::Process(_) => 1,
        }
    }

    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Thread(..) => Reach::Thread,
            Self::Process(_) => Reach::Process,
        }
    }

    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Thread(..) => Origin::Native,
            Self::Process(program) => program.origin,
        }
    }
}

impl Pipeline {
    /// Gives every stage its options and looks for every program, before anything runs.
    ///
    /// # Errors
    /// [`ConfigError`] about the first stage that cannot be made.
    pub fn prepare(&self) -> Result<Prepared, ConfigError> {
        order::check(&self.stages).map_err(|(line, error)| error.at(self.file.as_deref(), line).quoting(&self.text))?;
        let mut seats: Vec<Seat> = Vec::new();
        for step in &self.stages {
            step.tell();
        }
        let mut steps = self.stages.iter();
        while let Some(step) = steps.next() {
            if self.mode == Mode::Threads
                && let Some(next) = steps.as_slice().first()
                && let Some([capture, filter]) = pushed_down(step, next)
            {
                let capture = capture.map_err(|error| self.fault(step, error))?;
                let filter = filter.map_err(|error| self.fault(next, error))?;
                seats.push(Seat::Thread(capture, vec![filter]));
                steps.next();
                continue;
            }
            let seat = step.seat(self.mode, self.file.as_deref()).map_err(|error| self.locate(step, error))?;
            match (seat, seats.last_mut()) {
                (Seat::Thread(stage, _), Some(Seat::Thread(_, others))) if step.takes_batches() => others.push(stage),
                (seat, _) => seats.push(seat),
            }
        }
        Ok(Prepared { seats, queue_depth: self.queue_depth })
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
fn pushed_down(capture: &Step, filter: &Step) -> Option<[Result<Box<dyn Runnable>, ConfigureError>; 2]> {
    let capture = capture.options::<sizeleak_capture::Options>()?;
    let filter = FlowFilter::new(&filter.options::<sizeleak_flow_filter::Options>()?);
    let capture = match &filter {
        Ok(filter) => capture.build_for(filter.sieve()),
        Err(_) => capture.build(),
    };
    let filter = filter.map(|filter| Box::new(Node::new(filter)) as Box<dyn Runnable>);
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

    /// Whether it works on a kind that comes in batches.
    fn takes_batches(&self) -> bool {
        matches!(&self.work, Work::Known { entry, .. } if matches!(entry.consumes, Some("packets" | "segments")))
    }

    fn seat(&self, mode: Mode, file: Option<&Path>) -> Result<Seat, ConfigError> {
        let (entry, options) = match &self.work {
            Work::Foreign { name, command } => {
                let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
                return Ok(Seat::Process(Program::foreign(name, command, folder)?));
            }
            Work::Known { entry, options } => (entry, options),
        };
        let configured =
            entry.configure(options.clone()).map_err(|error| ConfigError::usage(error.message().to_owned()))?;
        // A process would find the same faults, but later, and without the line.
        let runnable = configured.build().map_err(|error| self.fault(error))?;
        match mode {
            Mode::Threads => Ok(Seat::Thread(runnable, Vec::new())),
            Mode::Processes => Ok(Seat::Process(Program::native(entry.name, entry.arguments(options))?)),
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
