//! `save`: the file a stage's output is also written to, on its way to the next one. It appears complete or not at all.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::{Frame, FrameReader, FrameWriter, WriteError};
use sizeleak_platform::runtime::{Closed, Output};
use sizeleak_platform::storage::OutputFile;

use crate::recording::{Compression, Recording, decompressed};

pub(crate) struct PendingSave {
    pub(crate) stage: String,
    pub(crate) path: PathBuf,
    file: OutputFile,
    finished: Receiver<()>,
}

impl PendingSave {
    pub(crate) fn begin(stage: &str, path: &Path) -> Result<(Self, OutputRecorder), String> {
        let named = |error: io::Error| format!("{}: {error}", path.display());
        if !may_be_replaced(path).map_err(named)? {
            return Err(format!(
                "{} exists and holds no frames: it is not overwritten; remove it, or name another file",
                path.display()
            ));
        }
        let mut file = OutputFile::create(path).map_err(|error| error.to_string())?;
        let copy = file.writer().map_err(|error| error.to_string())?;
        let cannot = |error: io::Error| format!("{} cannot be written: {error}", path.display());
        let recording = Recording::new(copy, Compression::of_name(path)).map_err(cannot)?;
        let (recorder, finished) = OutputRecorder::new(recording, path.display().to_string());
        Ok((Self { stage: stage.to_owned(), path: path.to_owned(), file, finished }, recorder))
    }

    /// Renames the file after the end of the run. Returns its path, or `None` if the stream was not whole.
    pub(crate) fn keep(self) -> Result<Option<PathBuf>, String> {
        let Ok(()) = self.finished.try_recv() else { return Ok(None) };
        self.file.keep().map_err(|error| error.to_string())?;
        Ok(Some(self.path))
    }
}

/// Whether nothing would be lost: the file is missing or empty, or holds frames.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(metadata) if !metadata.is_file() => Ok(false),
        Ok(metadata) if metadata.len() == 0 => Ok(true),
        Ok(_) => {
            let mut reader = FrameReader::new(decompressed(File::open(path)?)?);
            Ok(matches!(reader.next_frame(), Ok(Some(_))))
        }
    }
}

/// Records the output of one stage into a file. An error fails the run.
pub(crate) struct OutputRecorder {
    recording: Recording,
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

pub(crate) struct RecordedOutput {
    output: Box<dyn Output>,
    recorder: Option<FrameWriter<OutputRecorder>>,
    spent: Duration,
    failure: Option<WriteError>,
    is_closed: bool,
}

impl RecordedOutput {
    pub(crate) fn wrap(output: Box<dyn Output>, recorder: Option<OutputRecorder>) -> Box<dyn Output> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_frame_files_are_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("capture.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).unwrap();
        fs::write(path("empty.zst"), []).unwrap();
        let fault = |name: &str| PendingSave::begin("mine", &path(name)).map(|_| ()).unwrap_err();
        assert!(fault("capture.pcap").contains("holds no frames"), "{}", fault("capture.pcap"));
        assert!(fault("").contains("holds no frames"), "a folder");
        assert!(
            fault("no/folder.zst").ends_with("no/folder.zst cannot be written: there is no such folder"),
            "{}",
            fault("no/folder.zst")
        );
        assert!(
            PendingSave::begin("mine", &path("empty.zst")).is_ok()
                && PendingSave::begin("mine", &path("new.zst")).is_ok()
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left");
    }

    #[test]
    fn incomplete_stream_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let (save, recorder) = PendingSave::begin("mine", &folder.path().join("a.frames")).unwrap();
        drop(recorder);
        assert_eq!(save.keep(), Ok(None));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
