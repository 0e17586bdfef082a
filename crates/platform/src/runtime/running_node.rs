//! Stages that process frames as these are pushed into them: by the thread that receives them, or by the stage before
//! on the same thread, without a channel or a copy.

use std::mem;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame};
use tracing::debug;

use crate::runtime::link::StreamEndCheck;
use crate::runtime::node::NodeOutput;
use crate::runtime::{
    Closed, FusedStage, Input, Interrupt, Node, Observer, Outcome, Output, Received, Runnable, SilentObserver, Stage,
    StageError, StateError, StateSlot,
};
use crate::telemetry::Meter;

pub(crate) struct RunningNode<'a, S> {
    node: Node<S>,
    out: NodeOutput<'a>,
    end_check: StreamEndCheck,
    /// Frames not processed yet, and since when the first of them has waited.
    gathered: Vec<Frame>,
    since: Option<Instant>,
    /// Time spent in this stage, which the stage before counts as waiting.
    spent: Duration,
    /// How it ended, if that was before its input ended.
    outcome: Option<Outcome>,
}

impl<'a, S: Stage> RunningNode<'a, S> {
    pub(crate) fn new(mut node: Node<S>, output: &'a mut dyn Output, observer: &'a mut dyn Observer) -> Self {
        Self {
            out: NodeOutput::new(output, observer, node.meter.take()),
            node,
            end_check: StreamEndCheck::default(),
            gathered: Vec::with_capacity(BATCH_ROWS),
            since: None,
            spent: Duration::ZERO,
            outcome: None,
        }
    }

    pub(crate) fn drive(mut self, input: &mut dyn Input) -> Outcome {
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
                Err(error) => break self.node.outcome_of(&error),
            }
        };
        self.conclude(ended)
    }

    /// Processes the gathered frames; one pair of clock readings serves all of them.
    fn process_gathered(&mut self) -> Result<(), Closed> {
        if self.gathered.is_empty() || self.outcome.is_some() {
            return Ok(());
        }
        let (start, waited, before) = (Instant::now(), self.out.waited(), self.node.frames_in);
        let mut frames = self.gathered.drain(..);
        let dispatched = frames.try_for_each(|frame| self.node.dispatch(frame, &mut self.out));
        drop(frames);
        // Encoding, if the output does that, is part of the service time.
        let result = dispatched.and_then(|()| self.out.send_gathered().map_err(StageError::from));
        let spent = start.elapsed();
        self.spent += spent;
        let service = spent.saturating_sub(self.out.waited().saturating_sub(waited));
        let queue = self.since.take().map_or(Duration::ZERO, |since| start.saturating_duration_since(since));
        self.node.record(service, queue, self.node.frames_in - before, &self.out);
        result.map_err(|error| {
            self.outcome = Some(self.out.conclude(S::NAME, Err(error)));
            Closed
        })
    }

    /// Ends it, if it has not; `ended` is how its input did.
    fn conclude(mut self, ended: Outcome) -> Outcome {
        let result = match (self.outcome, ended) {
            (Some(outcome), _) => return outcome,
            (None, Outcome::Closed) => Ok(Outcome::Closed),
            (None, ended) => self.node.end(ended, &mut self.out),
        };
        self.out.conclude(S::NAME, result)
    }
}

impl<S: Stage> Output for RunningNode<'_, S> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        if self.outcome.is_some() {
            return Err(Closed);
        }
        self.end_check.check_all(frames);
        if self.gathered.is_empty() && frames.first().is_some_and(|frame| !frame.is_batch()) {
            self.since = Some(Instant::now());
        }
        // The reader needs the buffer of a batch.
        let is_due = frames.iter().any(Frame::is_batch) || self.gathered.len() + frames.len() >= BATCH_ROWS;
        self.gathered.append(frames);
        if is_due { self.process_gathered() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.process_gathered()?;
        let start = Instant::now();
        let flushed = self.out.flush();
        self.spent += start.elapsed();
        flushed
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
            Err(error) => self.node.outcome_of(&error),
        };
        self.conclude(ended)
    }
}

impl<S: Stage> Runnable for Node<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn set_meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
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

    fn run(
        self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &mut dyn Output,
        _: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Outcome {
        let Some(input) = input else { return Outcome::Failed("a stage that reads frames cannot come first".into()) };
        debug!(stage = S::NAME, "begins");
        RunningNode::new(*self, output, observer).drive(input)
    }

    fn fuse<'a>(
        self: Box<Self>,
        output: &'a mut dyn Output,
        observer: &'a mut dyn Observer,
    ) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a,
    {
        Some(Box::new(RunningNode::new(*self, output, observer)))
    }
}

/// Runs stages on this thread, each fused to the one before. The first reads `input`, unless it is a source. `report`
/// gets the index and outcome of each stage, in order.
pub fn run_fused(
    first: Box<dyn Runnable>,
    mut others: Vec<Box<dyn Runnable>>,
    input: Option<&mut dyn Input>,
    output: &mut dyn Output,
    interrupt: &Interrupt,
    report: &mut dyn FnMut(usize, Outcome),
) {
    let Some(last) = others.pop() else { return report(0, first.run(input, output, interrupt, &mut SilentObserver)) };
    let index = others.len() + 1;
    match last.fuse(output, &mut SilentObserver) {
        Some(mut fused) => {
            run_fused(first, others, input, &mut *fused, interrupt, report);
            report(index, fused.end());
        }
        None => report(index, Outcome::Failed("a source can only come first".into())),
    }
}
