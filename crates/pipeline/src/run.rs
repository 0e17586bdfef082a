//! Runs a pipeline: places its stages, links them, and drains the last one into the sink.

use std::io;
use std::iter;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Mutex;
use std::thread::{self, Scope};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use sizeleak_frame::{FrameSink, Summary};
use sizeleak_runtime::{Input, Interrupt, Outcome, Output, Received, Runnable, processors, run_fused};
use sizeleak_telemetry::Telemetry;
use sizeleak_telemetry::log::say;

use super::RunError;
use super::cause::{Drained, Ended, settle};
use super::link::{Reach, Receiving, Sending, link};
use super::plan::Placement;
use super::process::{Origin, Program, interrupt as interrupt_process};
use super::relay::Relay;
use super::replay::SavedStream;
use super::save::Save;
use super::sink::Drain;
use super::tap::{OutputRecorder, Tapped};

/// How often it is looked whether the user wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// No more parcels of batches wait in a link than this: they hold the buffers that are read into.
const BATCHES_WAITING: usize = 4;

/// How a run ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnding {
    /// All input was processed.
    Done,
    /// The user stopped it; what was read until then was processed.
    Interrupted,
    /// Nobody took the output any more.
    Closed,
}

/// What a run leaves besides its frames.
#[derive(Debug, Clone)]
pub struct RunReport {
    /// How it ended.
    pub ending: RunEnding,
    /// What each stage did; `None` where the output was closed before the end.
    pub summary: Option<Summary>,
    /// The files that stages saved to. Where the run ended early, or nobody took all that a stage put out, its file is not
    /// there.
    pub saved: Vec<PathBuf>,
    /// When it began, for a log of latencies.
    pub start: SystemTime,
    /// The same moment on the clock that measures durations.
    pub clock: Instant,
}

/// A pipeline whose stages have taken their options, ready to run.
pub struct PreparedRun {
    /// The stream the first seat reads, if that is no source.
    pub(super) head: Option<SavedStream>,
    pub(super) seats: Vec<Placement>,
    pub(super) queue_depth: usize,
    pub(super) saves: Vec<Save>,
}

impl PreparedRun {
    /// Has its stages show what they count while they run; those in processes of their own cannot.
    pub fn report_to(&mut self, telemetry: &Telemetry) {
        for seat in &mut self.seats {
            let Placement::Thread(first, others, _) = seat else { continue };
            for stage in iter::once(first).chain(others) {
                stage.set_meter(telemetry.meter(stage.name()));
            }
        }
    }

    /// The files that its stages are to save to.
    pub fn saves(&self) -> Vec<PathBuf> {
        self.saves.iter().map(|save| save.path.clone()).collect()
    }

    /// Runs it to its end. `sink` gets the frames of the last stage. Where the run ends early, for whatever reason,
    /// `interrupt` is set in the end.
    ///
    /// # Errors
    /// [`RunError`]: the first cause, and the stage it began at. Whatever was whole before has been given to the sink.
    pub fn run(mut self, interrupt: &Interrupt, sink: &mut dyn FrameSink) -> Result<RunReport, RunError> {
        let (start, clock) = (SystemTime::now(), Instant::now());
        let begun = std::mem::take(&mut self.saves);
        let ended = Mutex::new(Vec::new());
        let sink = Drain::new(sink);
        let last = self.take_last();
        let (drained, summary) = thread::scope(|scope| {
            let (running, finished) = bounded(0);
            let mut first = None;
            let started = self.start(scope, &ended, interrupt, &mut first);
            if let Some(id) = first {
                scope.spawn(move || forward(interrupt, id, &finished));
            }
            let drained = started.and_then(|input| match (last, input.map(Receiving::into_input)) {
                (Some(last), input) => Ok(last.run(input, sink, &ended, interrupt)),
                (None, Some(mut input)) => Ok(drain(&mut *input, sink)),
                (None, None) => {
                    Err(RunError { stage: String::new(), cause: "a pipeline without a stage".into(), code: 2 })
                }
            });
            if !matches!(drained, Ok((Drained::Whole, Some(_)))) {
                // The first stage may be waiting for input that does not come, and would not notice that all is over.
                interrupt.set();
                first.into_iter().for_each(interrupt_process);
            }
            drop(running);
            drained
        })?;
        let ended = ended.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ending = settle(ended, drained)?;
        let saved = if ending == RunEnding::Done { keep(begun)? } else { Vec::new() };
        Ok(RunReport { ending, summary, saved, start, clock })
    }

