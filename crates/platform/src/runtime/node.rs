//! A stage that is ready to run, frame by frame: dispatch, counting, latencies, and the end of the stream. Its output
//! counts what it makes, and writes `hello`, notices and `summary`. Frames are pushed into it: by the thread that
//! receives them, or by the stage before on the same thread, without a channel or a copy.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::mem;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame, Hello, Notice, StageSummary, Summary, what};
use tracing::{debug, info};

use crate::runtime::link::StreamEndCheck;
use crate::runtime::{
    Closed, Emit, FusedStage, Input, InputError, Interrupt, Observer, Outcome, Output, Received, Runnable, Stage,
    StageError, StateError, StateSlot,
};
use crate::telemetry::{FrameCounts, Meter, Progress};

#[derive(Debug)]
pub struct Node<S> {
    stage: S,
    meter: Meter,
    /// Where to leave the state of the stage instead of finishing it.
    slot: Option<StateSlot>,
    /// What the stage had counted when it continued: a summary is of one run.
    counted_before: BTreeMap<&'static str, u64>,
}

impl<S: Stage> Node<S> {
    pub fn new(stage: S) -> Self {
        Self { stage, meter: Meter::new(S::NAME, &Progress::new()), slot: None, counted_before: BTreeMap::new() }
    }

    fn finish(&mut self, input: &Outcome, out: &mut NodeOutput<'_>) -> Result<(), StageError> {
        let Some(slot) = &self.slot else { return self.stage.finish(out) };
        if matches!(input, Outcome::Done)
            && let Some(state) = self.stage.save().map_err(StageError::failed)?
        {
            slot.put(state);
        }
        Ok(())
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let in_run = |(name, count): (&'static str, u64)| {
            let before = self.counted_before.get(name).copied().unwrap_or_default();
            (name.to_owned(), count.saturating_sub(before))
        };
        self.stage.counters().into_iter().map(in_run).collect()
    }
}

/// An output that counts frames and shows notices to the observer. It gathers single frames and sends them together.
pub(crate) struct NodeOutput<'a> {
    output: &'a mut dyn Output,
    gathered: Vec<Frame>,
    observer: Observer<'a>,
    pub(crate) frames: u64,
    pub(crate) meter: Meter,
    error: Option<io::Error>,
}

impl<'a> NodeOutput<'a> {
    pub(crate) fn new(output: &'a mut dyn Output, observer: Observer<'a>, meter: Meter) -> Self {
        Self { output, gathered: Vec::new(), observer, frames: 0, meter, error: None }
    }

    pub(crate) fn send_hello(&mut self, stage: &str, before: Option<Hello>) -> Result<(), Closed> {
        let upstream = before.map_or_else(Vec::new, |hello| {
            let mut upstream = hello.upstream;
            upstream.push(hello.stage);
            upstream
        });
        self.pass(Frame::from(Hello { upstream, ..Hello::of(stage) }))
    }

    /// Ends the stream with what the stages `before` did, and a row of this one, with the times that its meter has.
    pub(crate) fn send_summary(
        &mut self,
        stage: &str,
        mut before: Summary,
        FrameCounts { frames_in, frames_out, bytes_in }: FrameCounts,
        counters: BTreeMap<String, u64>,
    ) -> Result<(), Closed> {
        let figures = self.meter.figures();
        let (latency, queue) = (figures.service.to_bytes(), figures.queue.to_bytes());
        drop(figures);
        let stage = stage.to_owned();
        before.stages.push(StageSummary { stage, frames_in, frames_out, bytes_in, counters, latency, queue });
        let frame = Frame::Summary(before);
        self.observe(&frame);
        self.pass(frame)?;
        self.send_gathered()
    }

    fn observe(&mut self, frame: &Frame) {
        if let Some(observer) = &mut self.observer {
            observer(frame);
        }
    }

    /// Takes a frame that does not count or has been counted.
    #[inline]
    pub(crate) fn pass(&mut self, frame: Frame) -> Result<(), Closed> {
        // A batch is sent at once: the reader needs its buffer.
        let is_batch = frame.is_batch();
        self.gathered.push(frame);
        if is_batch || self.gathered.len() >= BATCH_ROWS { self.send_gathered() } else { Ok(()) }
    }

    pub(crate) fn send_gathered(&mut self) -> Result<(), Closed> {
        if self.error.is_none() && !self.gathered.is_empty() {
            self.error = self.output.emit_all(&mut self.gathered).err();
        }
        // Frames that the output did not accept are not sent again.
        self.gathered.clear();
        if self.error.is_none() { Ok(()) } else { Err(Closed) }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Closed> {
        self.send_gathered()?;
        self.error = self.output.flush().err();
        if self.error.is_none() { Ok(()) } else { Err(Closed) }
    }

    pub(crate) fn waited(&self) -> Duration {
        self.output.waited()
    }

    pub(crate) fn conclude(&mut self, stage: &'static str, result: Result<Outcome, StageError>) -> Outcome {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(StageError::Closed(_)) => Outcome::Closed,
            Err(StageError::Failed(error)) => {
                let cause = error.to_string();
                // The next stage may be gone too.
                let _sent = self.pass(end_notice(stage, what::FAILED, &cause));
                Outcome::Failed(cause)
            }
        };
        let flushed = self.flush();
        info!(stage, frames_out = self.frames, "has ended");
        match (self.error.take().filter(|error| error.kind() != ErrorKind::BrokenPipe), flushed, outcome) {
            (_, _, Outcome::Failed(cause)) => Outcome::Failed(cause),
            (Some(error), _, _) => Outcome::Failed(format!("the output cannot be written: {error}")),
            (None, Err(Closed), _) => Outcome::Closed,
            (None, Ok(()), outcome) => outcome,
        }
    }
}

