//! Runs a stage between an input and an output, and does what is the same for all stages.

use std::mem;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame, Hello, Notice, SCHEMA, StageSummary, Summary, what};
use sizeleak_telemetry::{FrameCounts, Latency, Meter};
use tracing::{debug, info};

use crate::fused::FusedNode;
use crate::{
    Closed, Emit, FusedStage, Input, InputError, Interrupt, Observer, Outcome, Output, Received, Stage, StageError,
};

/// A stage or a source, ready to run.
pub trait Runnable: Send {
    /// The stage's name.
    fn name(&self) -> &str;

    /// Has it show what it counts on this meter while it runs.
    fn set_meter(&mut self, meter: Meter) {
        let _ = meter;
    }

    /// Runs it to its end. A source reads no `input`.
    fn run(
        self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &mut dyn Output,
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Outcome;

    /// Has it take frames as they are handed to it, on the thread of whoever does; `None` for a source, which takes none.
    fn fuse<'a>(
        self: Box<Self>,
        output: &'a mut dyn Output,
        observer: &'a mut dyn Observer,
    ) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a;
}

/// A stage between its input and output.
#[derive(Debug)]
pub struct Node<S> {
    stage: S,
    greeted: bool,
    upstream: Summary,
    /// Why input will end without a summary, as the stage that noticed first said it.
    cut: Option<String>,
    frames_in: u64,
    bytes_in: u64,
    service: Latency,
    queue: Latency,
    meter: Option<Meter>,
}

impl<S: Stage> Node<S> {
    /// A node for this stage.
    pub fn new(stage: S) -> Self {
        Self {
            stage,
            greeted: false,
            upstream: Summary::default(),
            cut: None,
            frames_in: 0,
            bytes_in: 0,
            service: Latency::new(),
            queue: Latency::new(),
            meter: None,
        }
    }

    fn run(&mut self, input: &mut dyn Input, out: &mut Counted<'_>) -> Result<Outcome, StageError> {
        let mut parcel = Vec::new();
        let ended = loop {
            let mut closed = false;
            let received = input.receive(&mut parcel, &mut || closed |= out.flush().is_err());
            if closed {
                return Err(Closed.into());
            }
            match received {
                Ok(Received::Frames { since }) => self.take(&mut parcel, since, out)?,
                Ok(Received::End) => break Outcome::Done,
                Ok(Received::Interrupted) => break Outcome::Interrupted,
                Err(error) => break self.broken(&error),
            }
        };
        self.end(ended, out)
    }

    /// Finishes after the last frame, `ended` being how the input did.
    pub(crate) fn end(&mut self, ended: Outcome, out: &mut Counted<'_>) -> Result<Outcome, StageError> {
        if !self.greeted {
            // The input ended before its own: without one, what follows would be no stream.
            self.greet(None, out)?;
        }
        let start = Instant::now();
        match (self.stage.finish(out), &ended) {
            // What a stage misses in a stream that ended too early is a consequence; the cause is told below.
            (Err(StageError::Failed(_)), Outcome::Cut(_) | Outcome::Failed(_) | Outcome::Interrupted) => {}
            (finished, _) => finished?,
        }
        self.service.record_each(start.elapsed(), 1);
        self.show(out);
        match &ended {
            Outcome::Cut(cause) => out.emit(end_notice(S::NAME, what::CUT, cause))?,
            Outcome::Failed(cause) => out.emit(end_notice(S::NAME, what::FAILED, cause))?,
            _ => self.summarise(out)?,
        }
        Ok(ended)
    }

    /// Processes what arrived together; one pair of clock readings serves all of it.
    fn take(&mut self, parcel: &mut Vec<Frame>, since: Instant, out: &mut Counted<'_>) -> Result<(), StageError> {
        let start = Instant::now();
        let waited = out.waited();
        let before = self.frames_in;
        for frame in parcel.drain(..) {
            self.dispatch(frame, out)?;
        }
        // To encode it, where that is the way on, is work on it too.
        out.hand_on()?;
        let frames = self.frames_in - before;
        let service = start.elapsed().saturating_sub(out.waited().saturating_sub(waited));
        self.record(service, start.saturating_duration_since(since), frames, out);
        Ok(())
    }

    /// How many frames it has taken.
    pub(crate) fn frames_in(&self) -> u64 {
        self.frames_in
    }

    /// Records that so many frames were worked on for `service` together, after each had waited for `queue`.
    pub(crate) fn record(&mut self, service: Duration, queue: Duration, frames: u64, out: &Counted<'_>) {
        self.service.record_shared(service, frames);
        self.queue.record_each(queue, frames);
        if let Some(meter) = &out.meter {
            meter.service().record_shared(service, frames);
            meter.queue().record_each(queue, frames);
            self.show(out);
        }
    }

    fn show(&self, out: &Counted<'_>) {
        if let Some(meter) = &out.meter {
            meter.show(FrameCounts { frames_in: self.frames_in, frames_out: out.frames, bytes_in: self.bytes_in });
        }
    }