    /// Takes out the last seat if it shares the thread of the output: where there are no more processors than seats, a thread
    /// that only writes would be in their way.
    fn take_last(&mut self) -> Option<Last> {
        if processors() > self.seats.len()
            || !matches!(self.seats.last()?, Placement::Thread(_, _, taps) if taps.is_empty())
        {
            return None;
        }
        let Placement::Thread(first, others, _) = self.seats.pop()? else { return None };
        Some(Last { at: self.seats.iter().map(Placement::stages).sum(), first, others })
    }

    /// Starts all stages; gives the end of the last link, or of the stream they begin with. `first` gets the id of the first
    /// one's process, if it has one.
    fn start<'scope, 'env: 'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        ended: &'env Mutex<Vec<Ended>>,
        interrupt: &'env Interrupt,
        first: &mut Option<u32>,
    ) -> Result<Option<Receiving>, RunError> {
        let reaches: Vec<Reach> = self.seats.iter().map(Placement::reach).chain([Reach::Thread]).collect();
        let mut input = self.head.map(|replay| Receiving::SavedStream(replay, interrupt.clone()));
        let mut before = 0;
        for (seat, neighbours) in self.seats.into_iter().zip(reaches.windows(2)) {
            let at = before;
            before += seat.stages();
            let reach = if neighbours.contains(&Reach::Process) { Reach::Process } else { Reach::Thread };
            let fail = |stage: &str, error: &io::Error| RunError {
                stage: stage.to_owned(),
                cause: format!("cannot be started: {error}"),
                code: 1,
            };
            let most = if seat.makes_batches() { BATCHES_WAITING } else { usize::MAX };
            let (sending, receiving) =
                link(reach, self.queue_depth.min(most)).map_err(|error| fail(seat.name(), &error))?;
            let tell = teller(ended, at, seat.origin());
            match seat {
                Placement::Thread(first, others, taps) => {
                    let input = input.map(Receiving::into_input);
                    scope.spawn(move || run_on_thread(first, others, input, sending, taps, interrupt, tell));
                }
                Placement::Relay(relay) => {
                    scope.spawn(move || run_relay(relay, input, sending, interrupt, tell));
                }
                Placement::Process(program) => {
                    let stdin = input.map_or_else(std::process::Stdio::inherit, Receiving::into_stdin);
                    let child = program.start(stdin, sending.into_stdout());
                    let child = child.map_err(|error| fail(&program.name, &error))?;
                    if at == 0 {
                        *first = Some(child.id());
                    }
                    scope.spawn(move || tell(0, &program.name, watch(&program, child)));
                }
            }
            input = Some(receiving);
        }
        Ok(input)
    }
}

/// The last stages, which give what they put out to the sink at once.
struct Last {
    /// The place of the first of them.
    at: usize,
    first: Box<dyn Runnable>,
    others: Vec<Box<dyn Runnable>>,
}

impl Last {
    /// Runs them on this thread.
    fn run(
        self,
        input: Option<Box<dyn Input + Send>>,
        mut sink: Drain<'_>,
        ended: &Mutex<Vec<Ended>>,
        interrupt: &Interrupt,
    ) -> (Drained, Option<Summary>) {
        let tell = teller(ended, self.at, Origin::Native);
        run_stages(self.first, self.others, input, &mut sink, interrupt, tell);
        sink.end(Drained::Whole)
    }
}

/// Notes how stages end, of which the first has the place `at` in the pipeline.
fn teller(ended: &Mutex<Vec<Ended>>, at: usize, origin: Origin) -> impl Fn(usize, &str, Outcome) {
    move |place, stage, outcome| {
        let mut ended = ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ended.push(Ended { at: at + place, stage: stage.to_owned(), origin, outcome });
    }
}

/// Gives the saved files their names.
fn keep(saves: Vec<Save>) -> Result<Vec<PathBuf>, RunError> {
    let mut kept = Vec::new();
    for save in saves {
        let stage = save.stage.clone();
        kept.extend(save.keep().map_err(|cause| RunError { stage, cause, code: 1 })?);
    }
    Ok(kept)
}

