//! Runs a pipeline: places its stages, links them, and drains the last one into the sink.

use std::io;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;
use std::thread::{self, Scope};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use sizeleak_frame::{Frame, Summary};
use sizeleak_stage::{ConfigureError, Input, Interrupt, Outcome, Received, Runnable, Silent};
use toml::Value;

use super::cause::{Drained, Ended, settle};
use super::link::{Reach, Receiving, Sending, link};
use super::process::{Origin, Program, interrupt as interrupt_process};
use super::{ConfigError, Mode, Pipeline, RunError, Sink, Step, Work};

/// How often it is looked whether the user wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How a run ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All input was processed.
    Done,
    /// The user stopped it; what was read until then was processed.
    Interrupted,
    /// Nobody took the output any more.
    Closed,
}

/// What a run leaves besides its frames.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it ended.
    pub ending: Ending,
    /// What each stage did; `None` where the output was closed before the end.
    pub summary: Option<Summary>,
    /// When it began, for a log of latencies.
    pub start: SystemTime,
    /// The same moment on the clock that measures durations.
    pub clock: Instant,
}

/// A pipeline whose stages have taken their options, ready to run.
pub struct Prepared {
    seats: Vec<Seat>,
    queue_depth: usize,
}

/// Where a stage runs.
enum Seat {
    Thread(Box<dyn Runnable>),
    Process(Program),
}

impl Seat {
    fn name(&self) -> &str {
        match self {
            Self::Thread(runnable) => runnable.name(),
            Self::Process(program) => &program.name,
        }
    }

    fn reach(&self) -> Reach {
        match self {
            Self::Thread(_) => Reach::Thread,
            Self::Process(_) => Reach::Process,
        }
    }

