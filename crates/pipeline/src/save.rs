//! `save`: the file a stage's output is also written to. It appears complete or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crossbeam_channel::Receiver;
use sizeleak_frame::FrameReader;
use sizeleak_platform::storage::OutputFile;

use crate::recorder::OutputRecorder;
use crate::recording::{Compression, Recording, decompressed};

/// A file that is being written, under a temporary name until it is complete.
pub(crate) struct PendingSave {
    pub(crate) stage: String,
    pub(crate) path: PathBuf,
    file: OutputFile,
    finished: Receiver<()>,
}

impl PendingSave {
    /// Creates the file that becomes `path`, and the recorder that fills it.
    ///
    /// # Errors
    /// One sentence that names the file: it cannot be written, or it exists and holds something other than frames.
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