impl Emit for NodeOutput<'_> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.frames += frame.rows();
        if matches!(frame, Frame::Notice(_)) {
            self.observe(&frame);
        }
        self.pass(frame)
    }
}

fn end_notice(stage: &'static str, what: &'static str, cause: &str) -> Frame {
    Notice::new(stage, what, cause.to_owned()).into()
}

struct RunningNode<'a, S> {
    node: Node<S>,
    out: NodeOutput<'a>,
    has_sent_hello: bool,
    upstream: Summary,
    /// Why the input will end without a summary, as reported by the stage that noticed first.
    cut: Option<String>,
    consumed: FrameCounts,
    end_check: StreamEndCheck,
    /// Frames not processed yet, and since when the first of them has waited.
    gathered: Vec<Frame>,
    since: Option<Instant>,
    /// Time spent in this stage, which the stage before counts as waiting.
    spent: Duration,
    outcome: Option<Outcome>,
}

impl<'a, S: Stage> RunningNode<'a, S> {
    fn new(node: Node<S>, output: &'a mut dyn Output, observer: Observer<'a>) -> Self {
        Self {
            out: NodeOutput::new(output, observer, node.meter.clone()),
            node,
            has_sent_hello: false,
            upstream: Summary::default(),
            cut: None,
            consumed: FrameCounts::default(),
            end_check: StreamEndCheck::default(),
            gathered: Vec::with_capacity(BATCH_ROWS),
            since: None,
            spent: Duration::ZERO,
            outcome: None,
        }
    }

    fn drive(mut self, input: &mut dyn Input) -> Outcome {
        let mut parcel = Vec::new();
        let ended = loop {
            let mut is_closed = false;
            let received = input.receive(&mut parcel, &mut || is_closed |= self.flush().is_err());
            if is_closed {
                break Outcome::Closed;
            }
            match received {
                Ok(Received::Frames { since }) => {
                    self.since = Some(since);
                    mem::swap(&mut self.gathered, &mut parcel);
                    if self.process_gathered().is_err() {
                        break Outcome::Closed;
                    }
                }
                Ok(Received::End) => break Outcome::Done,
                Ok(Received::Interrupted) => break Outcome::Interrupted,
                Err(error) => break self.outcome_of(&error),
            }
        };
        self.conclude(ended)
    }

    /// Processes the gathered frames; one pair of clock readings serves all of them.
    fn process_gathered(&mut self) -> Result<(), Closed> {
        if self.gathered.is_empty() || self.outcome.is_some() {
            return Ok(());
        }
        let (start, waited, before) = (Instant::now(), self.out.waited(), self.consumed.frames_in);
        let mut frames = mem::take(&mut self.gathered);
        let dispatched = frames.drain(..).try_for_each(|frame| self.dispatch(frame));
        self.gathered = frames;
        // Encoding, if the output does that, is part of the service time.
        let result = dispatched.and_then(|()| self.out.send_gathered().map_err(StageError::from));
        let spent = start.elapsed();
        self.spent += spent;
        let service = spent.saturating_sub(self.out.waited().saturating_sub(waited));
        let queue = self.since.take().map_or(Duration::ZERO, |since| start.saturating_duration_since(since));
        let counts = self.counts();
        let mut figures = self.out.meter.figures();
        figures.service.record_shared(service, counts.frames_in - before);
        figures.queue.record_each(queue, counts.frames_in - before);
        figures.counts = counts;
        drop(figures);
        result.map_err(|error| {
            self.outcome = Some(self.out.conclude(S::NAME, Err(error)));
            Closed
        })
    }

    fn dispatch(&mut self, frame: Frame) -> Result<(), StageError> {
        let (rows, bytes) = (frame.rows(), frame.traffic_bytes());
        match S::Input::try_from(frame) {
            Ok(input) => {
                self.consumed.frames_in += rows;
                self.consumed.bytes_in += bytes;
                self.node.stage.process(input, &mut self.out)
            }
            Err(Frame::Hello(hello)) => Ok(self.send_hello(Some(*hello))?),
            Err(Frame::Summary(summary)) => {
                self.upstream = summary;
                Ok(())
            }
            Err(other) => {
                if let Frame::Notice(notice) = &other
                    && (notice.what == what::CUT || notice.what == what::FAILED)
                {
                    self.cut = Some(format!("`{}`: {}", notice.stage, notice.detail.as_deref().unwrap_or("no reason")));
                }
                Ok(self.out.pass(other)?)
            }
        }
    }

