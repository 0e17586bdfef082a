//! Records the output of a stage on its way to the next one.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::{Frame, FrameWriter, WriteError};
use sizeleak_platform::runtime::{Closed, Emit, Output};

use crate::recording::Recording;

/// Records the output of one stage into a file.
pub(crate) struct OutputRecorder {
    recording: Recording,
    notifier: EndNotifier,
}

/// Reports the end of a recording.
struct EndNotifier {
    name: String,
    finished: Sender<()>,
}

impl OutputRecorder {
    /// A recorder into `recording`, called `name` in messages. The receiver is told after the summary that it
    /// is whole, and nothing for a stream that was cut or could not be written.
    pub(crate) fn new(recording: Recording, name: String) -> (Self, Receiver<()>) {
        let (finished, receiver) = bounded(1);
        (Self { recording, notifier: EndNotifier { name, finished } }, receiver)
    }
}

impl EndNotifier {
    /// Sends the result; an error fails the run.
    fn notify(self, recorded: io::Result<()>) -> io::Result<()> {
        recorded.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", self.name)))?;
        // The receiver may be gone.
        let _sent = self.finished.send(());
        Ok(())
    }
}

/// The recorder of a byte stream, written value by value, until that has ended.
pub(crate) struct ByteRecorder(pub(crate) Option<OutputRecorder>);

impl ByteRecorder {
    /// Records a value; a summary ends the recording.
    pub(crate) fn record(&mut self, frame: &Frame, value: &[u8]) -> io::Result<()> {
        let Some(mut recorder) = self.0.take() else { return Ok(()) };
        match recorder.recording.write_all(value) {
            Ok(()) if matches!(frame, Frame::Summary(_)) => recorder.notifier.notify(recorder.recording.finish()),
            Ok(()) => {
                self.0 = Some(recorder);
                Ok(())
            }
            Err(error) => recorder.notifier.notify(Err(error)),
        }
    }
}

/// An output that records the frames that pass through it.
pub(crate) struct RecordedOutput {
    output: Box<dyn Output + Send>,
    /// Until the stream has ended.
    recorder: Option<(FrameWriter<Recording>, EndNotifier)>,
    /// Time spent recording.
    spent: Duration,
    failure: Option<WriteError>,
    is_closed: bool,
}

impl RecordedOutput {
    /// Wraps an output, unless there is nothing to record.
    pub(crate) fn wrap(output: Box<dyn Output + Send>, recorder: Option<OutputRecorder>) -> Box<dyn Output + Send> {
        let Some(OutputRecorder { recording, notifier }) = recorder else { return output };
        let recorder = Some((FrameWriter::new(recording), notifier));
        Box::new(Self { output, recorder, spent: Duration::ZERO, failure: None, is_closed: false })
    }

    fn record(&mut self, frame: &Frame) -> io::Result<()> {
        let Some((mut writer, notifier)) = self.recorder.take() else { return Ok(()) };
        match writer.write(frame) {
            Ok(()) if matches!(frame, Frame::Summary(_)) => {
                notifier.notify(writer.into_output().map_err(io_error).and_then(Recording::finish))
            }
            Ok(()) => {
                self.recorder = Some((writer, notifier));
                Ok(())
            }
            Err(error) => notifier.notify(Err(io_error(error))),
        }
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