    fn origin(&self) -> Origin {
        match self {
            Self::Thread(_) => Origin::Native,
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
        super::order::check(&self.stages).map_err(|(line, error)| error.at(self.file.as_deref(), line))?;
        let seats = self.stages.iter().map(|step| {
            let seat = step.seat(self.mode, self.file.as_deref());
            seat.map_err(|error| {
                let line = step.line_of(&error.fault);
                error.at(self.file.as_deref().filter(|_| line.is_some()), line)
            })
        });
        Ok(Prepared { seats: seats.collect::<Result<_, _>>()?, queue_depth: self.queue_depth })
    }
}

impl Step {
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
        let runnable = configured.build().map_err(|error| match error {
            ConfigureError::Usage(fault) => ConfigError::usage(format!("`{}`: {fault}", entry.name)),
            ConfigureError::Input(fault) => ConfigError::input(format!("`{}`: {fault}", entry.name)),
        })?;
        match mode {
            Mode::Threads => Ok(Seat::Thread(runnable)),
            Mode::Processes => Ok(Seat::Process(Program::native(entry.name, entry.arguments(options))?)),
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

impl Prepared {
    /// Runs it to its end. `sink` gets the frames of the last stage. Where the run ends early, for whatever reason,
    /// `interrupt` is set in the end.
    ///
    /// # Errors
    /// [`RunError`]: the first cause, and the stage it began at. Whatever was whole before has been given to the sink.
    pub fn run(self, interrupt: &Interrupt, sink: &mut dyn Sink) -> Result<Report, RunError> {
        let (start, clock) = (SystemTime::now(), Instant::now());
        let ended = Mutex::new(Vec::new());
        let mut summary = None;
        let drained = thread::scope(|scope| {
            let (running, finished) = bounded(0);
            let mut first = None;
            let started = self.start(scope, &ended, interrupt, &mut first);
            if let Some(id) = first {
                scope.spawn(move || forward(interrupt, id, &finished));
            }
            let drained = started.map(|last| drain(last.into_input().as_mut(), sink, &mut summary));
            if !matches!(drained, Ok(Drained::Whole)) {
                // The first stage may be waiting for input that does not come, and would not notice that all is over.
                interrupt.set();
                first.into_iter().for_each(interrupt_process);
            }
            drop(running);
            drained
        })?;
        let ended = ended.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ending = settle(ended, drained)?;
        Ok(Report { ending, summary, start, clock })
    }

    /// Starts all stages; gives the end of the last link. `first` gets the id of the first one's process, if it has one.
    fn start<'scope, 'env: 'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        ended: &'env Mutex<Vec<Ended>>,
        interrupt: &'env Interrupt,
        first: &mut Option<u32>,
    ) -> Result<Receiving, RunError> {
        let reaches: Vec<Reach> = self.seats.iter().map(Seat::reach).chain([Reach::Thread]).collect();
        let mut input = None;
        for ((at, seat), neighbours) in self.seats.into_iter().enumerate().zip(reaches.windows(2)) {
            let reach = if neighbours.contains(&Reach::Process) { Reach::Process } else { Reach::Thread };
            let fail = |stage: &str, error: &io::Error| RunError {
                stage: stage.to_owned(),
                cause: format!("cannot be started: {error}"),
                code: 1,
            };
            let (sending, receiving) = link(reach, self.queue_depth).map_err(|error| fail(seat.name(), &error))?;
            let (stage, origin) = (seat.name().to_owned(), seat.origin());
            let tell = move |outcome| {
                let mut ended = ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                ended.push(Ended { at, stage, origin, outcome });
            };
            match seat {
                Seat::Thread(runnable) => {
                    let input = input.map(Receiving::into_input);
                    scope.spawn(move || run_on_thread(runnable, input, sending, interrupt, tell));
                }
                Seat::Process(program) => {
                    let stdin = input.map_or_else(std::process::Stdio::inherit, Receiving::into_stdin);
                    let child = program.start(stdin, sending.into_stdout());
                    let child = child.map_err(|error| fail(&program.name, &error))?;
                    if at == 0 {
                        *first = Some(child.id());
                    }
                    scope.spawn(move || watch(&program, child, tell));
                }
            }
            input = Some(receiving);
        }
        let none = || RunError { stage: String::new(), cause: "a pipeline without a stage".into(), code: 2 };
        input.ok_or_else(none)
    }
}

fn run_on_thread(
    runnable: Box<dyn Runnable>,
    mut input: Option<Box<dyn Input + Send>>,
    sending: Sending,
    interrupt: &Interrupt,
    tell: impl FnOnce(Outcome),
) {
    let mut output = sending.into_output();
    let input = input.as_mut().map(|input| &mut **input as &mut dyn Input);
    // A stage that panics has a bug; the others must still come to their end, and the user must hear of it.
    let run = || runnable.run(input, &mut *output, interrupt, &mut Silent);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Outcome::Failed("panicked: this is a bug of sizeleak; please report it".into()));
    // Told before the links are dropped, so that what follows from it is told later.
    tell(outcome);
}

fn watch(program: &Program, mut child: Child, tell: impl FnOnce(Outcome)) {
    tell(program.watch(&mut child, |line| eprintln!("{}: {line}", program.name)));
}

/// Passes the user's wish to stop on to the process at the head, until the run is over.
fn forward(interrupt: &Interrupt, id: u32, finished: &Receiver<()>) {
    while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(LOOK_EVERY) {
        if interrupt.is_set() {
            interrupt_process(id);
            return;
        }
    }
}

/// Gives everything that comes to the sink.
fn drain(input: &mut dyn Input, sink: &mut dyn Sink, summary: &mut Option<Summary>) -> Drained {
    let mut parcel = Vec::new();
    loop {
        let mut paused = Ok(());
        let received = input.receive(&mut parcel, &mut || paused = sink.pause());
        let mut taken = paused;
        for frame in parcel.drain(..) {
            if let Frame::Summary(whole) = &frame {
                *summary = Some(whole.clone());
            }
            taken = taken.and_then(|()| sink.take(frame));
        }
        match (taken, received) {
            (Err(error), _) => return Drained::of_output(error),
            (Ok(()), Ok(Received::Frames { .. })) => {}
            (Ok(()), Ok(Received::End | Received::Interrupted)) => {
                return sink.pause().map_or_else(Drained::of_output, |()| Drained::Whole);
            }
            (Ok(()), Err(error)) => {
                let cut = Drained::Cut(error.to_string());
                return sink.pause().map_or_else(Drained::of_output, |()| cut);
            }
        }
    }
}

impl Drained {
    fn of_output(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Failed(error) }
    }
}
