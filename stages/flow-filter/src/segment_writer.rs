//! Gathers segments into batches and emits all frames of the stage in order.

use sizeleak_frame::{BatchLimit, Frame, Packets, Segment, Segments};
use sizeleak_platform::runtime::{Emit, StageError};

/// Gathers segments into batches. Other frames go out behind the segments before them, so it does not matter where a
/// batch ends.
pub(crate) struct SegmentWriter<'a> {
    packets: &'a Packets,
    batch: Segments,
    batches: BatchLimit,
    out: &'a mut dyn Emit,
}

impl<'a> SegmentWriter<'a> {
    /// For segments of these packets, whose buffers they share, in batches of this size.
    pub(crate) fn new(packets: &'a Packets, batches: BatchLimit, out: &'a mut dyn Emit) -> Self {
        Self { packets, batch: Segments::with_capacity(packets.len()), batches, out }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.batch.is_full(self.batches)
    }

    #[inline]
    pub(crate) fn push(&mut self, segment: Segment<'_>) {
        self.batch.push_from(segment, self.packets);
    }

    pub(crate) fn emit(&mut self, frame: impl Into<Frame>) -> Result<(), StageError> {
        self.send()?;
        Ok(self.out.emit(frame.into())?)
    }

    pub(crate) fn send(&mut self) -> Result<(), StageError> {
        if !self.batch.is_empty() {
            self.out.emit(std::mem::take(&mut self.batch).into())?;
        }
        Ok(())
    }
}
