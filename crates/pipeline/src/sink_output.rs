//! Passes the output of the last stage to the sink of the run.

use std::io;
use std::time::{Duration, Instant};

use sizeleak_frame::{Frame, FrameSink, Summary};
use sizeleak_platform::runtime::{Closed, Output};

#[derive(Debug)]
pub(crate) enum SinkOutcome {
    Complete,
    /// The stream ended without its summary.
    Cut(String),
    Closed,
    Failed(io::Error),
}

/// An output that passes frames to a sink. The stages on the sink's thread write to it directly.
pub(crate) struct SinkOutput<'a> {
    sink: &'a mut dyn FrameSink,
    summary: Option<Summary>,
    /// How the sink ended, if that was before the stream did.
    ended: Option<SinkOutcome>,
    spent: Duration,
}

impl<'a> SinkOutput<'a> {
    pub(crate) fn new(sink: &'a mut dyn FrameSink) -> Self {
        Self { sink, summary: None, ended: None, spent: Duration::ZERO }
    }

    pub(crate) fn end(mut self, stream: SinkOutcome) -> (SinkOutcome, Option<Summary>) {
        let _outcome_is_kept = self.flush();
        (self.ended.unwrap_or(stream), self.summary)
    }

    fn call(&mut self, call: impl FnOnce(&mut dyn FrameSink) -> io::Result<()>) -> Result<(), Closed> {
        if self.ended.is_some() {
            return Err(Closed);
        }
        let start = Instant::now();
        let result = call(self.sink);
        self.spent += start.elapsed();
        result.map_err(|error| {
            let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
            self.ended = Some(if is_closed { SinkOutcome::Closed } else { SinkOutcome::Failed(error) });
            Closed
        })
    }
}

impl Output for SinkOutput<'_> {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        // A summary is always the last frame of a stream.
        if let Some(Frame::Summary(summary)) = frames.last() {
            self.summary = Some(summary.clone());
        }
        let taken = self.call(|sink| sink.take(frames));
        frames.clear();
        taken
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.call(|sink| sink.pause())
    }

    fn waited(&self) -> Duration {
        self.spent
    }
}