    fn send_hello(&mut self, before: Option<Hello>) -> Result<(), Closed> {
        self.has_sent_hello = true;
        self.out.send_hello(S::NAME, before)
    }

    fn counts(&self) -> FrameCounts {
        FrameCounts { frames_out: self.out.frames, ..self.consumed }
    }

    fn outcome_of(&mut self, error: &InputError) -> Outcome {
        match self.cut.take() {
            _ if !error.is_cut() => Outcome::Failed(error.to_string()),
            Some(cause) => Outcome::Cut(format!("the input was cut: {cause}")),
            None => Outcome::Cut(error.to_string()),
        }
    }

    fn conclude(mut self, ended: Outcome) -> Outcome {
        if let Some(outcome) = self.outcome {
            return outcome;
        }
        let result = if ended == Outcome::Closed { Ok(()) } else { self.end(&ended) };
        self.out.conclude(S::NAME, result.map(|()| ended))
    }

    fn end(&mut self, input: &Outcome) -> Result<(), StageError> {
        if !self.has_sent_hello {
            // The input ended before its hello: without one, the output would not be a stream.
            self.send_hello(None)?;
        }
        let start = Instant::now();
        match (self.node.finish(input, &mut self.out), input) {
            // An error at the end of a cut stream is only a consequence; the cause is reported below.
            (Err(StageError::Failed(_)), Outcome::Cut(_) | Outcome::Failed(_) | Outcome::Interrupted) => {}
            (finished, _) => finished?,
        }
        let counts = self.counts();
        let mut figures = self.out.meter.figures();
        figures.service.record_each(start.elapsed(), 1);
        figures.counts = counts;
        drop(figures);
        match input {
            Outcome::Cut(cause) => self.out.emit(end_notice(S::NAME, what::CUT, cause))?,
            Outcome::Failed(cause) => self.out.emit(end_notice(S::NAME, what::FAILED, cause))?,
            _ => {
                let before = mem::take(&mut self.upstream);
                self.out.send_summary(S::NAME, before, counts, self.node.counters())?;
            }
        }
        Ok(())
    }
}

impl<S: Stage> Output for RunningNode<'_, S> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        if self.outcome.is_some() {
            return Err(Closed.into());
        }
        self.end_check.check_all(frames);
        if self.gathered.is_empty() && frames.first().is_some_and(|frame| !frame.is_batch()) {
            self.since = Some(Instant::now());
        }
        // The reader needs the buffer of a batch.
        let is_due = frames.iter().any(Frame::is_batch) || self.gathered.len() + frames.len() >= BATCH_ROWS;
        self.gathered.append(frames);
        if is_due { Ok(self.process_gathered()?) } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.process_gathered()?;
        let start = Instant::now();
        let flushed = self.out.flush();
        self.spent += start.elapsed();
        Ok(flushed?)
    }

    fn waited(&self) -> Duration {
        self.spent
    }
}

impl<S: Stage> FusedStage for RunningNode<'_, S> {
    fn end(mut self: Box<Self>) -> Outcome {
        // A failure is kept as the outcome.
        let _processed = self.process_gathered();
        let ended = match self.end_check.end() {
            Ok(_) => Outcome::Done,
            Err(error) => self.outcome_of(&error),
        };
        self.conclude(ended)
    }
}

impl<S: Stage> Runnable for Node<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn set_meter(&mut self, meter: Meter) {
        self.meter = meter;
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        self.stage.restore(state)?;
        self.counted_before = self.stage.counters().into_iter().collect();
        Ok(())
    }

    fn leave_state(&mut self, slot: StateSlot) -> Result<(), StateError> {
        if self.stage.save()?.is_none() {
            return Err(StateError::Unsupported);
        }
        self.slot = Some(slot);
        Ok(())
    }

    fn run<'a>(
        self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &'a mut dyn Output,
        _: &Interrupt,
        observer: Observer<'a>,
    ) -> Outcome {
        let Some(input) = input else { return Outcome::Failed("a stage that reads frames cannot come first".into()) };
        debug!(stage = S::NAME, "begins");
        RunningNode::new(*self, output, observer).drive(input)
    }

    fn fuse<'a>(self: Box<Self>, output: &'a mut dyn Output) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a,
    {
        Some(Box::new(RunningNode::new(*self, output, None)))
    }
}

/// Runs stages on this thread, each fused to the one before. The first reads `input`, unless it is a source. `report`
/// gets the index and outcome of each stage, in order.
pub fn run_fused(
    mut stages: Vec<Box<dyn Runnable>>,
    input: Option<&mut dyn Input>,
    output: &mut dyn Output,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(usize, Outcome),
) {
    let Some(last) = stages.pop() else { return };
    let index = stages.len();
    if index == 0 {
        return report(0, last.run(input, output, interrupt, None));
    }
    match last.fuse(output) {
        Some(mut fused) => {
            run_fused(stages, input, &mut *fused, interrupt, report);
            report(index, fused.end());
        }
        None => report(index, Outcome::Failed("a source can only come first".into())),
    }
}
