//! Records the output of a stage on its way to the next one.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::{Frame, FrameWriter, WriteError};
use sizeleak_platform::runtime::{Closed, Emit, Output};

use crate::recording::{FinishedRecording, Recording};

/// Records the output of one stage into a file.
pub struct OutputRecorder {
    recording: Recording,
    notifier: EndNotifier,
}

/// Reports the end of a recording.
struct EndNotifier {
    name: String,
    on_failure: OnRecordingFailure,
    finished: Sender<io::Result<FinishedRecording>>,
}

/// What to do when a recording cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRecordingFailure {
    /// The run fails.
    Fail,
    /// The run continues without the recording.
    GiveUp,
}

impl OutputRecorder {
    /// A recorder into `recording`, called `name` in messages. The receiver gets the finished recording after the
    /// summary, or the error that ended it; it gets nothing for a stream that was cut.
    pub fn new(
        recording: Recording,
        name: String,
        on_failure: OnRecordingFailure,
    ) -> (Self, Receiver<io::Result<FinishedRecording>>) {
        let (finished, receiver) = bounded(1);
        (Self { recording, notifier: EndNotifier { name, on_failure, finished } }, receiver)
    }
}

impl EndNotifier {
    /// Sends the result. Returns an error if a failed recording fails the run.
    fn notify(self, recorded: io::Result<FinishedRecording>) -> io::Result<()> {
        let failed = match (&recorded, self.on_failure) {
            (Err(error), OnRecordingFailure::Fail) => {
                Err(io::Error::new(error.kind(), format!("{}: {error}", self.name)))
            }
            _ => Ok(()),
        };
        // The receiver may be gone.
        let _sent = self.finished.send(recorded);
        failed
    }
}

/// Recorders of a byte stream, written value by value.
pub(crate) struct ByteRecorders(Vec<OutputRecorder>);

impl ByteRecorders {
    pub(crate) fn new(recorders: Vec<OutputRecorder>) -> Self {
        Self(recorders)
    }

    /// Records a value; a summary ends the recording.
    pub(crate) fn record(&mut self, frame: &Frame, value: &[u8]) -> io::Result<()> {
        let is_last = matches!(frame, Frame::Summary(_));
        for mut recorder in std::mem::take(&mut self.0) {
            match recorder.recording.write_all(value) {
                Ok(()) if is_last => recorder.notifier.notify(recorder.recording.finish())?,
                Ok(()) => self.0.push(recorder),
                Err(error) => recorder.notifier.notify(Err(error))?,
            }
        }
        Ok(())
    }
}

/// An output that records the frames that pass through it.
pub(crate) struct RecordedOutput {
    output: Box<dyn Output + Send>,
    recorders: Vec<(FrameWriter<Recording>, EndNotifier)>,
    /// Time spent recording.
    spent: Duration,
    failure: Option<WriteError>,
    is_closed: bool,
}

impl RecordedOutput {
    /// Wraps an output, unless there is nothing to record.
    pub(crate) fn wrap(output: Box<dyn Output + Send>, recorders: Vec<OutputRecorder>) -> Box<dyn Output + Send> {
        if recorders.is_empty() {
            return output;
        }
        let writer = |recorder: OutputRecorder| (FrameWriter::new(recorder.recording), recorder.notifier);
        let recorders = recorders.into_iter().map(writer).collect();
        Box::new(Self { output, recorders, spent: Duration::ZERO, failure: None, is_closed: false })
    }

    fn record(&mut self, frame: &Frame) -> io::Result<()> {
        let is_last = matches!(frame, Frame::Summary(_));
        for (mut writer, notifier) in std::mem::take(&mut self.recorders) {
            match writer.write(frame) {
                Ok(()) if is_last => {
                    notifier.notify(writer.into_output().map_err(io_error).and_then(Recording::finish))?;
                }
                Ok(()) => self.recorders.push((writer, notifier)),
                Err(error) => notifier.notify(Err(io_error(error)))?,
            }
        }
        Ok(())
    }
}

fn io_error(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

impl Emit for RecordedOutput {
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

impl Output for RecordedOutput {
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
