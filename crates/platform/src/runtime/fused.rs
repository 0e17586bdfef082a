//! Stages that run on the thread of the stage before them: no channel between them, and no copy.

use std::mem;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame};

use crate::runtime::node_output::NodeOutput;
use crate::runtime::stage_runner::StageRunner;
use crate::runtime::stream_end_check::StreamEndCheck;
use crate::runtime::{Closed, Emit, FusedStage, Input, Interrupt, Outcome, Output, Runnable, SilentObserver, Stage};

/// A stage that processes frames as they are emitted to it.
pub(crate) struct FusedNode<'a, S> {
    runner: StageRunner<S>,
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

impl<'a, S: Stage> FusedNode<'a, S> {
    pub(crate) fn new(runner: StageRunner<S>, out: NodeOutput<'a>) -> Self {
        let (gathered, since) = (Vec::with_capacity(BATCH_ROWS), None);
        Self {
            runner,
            out,
            end_check: StreamEndCheck::default(),
            gathered,
            since,
            spent: Duration::ZERO,
            outcome: None,
        }
    }

    /// Processes the gathered frames; one pair of clock readings serves all of them.
    fn process_gathered(&mut self) -> Result<(), Closed> {
        let mut gathered = mem::take(&mut self.gathered);
        if gathered.is_empty() || self.outcome.is_some() {
            return Ok(());
        }
        let (start, waited, before) = (Instant::now(), self.out.waited(), self.runner.frames_in);
        let mut frames = gathered.drain(..);
        let result = frames.try_for_each(|frame| self.runner.dispatch(frame, &mut self.out));
        drop(frames);
        self.gathered = gathered;
        let spent = start.elapsed();
        self.spent += spent;
        let service = spent.saturating_sub(self.out.waited().saturating_sub(waited));
        let queue = self.since.take().map_or(Duration::ZERO, |since| start.saturating_duration_since(since));
        self.runner.record(service, queue, self.runner.frames_in - before, &self.out);
        result.map_err(|error| {
            self.outcome = Some(self.out.conclude(S::NAME, Err(error)));
            Closed
        })
    }
}

impl<S: Stage> Emit for FusedNode<'_, S> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.outcome.is_some() {
            return Err(Closed);
        }
        self.end_check.check(&frame);
        let is_batch = frame.is_batch();
        if self.gathered.is_empty() && !is_batch {
            self.since = Some(Instant::now());
        }
        self.gathered.push(frame);
        // The reader needs the buffer of a batch.
        if is_batch || self.gathered.len() >= BATCH_ROWS { self.process_gathered() } else { Ok(()) }
    }
}

impl<S: Stage> Output for FusedNode<'_, S> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        if self.outcome.is_some() || frames.iter().any(Frame::is_batch) {
            return frames.drain(..).try_for_each(|frame| self.emit(frame));
        }
        self.end_check.check_all(frames);
        if self.gathered.is_empty() {
            self.since = Some(Instant::now());
        }
        self.gathered.append(frames);
        if self.gathered.len() >= BATCH_ROWS { self.process_gathered() } else { Ok(()) }
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

impl<S: Stage> FusedStage for FusedNode<'_, S> {
    fn end(mut self: Box<Self>) -> Outcome {
        // A failure is kept as the outcome.
        let _processed = self.process_gathered();
        if let Some(outcome) = self.outcome.take() {
            return outcome;
        }
        let ended = match self.end_check.end() {
            Ok(_) => Outcome::Done,
            Err(error) => self.runner.outcome_of(&error),
        };
        let result = self.runner.end(ended, &mut self.out);
        self.out.conclude(S::NAME, result)
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