    pub(crate) fn dispatch(&mut self, frame: Frame, out: &mut Counted<'_>) -> Result<(), StageError> {
        let (rows, bytes) = (frame.rows(), frame.traffic_bytes());
        match S::Input::try_from(frame) {
            Ok(input) => {
                self.frames_in += rows;
                self.bytes_in += bytes;
                self.stage.process(input, out)
            }
            Err(Frame::Hello(hello)) => Ok(self.greet(Some(*hello), out)?),
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
                Ok(out.pass(other)?)
            }
        }
    }

    fn greet(&mut self, before: Option<Hello>, out: &mut Counted<'_>) -> Result<(), Closed> {
        self.greeted = true;
        out.pass(own_hello(S::NAME, before))
    }

    pub(crate) fn broken(&mut self, error: &InputError) -> Outcome {
        match self.cut.take() {
            _ if !error.is_cut() => Outcome::Failed(error.to_string()),
            Some(cause) => Outcome::Cut(format!("the input was cut: {cause}")),
            None => Outcome::Cut(error.to_string()),
        }
    }

    fn summarise(&mut self, out: &mut Counted<'_>) -> Result<(), Closed> {
        let own = StageSummary {
            stage: S::NAME.to_owned(),
            frames_in: self.frames_in,
            frames_out: out.frames,
            bytes_in: self.bytes_in,
            counters: self.stage.counters().into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            latency: self.service.to_bytes(),
            queue: self.queue.to_bytes(),
        };
        let mut summary = mem::take(&mut self.upstream);
        summary.stages.push(own);
        out.finish(summary)
    }
}

impl<S: Stage> Runnable for Node<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    fn run(
        mut self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &mut dyn Output,
        _: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let Some(input) = input else { return Outcome::Failed("a stage that reads frames cannot come first".into()) };
        debug!(stage = S::NAME, "begins");
        let mut out = Counted::new(output, observer, self.meter.take());
        let result = Node::run(&mut self, input, &mut out);
        conclude(S::NAME, result, &mut out)
    }

    fn fuse<'a>(
        mut self: Box<Self>,
        output: &'a mut dyn Output,
        observer: &'a mut dyn Observer,
    ) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a,
    {
        let out = Counted::new(output, observer, self.meter.take());
        Some(Box::new(FusedNode::new(*self, out)))
    }
}

/// Turns what a node came to into its outcome, tells the next stage of a failure, and hands on what is buffered.
pub(crate) fn conclude(stage: &'static str, result: Result<Outcome, StageError>, out: &mut Counted<'_>) -> Outcome {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(StageError::Closed(_)) => Outcome::Closed,
        Err(StageError::Failed(error)) => {
            let cause = error.to_string();
            // The next stage may be gone too; the failure itself is what counts.
            let _told = out.pass(end_notice(stage, what::FAILED, &cause));
            Outcome::Failed(cause)
        }
    };
    let flushed = out.flush();
    info!(stage, frames_out = out.frames, "has ended");
    match (out.output.failure(), flushed, outcome) {
        (_, _, Outcome::Failed(cause)) => Outcome::Failed(cause),
        (Some(error), _, _) => Outcome::Failed(format!("the output cannot be written: {error}")),
        (None, Err(Closed), _) => Outcome::Closed,
        (None, Ok(()), outcome) => outcome,
    }
}

/// The hello of a stage, given that of the stage before.
pub(crate) fn own_hello(stage: &str, before: Option<Hello>) -> Frame {
    let upstream = before.map_or_else(Vec::new, |hello| {
        let mut upstream = hello.upstream;
        upstream.push(hello.stage);
        upstream
    });
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Frame::from(Hello { schema: SCHEMA, stage: stage.to_owned(), version, upstream })
}

fn end_notice(stage: &'static str, what: &'static str, cause: &str) -> Frame {
    Frame::from(Notice {
        time_ns: None,
        stage: stage.into(),
        flow: None,
        what: what.into(),
        bytes: None,
        detail: Some(cause.to_owned()),
    })
}

/// An output that counts what a stage makes and shows its notices to the observer. It gathers frames, so that they take the
/// way on together.
pub(crate) struct Counted<'a> {
    output: &'a mut dyn Output,
    gathered: Vec<Frame>,
    observer: &'a mut dyn Observer,
    pub(crate) frames: u64,
    /// Where it is shown, if anybody wants to see it.
    pub(crate) meter: Option<Meter>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(output: &'a mut dyn Output, observer: &'a mut dyn Observer, meter: Option<Meter>) -> Self {
        Self { output, gathered: Vec::new(), observer, frames: 0, meter }
    }
}

impl Counted<'_> {
    #[inline(never)]
    fn emit_other(&mut self, frame: Frame) -> Result<(), Closed> {
        self.frames += frame.rows();
        if let Frame::Notice(notice) = &frame {
            self.observer.notice(notice);
        }
        self.pass(frame)
    }

    pub(crate) fn finish(&mut self, summary: Summary) -> Result<(), Closed> {
        self.observer.summary(&summary);
        self.pass(Frame::Summary(summary))?;
        self.hand_on()
    }

    /// Takes a frame that does not count, or was counted.
    #[inline]
    pub(crate) fn pass(&mut self, frame: Frame) -> Result<(), Closed> {
        // The buffer that a batch lies in is wanted again.
        let is_batch = frame.is_batch();
        self.gathered.push(frame);
        if is_batch || self.gathered.len() >= BATCH_ROWS { self.hand_on() } else { Ok(()) }
    }

    /// Hands on what has gathered.
    pub(crate) fn hand_on(&mut self) -> Result<(), Closed> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let taken = self.output.emit_all(&mut self.gathered);
        // What was not taken is not offered again.
        self.gathered.clear();
        taken
    }

    /// Hands on what has gathered, here and further on.
    pub(crate) fn flush(&mut self) -> Result<(), Closed> {
        self.hand_on()?;
        self.output.flush()
    }

    pub(crate) fn waited(&self) -> Duration {
        self.output.waited()
    }
}

impl Emit for Counted<'_> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        // Most are records.
        if !matches!(frame, Frame::Record(_)) {
            return self.emit_other(frame);
        }
        self.frames += 1;
        self.pass(frame)
    }
}
