//! Runs a stage between an input and an output.

use std::time::Instant;

use crate::telemetry::Meter;
use sizeleak_frame::Frame;
use tracing::debug;

use crate::runtime::fused::FusedNode;
use crate::runtime::node_output::NodeOutput;
use crate::runtime::stage_runner::StageRunner;
use crate::runtime::{
    Closed, FusedStage, Input, Interrupt, Observer, Outcome, Output, Received, Runnable, Stage, StageError, StateError,
    StateSlot,
};

/// A stage that is ready to run.
#[derive(Debug)]
pub struct Node<S>(StageRunner<S>);

impl<S: Stage> Node<S> {
    /// A node for this stage.
    pub fn new(stage: S) -> Self {
        Self(StageRunner::new(stage))
    }

    fn run(&mut self, input: &mut dyn Input, out: &mut NodeOutput<'_>) -> Result<Outcome, StageError> {
        let mut parcel = Vec::new();
        let ended = loop {
            let mut closed = false;
            let received = input.receive(&mut parcel, &mut || closed |= out.flush().is_err());
            if closed {
                return Err(Closed.into());
            }
            match received {
                Ok(Received::Frames { since }) => self.process(&mut parcel, since, out)?,
                Ok(Received::End) => break Outcome::Done,
                Ok(Received::Interrupted) => break Outcome::Interrupted,
                Err(error) => break self.0.outcome_of(&error),
            }
        };
        self.0.end(ended, out)
    }

    /// Processes a parcel; one pair of clock readings serves all of it.
    fn process(&mut self, parcel: &mut Vec<Frame>, since: Instant, out: &mut NodeOutput<'_>) -> Result<(), StageError> {
        let start = Instant::now();
        let waited = out.waited();
        let before = self.0.frames_in;
        for frame in parcel.drain(..) {
            self.0.dispatch(frame, out)?;
        }
        // Encoding, if the output does that, is part of the service time.
        out.send_gathered()?;
        let frames = self.0.frames_in - before;
        let service = start.elapsed().saturating_sub(out.waited().saturating_sub(waited));
        self.0.record(service, start.saturating_duration_since(since), frames, out);
        Ok(())
    }
}

impl<S: Stage> Runnable for Node<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn set_meter(&mut self, meter: Meter) {
        self.0.meter = Some(meter);
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        self.0.restore(state)
    }

    fn leave_state(&mut self, slot: StateSlot) -> Result<(), StateError> {
        self.0.leave_state(slot)
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
        let mut out = NodeOutput::new(output, observer, self.0.meter.take());
        let result = Node::run(&mut self, input, &mut out);
        out.conclude(S::NAME, result)
    }

    fn fuse<'a>(
        mut self: Box<Self>,
        output: &'a mut dyn Output,
        observer: &'a mut dyn Observer,
    ) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a,
    {
        let out = NodeOutput::new(output, observer, self.0.meter.take());
        Some(Box::new(FusedNode::new(self.0, out)))
    }
}
