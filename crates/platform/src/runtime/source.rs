//! A source: the first stage of a pipeline, which reads no frames.

use std::time::{Duration, Instant};

use crate::telemetry::{FrameCounts, Meter, Progress};
use sizeleak_frame::{Frame, Summary};
use tracing::debug;

use crate::runtime::node::NodeOutput;
use crate::runtime::{Closed, Emit, FailureSlot, Input, Interrupt, Observer, Outcome, Output, Runnable, StageError};

/// A stage that makes frames from something other than frames.
pub trait Source: Send {
    const NAME: &'static str;

    /// Emits everything it has. Ends early, without an error, when `interrupt` is set. An error comes after all complete
    /// frames have been emitted.
    fn run(&mut self, out: &mut dyn SourceEmit, interrupt: &Interrupt) -> Result<(), StageError>;

    /// What it has read by then, for its row of `summary`.
    fn counts(&self) -> SourceCounts;
}

#[derive(Debug, Clone, Default)]
pub struct SourceCounts {
    pub bytes_in: u64,
    /// In the input's own unit: packets, for a capture.
    pub frames_in: u64,
    pub counters: Vec<(&'static str, u64)>,
}

/// The output of a source, which can flush before it waits for more input.
pub trait SourceEmit: Emit {
    fn flush(&mut self) -> Result<(), Closed>;

    /// Where to report how much of the input has been read, and how much there is.
    fn progress(&self) -> Progress {
        Progress::new()
    }
}

/// Collects frames in memory, for tests.
impl SourceEmit for Vec<Frame> {
    fn flush(&mut self) -> Result<(), Closed> {
        Ok(())
    }
}

#[derive(Debug)]
pub struct SourceNode<S> {
    source: S,
    meter: Meter,
    /// Where to leave why it could not read everything; `None` if that fails the run.
    failure: Option<FailureSlot>,
}

impl<S: Source> SourceNode<S> {
    pub fn new(source: S) -> Self {
        Self { source, meter: Meter::new(S::NAME, &Progress::new()), failure: None }
    }

    fn run(&mut self, out: &mut NodeOutput<'_>, interrupt: &Interrupt) -> Result<Outcome, StageError> {
        out.send_hello(S::NAME, None)?;
        let waited = out.waited();
        let mut timed = TimedEmit { out, since: Instant::now(), waited, traffic: FrameCounts::default() };
        let ran = self.source.run(&mut timed, interrupt);
        let SourceCounts { bytes_in, frames_in, counters } = self.source.counts();
        timed.publish(frames_in);
        match (ran, &self.failure) {
            (Err(StageError::Failed(error)), Some(slot)) => slot.put(error.to_string()),
            (ran, _) => ran?,
        }
        let counts = FrameCounts { frames_in, frames_out: timed.out.frames, bytes_in };
        let counters = counters.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        out.send_summary(S::NAME, Summary::default(), counts, counters)?;
        Ok(if interrupt.is_set() { Outcome::Interrupted } else { Outcome::Done })
    }
}

impl<S: Source> Runnable for SourceNode<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn set_meter(&mut self, meter: Meter) {
        self.meter = meter;
    }

    fn accept_failure(&mut self, slot: FailureSlot) {
        self.failure = Some(slot);
    }

    fn run<'a>(
        mut self: Box<Self>,
        _: Option<&mut dyn Input>,
        output: &'a mut dyn Output,
        interrupt: &Interrupt,
        observer: Observer<'a>,
    ) -> Outcome {
        debug!(stage = S::NAME, "begins");
        let mut out = NodeOutput::new(output, observer, self.meter.clone());
        let result = SourceNode::run(&mut self, &mut out, interrupt);
        out.conclude(S::NAME, result)
    }
}

/// Measures the time between two frames, without waiting for the output, as the service time of the second.
struct TimedEmit<'a, 'b> {
    out: &'a mut NodeOutput<'b>,
    since: Instant,
    waited: Duration,
    /// What it emitted, without notices.
    traffic: FrameCounts,
}

impl TimedEmit<'_, '_> {
    fn publish(&self, frames_in: u64) {
        let (frames_out, bytes_in) = (self.out.frames, self.traffic.bytes_in);
        self.out.meter.figures().counts = FrameCounts { frames_in, frames_out, bytes_in };
    }
}

impl Emit for TimedEmit<'_, '_> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        let rows = frame.rows();
        let elapsed = self.since.elapsed().saturating_sub(self.out.waited().saturating_sub(self.waited));
        self.out.meter.figures().service.record_shared(elapsed, rows);
        if !matches!(frame, Frame::Notice(_)) {
            self.traffic.frames_in += rows;
            self.traffic.bytes_in = self.traffic.bytes_in.saturating_add(frame.traffic_bytes());
        }
        self.out.emit(frame)?;
        // Before its end only the number of emitted frames is known.
        self.publish(self.traffic.frames_in);
        self.since = Instant::now();
        self.waited = self.out.waited();
        Ok(())
    }
}

impl SourceEmit for TimedEmit<'_, '_> {
    fn flush(&mut self) -> Result<(), Closed> {
        self.out.flush()
    }

    fn progress(&self) -> Progress {
        self.out.meter.progress().clone()
    }
}
