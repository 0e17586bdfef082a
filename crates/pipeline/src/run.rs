//! Runs a pipeline: starts its placements, links them, and passes the output of the last one to the sink.

use std::io::{self, PipeReader, PipeWriter, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use rustix::process::Signal;
use sizeleak_frame::{FrameSink, Summary};
use sizeleak_platform::runtime::{
    Access, Input, Interrupt, Outcome, Output, Received, StreamOutput, channel, processors, run_fused, widen_pipe,
};
use sizeleak_platform::telemetry::Telemetry;
use sizeleak_platform::telemetry::log::{complain, repeat};

use crate::cause::{RunEnding, SinkOutput, StageOutcome, first_cause};
use crate::placement::{LinkReceiver, Placement, StageThread};
use crate::process::{HeldPipe, ProgramEnd, ProgramOrigin, StageGroup};
use crate::recording::{PendingSave, RecordedOutput};
use crate::{RunError, SavedStream};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// After so long a stage that was asked to end is named.
const SLOW_END: Duration = Duration::from_secs(3);

/// How long an external stage may take to end after a SIGTERM, or after its terminal is gone.
const TERMINATION_GRACE: Duration = Duration::from_secs(10);

/// The most parcels of batches that wait in a link: they hold the buffers that are read into.
const MAX_WAITING_BATCHES: usize = 4;

/// The results of a run other than its frames.
#[derive(Debug, Clone)]
pub struct RunReport {
    pub ending: RunEnding,
    /// What each stage did; `None` if the output was closed before the end.
    pub summary: Option<Summary>,
    /// The files that stages saved to. A file is missing if the run ended early or the next stage did not read all.
    pub saved: Vec<PathBuf>,
    /// When it started, for a log of latencies.
    pub start: SystemTime,
    /// The same moment on the clock that measures durations.
    pub clock: Instant,
}

pub struct PreparedRun {
    /// The stream that replaces the first stages.
    pub(crate) head: Option<SavedStream>,
    pub(crate) placements: Vec<Placement>,
    pub(crate) queue_depth: usize,
    pub(crate) saves: Vec<PendingSave>,
    pub(crate) access: Option<Access>,
}

impl PreparedRun {
    /// Publishes the counters of the stages while they run; stages in their own processes cannot.
    pub fn report_to(&mut self, telemetry: &Telemetry) {
        for placement in &mut self.placements {
            let Placement::Thread(thread) = placement else { continue };
            for stage in &mut thread.stages {
                stage.set_meter(telemetry.meter(stage.name()));
            }
        }
    }

    pub fn saves(&self) -> Vec<PathBuf> {
        self.saves.iter().map(|save| save.path.clone()).collect()
    }

    /// What it opens while it runs; `None` if it starts programs, whose needs are unknown.
    pub fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// Runs it to its end; `sink` gets the frames of the last stage. If the run ends early for any reason, `interrupt`
    /// is set afterwards. The error is the first cause and the stage where it began: all complete frames before it have
    /// reached the sink.
    pub fn run(mut self, interrupt: &Interrupt, sink: &mut dyn FrameSink) -> Result<RunReport, RunError> {
        let (start, clock) = (SystemTime::now(), Instant::now());
        let pending = std::mem::take(&mut self.saves);
        let outcomes = Outcomes::default();
        let sink = SinkOutput::new(sink);
        let last = self.take_last();
        let (sink_outcome, summary) = thread::scope(|scope| {
            let (running, finished) = bounded(0);
            let mut processes = Vec::new();
            let started = self.start(scope, &outcomes, interrupt, &mut processes);
            let first = processes.iter().find(|(index, _)| *index == 0).map(|(_, group)| Arc::clone(group));
            if !processes.is_empty() {
                let outcomes = &outcomes;
                scope.spawn(move || forward_signals(interrupt, &processes, outcomes, &finished));
            }
            let ended = started.and_then(|input| match (last, input.map(LinkReceiver::into_input)) {
                (Some((index, thread)), input) => {
                    let mut sink = sink;
                    run_stages(thread, input, &mut sink, interrupt, |position, stage, outcome| {
                        outcomes.add(index + position, ProgramOrigin::BuiltIn, stage, outcome);
                    });
                    Ok(sink.end(Outcome::Done))
                }
                (None, Some(mut input)) => Ok(pass_to_sink(&mut *input, sink)),
                (None, None) => {
                    Err(RunError { stage: String::new(), cause: "a pipeline without a stage".into(), code: 2 })
                }
            });
            if !matches!(ended, Ok((Outcome::Done, Some(_)))) {
                // The first stage may be waiting for input that never comes, and would not notice the end.
                interrupt.set();
                if let Some(group) = &first {
                    group.signal(Signal::INT);
                }
            }
            drop(running);
            ended
        })?;
        let ending = first_cause(outcomes.into_inner(), sink_outcome)?;
        let saved = if ending == RunEnding::Done { keep(pending)? } else { Vec::new() };
        Ok(RunReport { ending, summary, saved, start, clock })
    }

    /// Removes the last placement and returns it with the index of its first stage, if it should run on the sink's
    /// thread: with no more processors than placements, a thread that only writes would compete with them.
    fn take_last(&mut self) -> Option<(usize, StageThread)> {
        if processors() > self.placements.len()
            || !matches!(self.placements.last()?, Placement::Thread(thread) if thread.recorder.is_none())
        {
            return None;
        }
        let Placement::Thread(thread) = self.placements.pop()? else { return None };
        Some((self.placements.iter().map(Placement::stage_count).sum(), thread))
    }

    /// Starts all placements. Returns the receiving end of the last link, or the saved stream. `processes` gets those
    /// that were started, with the indices of their stages.
    fn start<'scope, 'env: 'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        outcomes: &'env Outcomes,
        interrupt: &'env Interrupt,
        processes: &mut Vec<(usize, Arc<StageGroup>)>,
    ) -> Result<Option<LinkReceiver>, RunError> {
        let mut input = self.head.map(|stream| LinkReceiver::Saved(stream, interrupt.clone()));
        // How the process that comes next will end, if it is one.
        let mut next_end: Option<ProgramEnd> = None;
        let mut index = 0;
        let mut placements = self.placements.into_iter().peekable();
        while let Some(placement) = placements.next() {
            let origin = placement.origin();
            let first = index;
            index += placement.stage_count();
            let report =
                move |position: usize, stage: &str, outcome| outcomes.add(first + position, origin, stage, outcome);
            let name = placement.name().to_owned();
            let stage = name.clone();
            let fail = move |error: io::Error| RunError {
                stage: stage.clone(),
                cause: format!("cannot be started: {error}"),
                code: 1,
            };
            let before = input.take();
            let own_end = next_end.take();
            next_end = match placements.peek() {
                Some(Placement::Process(program)) => Some(ProgramEnd::of(&program.name)),
                _ => None,
            };
            let mut pipe_on = || -> io::Result<Box<dyn Write + Send>> {
                let (reader, writer) = wide_pipe()?;
                input = Some(LinkReceiver::Pipe(reader, None));
                Ok(match &next_end {
                    Some(end) => Box::new(HeldPipe::writer(writer, end.clone())?),
                    None => Box::new(writer),
                })
            };
            match placement {
                Placement::Thread(mut thread) => {
                    let output: Box<dyn Output> = if next_end.is_some() {
                        Box::new(StreamOutput::new(pipe_on().map_err(fail)?))
                    } else {
                        let most = if thread.makes_batches() { MAX_WAITING_BATCHES } else { usize::MAX };
                        let (output, receiver) = channel(self.queue_depth.min(most));
                        input = Some(LinkReceiver::Channel(receiver));
                        Box::new(output)
                    };
                    scope.spawn(move || {
                        let recorder = thread.recorder.take();
                        let mut output = RecordedOutput::wrap(output, recorder);
                        run_stages(thread, before.map(LinkReceiver::into_input), &mut *output, interrupt, report);
                    });
                }
                Placement::Forwarder(forwarder) => {
                    let output = pipe_on().map_err(fail)?;
                    // It comes after a process or a saved stream, never after a channel.
                    let until = matches!(before, Some(LinkReceiver::Saved(..))).then_some(interrupt);
                    scope.spawn(move || {
                        let input = before.map_or_else(|| Box::new(io::empty()) as _, LinkReceiver::into_bytes);
                        report(0, &name, forwarder.run(input, output, until));
                    });
                }
                Placement::Process(program) => {
                    let end = own_end.unwrap_or_else(|| ProgramEnd::of(&program.name));
                    // Two programs of ours share a pipe: to forward it would take a third longer.
                    let stdin = match before {
                        Some(LinkReceiver::Pipe(reader, _)) => reader.into(),
                        _ => Stdio::inherit(),
                    };
                    let piped =
                        wide_pipe().and_then(|(reader, writer)| Ok((reader, program.start(stdin, writer.into())?)));
                    let (reader, (child, group)) = piped.map_err(fail)?;
                    input = Some(LinkReceiver::Pipe(reader, Some(end.clone())));
                    processes.push((first, group));
                    scope.spawn(move || {
                        let outcome = program.wait(child, &end, |line| repeat(&program.name, line));
                        report(0, &program.name, outcome);
                    });
                }
            }
        }
        Ok(input)
    }
}

