//! A stage or source of any type, ready to run.

use crate::telemetry::Meter;

use crate::runtime::{FailureSlot, Input, Interrupt, Observer, Outcome, Output, StateError, StateSlot};

/// A stage or a source, ready to run.
pub trait Runnable: Send {
    /// The stage's name.
    fn name(&self) -> &str;

    /// Makes it publish its counters on this meter while it runs.
    fn set_meter(&mut self, meter: Meter) {
        let _ = meter;
    }

    /// Makes it continue from the state that an earlier run left.
    ///
    /// # Errors
    /// [`StateError`] if it cannot; it must not run then.
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let _ = state;
        Err(StateError::Unsupported)
    }

    /// Makes it leave its state in `slot` at the end of its input, instead of finishing what is pending.
    ///
    /// # Errors
    /// [`StateError::Unsupported`] if its state cannot be saved.
    fn leave_state(&mut self, slot: StateSlot) -> Result<(), StateError> {
        let _ = slot;
        Err(StateError::Unsupported)
    }

    /// Makes a source that cannot read everything leave the reason in `slot` and end well behind what it could read. A
    /// stage fails as before.
    fn accept_failure(&mut self, slot: FailureSlot) {
        let _ = slot;
    }

    /// Runs it to its end. A source reads no `input`.
    fn run(
        self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &mut dyn Output,
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Outcome;

    /// Turns it into an output that processes frames on the thread of the stage before; `None` for a source.
    fn fuse<'a>(
        self: Box<Self>,
        output: &'a mut dyn Output,
        observer: &'a mut dyn Observer,
    ) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a;
}

/// A stage that runs inside the stage before it. It processes batches at once, and single frames together, as many as a
/// channel would carry, or fewer if the stage before waits for input: clocks are then read once for all of them.
pub trait FusedStage: Output {
    /// Ends it: no more frames follow.
    fn end(self: Box<Self>) -> Outcome;
}
