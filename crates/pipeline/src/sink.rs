//! Where the frames of a pipeline's last stage go.

use std::io;
use std::time::{Duration, Instant};

use sizeleak_frame::{Frame, FrameSink, Summary};
use sizeleak_runtime::{Closed, Emit, Output};

use super::cause::Drained;

/// Gives frames to a sink, and knows how that ended.
pub(super) struct Drain<'a> {
    sink: &'a mut dyn FrameSink,
    summary: Option<Summary>,
    /// How it ended, if that was before the stream did.
    ended: Option<Drained>,
    spent: Duration,
}

impl<'a> Drain<'a> {
    pub(super) fn new(sink: &'a mut dyn FrameSink) -> Self {
        Self { sink, summary: None, ended: None, spent: Duration::ZERO }
    }

    /// Gives it frames that came together; false once it takes none.
    pub(super) fn take(&mut self, frames: &mut Vec<Frame>) -> bool {
        // It is the last frame of a stream.
        if let Some(Frame::Summary(whole)) = frames.last() {
            self.summary = Some(whole.clone());
        }
        let taken = if self.ended.is_none() { self.sink.take(frames) } else { Ok(()) };
        frames.clear();
        self.note(taken)
    }

    /// Tells it that no frame is there at the moment; false once it takes none.
    pub(super) fn pause(&mut self) -> bool {
        let paused = if self.ended.is_none() { self.sink.pause() } else { Ok(()) };
        self.note(paused)
    }

    fn note(&mut self, taken: io::Result<()>) -> bool {
        if let Err(error) = taken {
            let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
            self.ended = Some(if is_closed { Drained::Closed } else { Drained::Failed(error) });
        }
        self.ended.is_none()
    }

    /// Has the sink do something, in time that is not the stage's before it.
    fn timed(&mut self, goes_on: impl FnOnce(&mut Self) -> bool) -> Result<(), Closed> {
        let start = Instant::now();
        let goes_on = goes_on(self);
        self.spent += start.elapsed();
        if goes_on { Ok(()) } else { Err(Closed) }
    }

    /// How it ended, where the stream ended so, and the last stage's summary.
    pub(super) fn end(mut self, stream: Drained) -> (Drained, Option<Summary>) {
        self.pause();
        (self.ended.unwrap_or(stream), self.summary)
    }
}

/// To let the frames of a stage on the sink's thread go there at once.
impl Emit for Drain<'_> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.emit_all(&mut vec![frame])
    }
}

impl Output for Drain<'_> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        self.timed(|drain| drain.take(frames))
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.timed(Self::pause)
    }

    fn waited(&self) -> Duration {
        self.spent
    }
}
