//! Records what a stage puts out while it passes on its way to the next one.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::{Frame, FrameWriter, WriteError};
use sizeleak_runtime::{Closed, Emit, Output};

use crate::recording::{Finished, Recording};

/// A recording that is to be made behind a stage.
pub struct OutputRecorder {
    recording: Recording,
    end: End,
}

/// What becomes of a recording.
struct End {
    name: String,
    on_failure: OnRecordingFailure,
    finished: Sender<io::Result<Finished>>,
}

/// What a recording that cannot be written means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRecordingFailure {
    /// The run fails.
    Fail,
    /// The run goes on without the recording.
    GiveUp,
}

impl OutputRecorder {
    /// A tap that writes `recording`, which messages call `name`. What was written comes out of the receiver once the stream
    /// has come to its summary, or why it cannot be written; nothing comes of a stream that was cut.
    pub fn new(
        recording: Recording,
        name: String,
        on_failure: OnRecordingFailure,
    ) -> (Self, Receiver<io::Result<Finished>>) {
        let (finished, whole) = bounded(1);
        (Self { recording, end: End { name, on_failure, finished } }, whole)
    }
}

impl End {
    /// Tells that the recording is whole, or why it is not; the latter is the run's error where it has to be.
    fn tell(self, recorded: io::Result<Finished>) -> io::Result<()> {
        let failed = match (&recorded, self.on_failure) {
            (Err(error), OnRecordingFailure::Fail) => {
                Err(io::Error::new(error.kind(), format!("{}: {error}", self.name)))
            }
            _ => Ok(()),
        };
        // Where nobody wants it any more, that is all there is to do.
        let _told = self.finished.send(recorded);
        failed
    }
}

/// Taps on a stream of bytes that is known value by value.
pub(super) struct RawTaps(Vec<OutputRecorder>);

impl RawTaps {
    pub(super) fn new(taps: Vec<OutputRecorder>) -> Self {
        Self(taps)
    }

    /// Records a value, the last one if it is a summary.
    pub(super) fn take(&mut self, frame: &Frame, value: &[u8]) -> io::Result<()> {
        let is_last = matches!(frame, Frame::Summary(_));
        for mut tap in std::mem::take(&mut self.0) {
            match tap.recording.write_all(value) {
                Ok(()) if is_last => tap.end.tell(tap.recording.finish())?,
                Ok(()) => self.0.push(tap),
                Err(error) => tap.end.tell(Err(error))?,
            }
        }
        Ok(())
    }
}

/// An output that records what goes into it.
pub(super) struct Tapped {
    output: Box<dyn Output + Send>,
    taps: Vec<(FrameWriter<Recording>, End)>,
    spent: Duration,
    failure: Option<WriteError>,
    is_closed: bool,
}

impl Tapped {
    /// The output itself where there is nothing to record.
    pub(super) fn or_plain(output: Box<dyn Output + Send>, taps: Vec<OutputRecorder>) -> Box<dyn Output + Send> {
        if taps.is_empty() {
            return output;
        }
        let taps = taps.into_iter().map(|tap| (FrameWriter::new(tap.recording), tap.end)).collect();
        Box::new(Self { output, taps, spent: Duration::ZERO, failure: None, is_closed: false })
    }

    fn record(&mut self, frame: &Frame) -> io::Result<()> {
        let is_last = matches!(frame, Frame::Summary(_));
        for (mut writer, end) in std::mem::take(&mut self.taps) {
            match writer.write(frame) {
                Ok(()) if is_last => end.tell(writer.into_output().map_err(plain).and_then(Recording::finish))?,
                Ok(()) => self.taps.push((writer, end)),
                Err(error) => end.tell(Err(plain(error)))?,
            }
        }
        Ok(())
    }
}

fn plain(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

impl Emit for Tapped {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if self.is_closed {
            return Err(Closed);
        }
        let start = Instant::now();
        let recorded = self.record(&frame);
        self.spent += start.elapsed();
        if let Err(error) = recorded {
            self.failure = Some(error.into());
            self.is_closed = true;
            return Err(Closed);
        }
        self.output.emit(frame)
    }
}

impl Output for Tapped {
    fn flush(&mut self) -> Result<(), Closed> {
        if self.is_closed { Err(Closed) } else { self.output.flush() }
    }

    fn waited(&self) -> Duration {
        self.output.waited() + self.spent
    }

    fn failure(&mut self) -> Option<WriteError> {
        self.failure.take().or_else(|| self.output.failure())
    }
}
