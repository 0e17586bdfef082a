//! Stages that work on the thread of the stage before: no channel between them, and nothing is copied for it.

use std::time::{Duration, Instant};

use sizeleak_frame::Frame;

use crate::node::{Counted, Node, conclude};
use crate::witness::Witness;
use crate::{Closed, Emit, Input, Interrupt, Outcome, Output, Runnable, Silent, Stage, StageError};

/// A stage that takes each frame when it is emitted, and comes to its end when it is told to.
pub trait Attached: Output {
    /// No more frames come.
    fn end(self: Box<Self>) -> Outcome;
}

pub(crate) struct AttachedNode<'a, S> {
    node: Node<S>,
    out: Counted<'a>,
    witness: Witness,
    /// What it spent, which to the stage before is time of waiting.
    spent: Duration,
    /// How it ended, if that was before its input did.
    outcome: Option<Outcome>,
}

impl<'a, S: Stage> AttachedNode<'a, S> {
    pub(crate) fn new(node: Node<S>, out: Counted<'a>) -> Self {
        Self { node, out, witness: Witness::default(), spent: Duration::ZERO, outcome: None }
    }

    fn conclude(&mut self, result: Result<Outcome, StageError>) -> Outcome {
        conclude(S::NAME, result, &mut self.out)
    }
}

impl<S: Stage> Emit for AttachedNode<'_, S> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.outcome.is_some() {
            return Err(Closed);
        }
        self.witness.see(&frame);
        let (start, waited, before) = (Instant::now(), self.out.waited(), self.node.frames_in());
        let result = self.node.dispatch(frame, &mut self.out);
        let spent = start.elapsed();
        self.spent += spent;
        let service = spent.saturating_sub(self.out.waited().saturating_sub(waited));
        self.node.record(service, Duration::ZERO, self.node.frames_in() - before, &self.out);
        result.map_err(|error| {
            self.outcome = Some(self.conclude(Err(error)));
            Closed
        })
    }
}

impl<S: Stage> Output for AttachedNode<'_, S> {
    fn flush(&mut self) -> Result<(), Closed> {
        self.out.output.flush()
    }

    fn waited(&self) -> Duration {
        self.spent
    }
}

impl<S: Stage> Attached for AttachedNode<'_, S> {
    fn end(mut self: Box<Self>) -> Outcome {
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
pub fn run_attached(
    first: Box<dyn Runnable>,
    mut others: Vec<Box<dyn Runnable>>,
    input: Option<&mut dyn Input>,
    output: &mut dyn Output,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(usize, Outcome),
) {
    let Some(last) = others.pop() else { return tell(0, first.run(input, output, interrupt, &mut Silent)) };
    let at = others.len() + 1;
    match last.attach(output, &mut Silent) {
        Some(mut attached) => {
            run_attached(first, others, input, &mut *attached, interrupt, tell);
            tell(at, attached.end());
        }
        None => tell(at, Outcome::Failed("a source can only come first".into())),
    }
}