/// Hands on what comes, which is a stream of bytes on both sides: the plan has no channel beside a relay.
fn run_relay(
    relay: Relay,
    input: Option<Receiving>,
    sending: Sending,
    interrupt: &Interrupt,
    tell: impl Fn(usize, &str, Outcome),
) {
    let stage = relay.stage.clone();
    let until = matches!(input, Some(Receiving::SavedStream(..))).then_some(interrupt);
    let outcome = match (input.map(Receiving::into_bytes), sending.into_pipe()) {
        (Some(input), Some(output)) => relay.run(input, output, until),
        _ => Outcome::Failed("no stream of bytes to hand on: this is a bug of sizeleak; please report it".into()),
    };
    tell(0, &stage, outcome);
}

fn run_on_thread(
    first: Box<dyn Runnable>,
    others: Vec<Box<dyn Runnable>>,
    input: Option<Box<dyn Input + Send>>,
    sending: Sending,
    taps: Vec<OutputRecorder>,
    interrupt: &Interrupt,
    tell: impl Fn(usize, &str, Outcome),
) {
    let mut output = Tapped::or_plain(sending.into_output(), taps);
    run_stages(first, others, input, &mut *output, interrupt, tell);
}

/// Runs stages on this thread, each of the others attached to the one before it.
fn run_stages(
    first: Box<dyn Runnable>,
    others: Vec<Box<dyn Runnable>>,
    mut input: Option<Box<dyn Input + Send>>,
    output: &mut dyn Output,
    interrupt: &Interrupt,
    tell: impl Fn(usize, &str, Outcome),
) {
    let input = input.as_deref_mut().map(|input| input as &mut dyn Input);
    let names: Vec<String> = iter::once(&first).chain(&others).map(|stage| stage.name().to_owned()).collect();
    let mut told = 0;
    // Told before the links are dropped, so that what follows from it is told later.
    let mut tell_next = |place: usize, outcome| {
        tell(place, names.get(place).map_or("", String::as_str), outcome);
        told = place + 1;
    };
    // A stage that panics has a bug; the others must still come to their end, and the user must hear of it.
    let run = || run_fused(first, others, input, output, interrupt, &mut tell_next);
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
        // While frames pass, all that share the thread are at work: which of them it was is not known here.
        let fault = "it, or what shares its thread, panicked: this is a bug of sizeleak; please report it";
        tell(told, names.get(told).map_or("", String::as_str), Outcome::Failed(fault.into()));
    }
}

fn watch(program: &Program, mut child: Child) -> Outcome {
    program.watch(&mut child, |line| say(&program.name, line))
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
fn drain(input: &mut dyn Input, mut drain: Drain<'_>) -> (Drained, Option<Summary>) {
    let mut parcel = Vec::new();
    loop {
        let received = input.receive(&mut parcel, &mut || _ = drain.pause());
        let is_taken = drain.take(&mut parcel);
        match received {
            Ok(Received::Frames { .. }) if is_taken => {}
            Ok(_) => return drain.end(Drained::Whole),
            Err(error) => return drain.end(Drained::Cut(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Frame;
    use sizeleak_runtime::{Source, SourceEmit, SourceNode, StageError};

    use super::*;

    /// A stage with a bug, or one without.
    struct Bare<const HAS_BUG: bool>;

    impl<const HAS_BUG: bool> Source for Bare<HAS_BUG> {
        const NAME: &'static str = if HAS_BUG { "broken" } else { "sound" };

        fn run(&mut self, _out: &mut dyn SourceEmit, _interrupt: &Interrupt) -> Result<(), StageError> {
            assert!(!HAS_BUG, "a bug");
            Ok(())
        }

        fn bytes_in(&self) -> u64 {
            0
        }

        fn frames_in(&self) -> u64 {
            0
        }
    }

    fn seat<const HAS_BUG: bool>() -> Placement {
        Placement::Thread(Box::new(SourceNode::new(Bare::<HAS_BUG>)), Vec::new(), Vec::new())
    }

    #[test]
    fn a_stage_that_panics_ends_the_run_with_its_name() {
        // With few stages it has a thread of its own where there are several processors, with many the output's.
        for others in [0, processors()] {
            let seats = iter::repeat_with(seat::<false>).take(others).chain([seat::<true>()]).collect();
            let prepared = PreparedRun { head: None, seats, queue_depth: 4, saves: Vec::new() };
            let error = prepared.run(&Interrupt::new(), &mut |_: Frame| Ok(())).unwrap_err();
            assert_eq!(error.code, 1);
            assert!(error.to_string().starts_with("`broken`: it, or what shares its thread, panicked"), "{error}");
        }
    }
}
