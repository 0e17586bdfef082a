//! The output side of a node: counts what the stage makes, and writes `hello`, notices and `summary`.

use std::time::Duration;

use crate::telemetry::Meter;
use sizeleak_frame::{BATCH_ROWS, Frame, Hello, Notice, SCHEMA, Summary, what};
use tracing::info;

use crate::runtime::{Closed, Emit, Observer, Outcome, Output, StageError};

/// An output that counts frames and shows notices to the observer. It gathers single frames and sends them together.
pub(crate) struct NodeOutput<'a> {
    output: &'a mut dyn Output,
    gathered: Vec<Frame>,
    observer: &'a mut dyn Observer,
    /// Frames the stage has made; each row of a batch counts.
    pub(crate) frames: u64,
    pub(crate) meter: Option<Meter>,
}

impl<'a> NodeOutput<'a> {
    pub(crate) fn new(output: &'a mut dyn Output, observer: &'a mut dyn Observer, meter: Option<Meter>) -> Self {
        Self { output, gathered: Vec::new(), observer, frames: 0, meter }
    }

    /// Sends the hello of a stage; `before` is that of the previous stage.
    pub(crate) fn send_hello(&mut self, stage: &str, before: Option<Hello>) -> Result<(), Closed> {
        let upstream = before.map_or_else(Vec::new, |hello| {
            let mut upstream = hello.upstream;
            upstream.push(hello.stage);
            upstream
        });
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.pass(Frame::from(Hello { schema: SCHEMA, stage: stage.to_owned(), version, upstream }))
    }

    #[inline(never)]
    fn emit_other(&mut self, frame: Frame) -> Result<(), Closed> {
        self.frames += frame.rows();
        if let Frame::Notice(notice) = &frame {
            self.observer.notice(notice);
        }
        self.pass(frame)
    }

    pub(crate) fn send_summary(&mut self, summary: Summary) -> Result<(), Closed> {
        self.observer.summary(&summary);
        self.pass(Frame::Summary(summary))?;
        self.send_gathered()
    }

    /// Takes a frame that does not count or has been counted.
    #[inline]
    pub(crate) fn pass(&mut self, frame: Frame) -> Result<(), Closed> {
        // A batch is sent at once: the reader needs its buffer.
        let is_batch = frame.is_batch();
        self.gathered.push(frame);
        if is_batch || self.gathered.len() >= BATCH_ROWS { self.send_gathered() } else { Ok(()) }
    }

    /// Sends the gathered frames.
    pub(crate) fn send_gathered(&mut self) -> Result<(), Closed> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let taken = self.output.emit_all(&mut self.gathered);
        // Frames that the output did not accept are not sent again.
        self.gathered.clear();
        taken
    }

    /// Sends the gathered frames and flushes the output.
    pub(crate) fn flush(&mut self) -> Result<(), Closed> {
        self.send_gathered()?;
        self.output.flush()
    }

    pub(crate) fn waited(&self) -> Duration {
        self.output.waited()
    }

    /// Flushes, reports a failure to the next stage, and returns the outcome.
    pub(crate) fn conclude(&mut self, stage: &'static str, result: Result<Outcome, StageError>) -> Outcome {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(StageError::Closed(_)) => Outcome::Closed,
            Err(StageError::Failed(error)) => {
                let cause = error.to_string();
                // The next stage may be gone too.
                let _sent = self.pass(end_notice(stage, what::FAILED, &cause));
                Outcome::Failed(cause)
            }
        };
        let flushed = self.flush();
        info!(stage, frames_out = self.frames, "has ended");
        match (self.output.failure(), flushed, outcome) {
            (_, _, Outcome::Failed(cause)) => Outcome::Failed(cause),
            (Some(error), _, _) => Outcome::Failed(format!("the output cannot be written: {error}")),
            (None, Err(Closed), _) => Outcome::Closed,
            (None, Ok(()), outcome) => outcome,
        }
    }
}

impl Emit for NodeOutput<'_> {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        // Most frames are records.
        if !matches!(frame, Frame::Record(_)) {
            return self.emit_other(frame);
        }
        self.frames += 1;
        self.pass(frame)
    }
}

/// A notice that a stream ends without a summary, and why.
pub(crate) fn end_notice(stage: &'static str, what: &'static str, cause: &str) -> Frame {
    Frame::from(Notice {
        time_ns: None,
        stage: stage.into(),
        flow: None,
        what: what.into(),
        bytes: None,
        detail: Some(cause.to_owned()),
    })
}
