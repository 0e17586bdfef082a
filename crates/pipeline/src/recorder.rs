//! Records the output of a stage on its way to the next one.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::{Frame, FrameWriter, WriteError};
use sizeleak_platform::runtime::{Closed, Emit, Output};

use crate::recording::Recording;

/// Records the output of one stage into a file. An error fails the run.
pub(crate) struct OutputRecorder {
    recording: Recording,
    /// The file in messages.
    name: String,
    finished: Sender<()>,
}

impl OutputRecorder {
    /// A recorder into `recording`, called `name` in messages. The receiver is told after the summary that it
    /// is whole, and nothing for a stream that was cut or could not be written.
    pub(crate) fn new(recording: Recording, name: String) -> (Self, Receiver<()>) {
        let (finished, receiver) = bounded(1);
        (Self { recording, name, finished }, receiver)
    }

    /// Ends the recording after its summary.
    pub(crate) fn end(self) -> io::Result<()> {
        self.recording.finish().map_err(|error| named(&self.name, &error))?;
        // The receiver may be gone.
        let _sent = self.finished.send(());
        Ok(())
    }
}

fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

impl Write for OutputRecorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.recording.write(bytes).map_err(|error| named(&self.name, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.recording.flush()
    }
}

/// An output that records the frames that pass through it.
pub(crate) struct RecordedOutput {
    output: Box<dyn Output + Send>,
    /// Until the stream has ended.
    recorder: Option<FrameWriter<OutputRecorder>>,
    /// Time spent recording.
    spent: Duration,
    failure: Option<WriteError>,
    is_closed: bool,
}

impl RecordedOutput {
    /// Wraps an output, unless there is nothing to record.
    pub(crate) fn wrap(output: Box<dyn Output + Send>, recorder: Option<OutputRecorder>) -> Box<dyn Output + Send> {
        let Some(recorder) = recorder else { return output };
        let recorder = Some(FrameWriter::new(recorder));
        Box::new(Self { output, recorder, spent: Duration::ZERO, failure: None, is_closed: false })
    }

    fn record(&mut self, frames: &[Frame]) -> Result<(), WriteError> {
        let Some(writer) = &mut self.recorder else { return Ok(()) };
        writer.write_all(frames)?;
        match self.recorder.take_if(|_| matches!(frames.last(), Some(Frame::Summary(_)))) {
            Some(ended) => Ok(ended.into_output()?.end()?),
            None => Ok(()),
        }
    }
}

impl Emit for RecordedOutput {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        self.emit_all(&mut vec![frame])
    }
}

impl Output for RecordedOutput {
    fn emit_all(&mut self, frames: &mut Vec<Frame>) -> Result<(), Closed> {
        if self.is_closed {
            return Err(Closed);
        }
        let start = Instant::now();
        let recorded = self.record(frames);
        self.spent += start.elapsed();
        if let Err(error) = recorded {
            self.failure = Some(error);
            (self.recorder, self.is_closed) = (None, true);
            return Err(Closed);
        }
        self.output.emit_all(frames)
    }

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