fn wide_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = pipe()?;
    widen_pipe(&writer);
    Ok((reader, writer))
}

#[derive(Default)]
struct Outcomes(Mutex<Vec<StageOutcome>>);

impl Outcomes {
    fn add(&self, index: usize, origin: ProgramOrigin, stage: &str, outcome: Outcome) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(StageOutcome { index, stage: stage.to_owned(), origin, outcome });
    }

    fn has(&self, index: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|outcome| outcome.index == index)
    }

    fn into_inner(self) -> Vec<StageOutcome> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(saves: Vec<PendingSave>) -> Result<Vec<PathBuf>, RunError> {
    let mut kept = Vec::new();
    for save in saves {
        let stage = save.stage.clone();
        kept.extend(save.keep().map_err(|cause| RunError { stage, cause, code: 1 })?);
    }
    Ok(kept)
}

/// Runs the stages of a thread on this thread and reports their outcomes by position.
fn run_stages(
    thread: StageThread,
    mut input: Option<Box<dyn Input + Send>>,
    output: &mut dyn Output,
    interrupt: &Interrupt,
    report: impl Fn(usize, &str, Outcome),
) {
    let input = input.as_deref_mut().map(|input| input as &mut dyn Input);
    let names = thread.names();
    let name = |position: usize| names.get(position).map_or("", String::as_str);
    let mut reported = 0;
    // Reported before the links are dropped, so that consequences in other stages are reported later.
    let mut report_next = |position: usize, outcome| {
        report(position, name(position), outcome);
        reported = position + 1;
    };
    // A stage that panics has a bug; the other stages must still end, and the user must see the bug.
    let run = || run_fused(thread.stages, input, output, interrupt, &mut report_next);
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        // Fused stages run inside each other: which of them panicked is unknown.
        let fault = "it, or a stage on the same thread, panicked: this is a bug of sizeleak; please report it";
        report(reported, name(reported), Outcome::Failed(fault.into()));
    }
}

