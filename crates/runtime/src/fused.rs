//! Stages that work on the thread of the stage before: no channel between them, and nothing is copied for it.

use std::mem;
use std::time::{Duration, Instant};

use sizeleak_frame::{BATCH_ROWS, Frame};

use crate::node::{Counted, Node, conclude};
use crate::stream_end_check::StreamEndCheck;
use crate::{Closed, Emit, Input, Interrupt, Outcome, Output, Runnable, SilentObserver, Stage, StageError};

/// A stage that takes frames as they are emitted, and comes to its end when it is told to. Batches it takes at once; of
/// single frames as many as a channel carries together, or those there are when the stage before waits for input, so that
/// clocks are read once for all of them.
pub trait FusedStage: Output {
    /// No more frames come.
    fn end(self: Box<Self>) -> Outcome;
}

pub(crate) struct FusedNode<'a, S> {
    node: Node<S>,
    out: Counted<'a>,
    witness: StreamEndCheck,
    /// Frames not taken yet, and since when the first of them waits.
    gathered: Vec<Frame>,
    since: Option<Instant>,
    /// What it spent, which to the stage before is time of waiting.
    spent: Duration,
    /// How it ended, if that was before its input did.
    outcome: Option<Outcome>,
}

impl<'a, S: Stage> FusedNode<'a, S> {
    pub(crate) fn new(node: Node<S>, out: Counted<'a>) -> Self {
        let (gathered, since) = (Vec::with_capacity(BATCH_ROWS), None);
        Self { node, out, witness: StreamEndCheck::default(), gathered, since, spent: Duration::ZERO, outcome: None }
    }

    /// Takes what has gathered; one pair of clock readings serves all of it.
    fn take(&mut self) -> Result<(), Closed> {
        let mut gathered = mem::take(&mut self.gathered);
        if gathered.is_empty() || self.outcome.is_some() {
            return Ok(());
        }
        let (start, waited, before) = (Instant::now(), self.out.waited(), self.node.frames_in());
        let mut frames = gathered.drain(..);
        let result = frames.try_for_each(|frame| self.node.dispatch(frame, &mut self.out));
        drop(frames);
        self.gathered = gathered;
        let spent = start.elapsed();
        self.spent += spent;
        let service = spent.saturating_sub(self.out.waited().saturating_sub(waited));
        let queue = self.since.take().map_or(Duration::ZERO, |since| start.saturating_duration_since(since));
        self.node.record(service, queue, self.node.frames_in() - before, &self.out);
        result.map_err(|error| {
            self.outcome = Some(self.conclude(Err(error)));
            Closed
        })
    }

    fn conclude(&mut self, result: Result<Outcome, StageError>) -> Outcome {
        conclude(S::NAME, result, &mut self.out)
    }
}

impl<S: Stage> Emit for FusedNode<'_, S> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.outcome.is_some() {
            return Err(Closed);
        }
        self.witness.see(&frame);
        let is_batch = frame.is_batch();
        if self.gathered.is_empty() && !is_batch {
            self.since = Some(Instant::now());
        }
        self.gathered.push(frame);
        // The buffer that a batch lies in is wanted again.
        if is_batch || self.gathered.len() >= BATCH_ROWS { self.take() } else { Ok(()) }
    }
}

impl<S: Stage> Output for FusedNode<'_, S> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        if self.outcome.is_some() || frames.iter().any(Frame::is_batch) {
            return frames.drain(..).try_for_each(|frame| self.emit(frame));
        }
        self.witness.see_all(frames);
        if self.gathered.is_empty() {
            self.since = Some(Instant::now());
        }
        self.gathered.append(frames);
        if self.gathered.len() >= BATCH_ROWS { self.take() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.take()?;
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
        // Where it fails, its outcome says so.
        let _taken = self.take();
        if let Some(outcome) = self.outcome.take() {
            return outcome;
        }
        let ended = match self.witness.end() {
            Ok(_) => Outcome::Done,
            Err(error) => self.node.broken(&error),
        };
        let result = self.node.end(ended, &mut self.out);
        self.conclude(result)
    }
}

/// Runs stages on this thread, each one attached to the one before; the first reads `input`, unless it is a source. How
/// each ended is told with its place, the first one first.
pub fn run_fused(
    first: Box<dyn Runnable>,
    mut others: Vec<Box<dyn Runnable>>,
    input: Option<&mut dyn Input>,
    output: &mut dyn Output,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(usize, Outcome),
) {
    let Some(last) = others.pop() else { return tell(0, first.run(input, output, interrupt, &mut SilentObserver)) };
    let at = others.len() + 1;
    match last.fuse(output, &mut SilentObserver) {
        Some(mut attached) => {
            run_fused(first, others, input, &mut *attached, interrupt, tell);
            tell(at, attached.end());
        }
        None => tell(at, Outcome::Failed("a source can only come first".into())),
    }
}