/// Forwards signals to processes until the run is over: an interrupt to the first stage, so that all others finish; a
/// hang-up to all external ones, since their terminal is gone too. Who does not end is named: a second signal ends this
/// process, and so the groups. After a SIGTERM or a hang-up, which nobody repeats, who does not end is killed.
fn forward_signals(
    interrupt: &Interrupt,
    processes: &[(usize, Arc<StageGroup>)],
    outcomes: &Outcomes,
    finished: &Receiver<()>,
) {
    let external = || processes.iter().filter(|(_, group)| group.origin == ProgramOrigin::External);
    let (mut interrupted, mut is_slow, mut is_hung_up, mut is_killed) = (None, false, false, false);
    while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(POLL_INTERVAL) {
        if interrupt.is_set() && interrupted.is_none() {
            interrupted = Some(Instant::now());
            processes.iter().filter(|(index, _)| *index == 0).for_each(|(_, group)| group.signal(Signal::INT));
        }
        if interrupt.is_hung_up() && !std::mem::replace(&mut is_hung_up, true) {
            external().for_each(|(_, group)| group.signal(Signal::HUP));
        }
        let waited = interrupted.map_or(Duration::ZERO, |since| since.elapsed());
        if waited >= SLOW_END && !std::mem::replace(&mut is_slow, true) {
            for (_, group) in external().filter(|(index, _)| !outcomes.has(*index)) {
                complain(&group.name, "this stage does not end: a second signal ends all");
            }
        }
        let ends_all = interrupt.is_terminated() || is_hung_up;
        if ends_all && waited >= TERMINATION_GRACE && !std::mem::replace(&mut is_killed, true) {
            external().for_each(|(_, group)| group.signal(Signal::KILL));
        }
    }
}

fn pass_to_sink(input: &mut dyn Input, mut sink: SinkOutput<'_>) -> (Outcome, Option<Summary>) {
    let mut parcel = Vec::new();
    loop {
        let received = input.receive(&mut parcel, &mut || _ = sink.flush());
        let taken = sink.emit_all(&mut parcel);
        match received {
            Ok(Received::Frames { .. }) if taken.is_ok() => {}
            Ok(_) => return sink.end(Outcome::Done),
            Err(error) => return sink.end(Outcome::Cut(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Frame;
    use sizeleak_platform::runtime::{Source, SourceCounts, SourceEmit, SourceNode, StageError};

    use super::*;

    /// A source with or without a bug.
    struct EmptySource<const HAS_BUG: bool>;

    impl<const HAS_BUG: bool> Source for EmptySource<HAS_BUG> {
        const NAME: &'static str = if HAS_BUG { "broken" } else { "sound" };

        fn run(&mut self, _out: &mut dyn SourceEmit, _interrupt: &Interrupt) -> Result<(), StageError> {
            assert!(!HAS_BUG, "a bug");
            Ok(())
        }

        fn counts(&self) -> SourceCounts {
            SourceCounts::default()
        }
    }

    fn placement<const HAS_BUG: bool>() -> Placement {
        Placement::Thread(StageThread::new(Box::new(SourceNode::new(EmptySource::<HAS_BUG>))))
    }

    #[test]
    fn panicking_stage_fails_the_run_and_is_named() {
        // With several processors and few stages it has its own thread, else it runs on that of the sink.
        for others in [0, processors()] {
            let sound = std::iter::repeat_with(placement::<false>).take(others);
            let placements = sound.chain([placement::<true>()]).collect();
            let prepared = PreparedRun { head: None, placements, queue_depth: 4, saves: Vec::new(), access: None };
            let error = prepared.run(&Interrupt::new(), &mut |_: Frame| Ok(())).unwrap_err();
            assert_eq!(error.code, 1);
            assert!(error.to_string().starts_with("`broken`: it, or a stage on the same thread, panicked"), "{error}");
        }
    }
}
