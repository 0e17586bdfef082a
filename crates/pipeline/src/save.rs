//! `save`: the file a stage's output is written to besides. It appears whole or not at all.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crossbeam_channel::Receiver;
use sizeleak_frame::FrameReader;
use tempfile::{Builder, NamedTempFile};

use super::tap::{OnRecordingFailure, OutputRecorder};
use crate::recording::{Compression, Finished, Recording, decompressed};

/// A file that is being written, under another name until it is whole.
pub(super) struct Save {
    pub(super) stage: String,
    pub(super) path: PathBuf,
    file: NamedTempFile,
    whole: Receiver<io::Result<Finished>>,
}

impl Save {
    /// Begins the file that is to become `path`, and the tap that fills it.
    ///
    /// # Errors
    /// One sentence that names the file: it cannot be written, or is there and holds something else than frames.
    pub(super) fn begin(stage: &str, path: &Path) -> Result<(Self, OutputRecorder), String> {
        let named = |error: io::Error| format!("{}: {error}", path.display());
        if !may_be_replaced(path).map_err(named)? {
            return Err(format!(
                "{} is there and holds no frames: it is not written over; remove it, or name another file",
                path.display()
            ));
        }
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let mut prefix = OsString::from(".");
        prefix.push(path.file_name().ok_or_else(|| format!("{} is no name of a file", path.display()))?);
        prefix.push(".");
        // As any other file, not for the user alone as temporary ones are.
        let permissions = Permissions::from_mode(0o666);
        let made = Builder::new().prefix(&prefix).permissions(permissions).tempfile_in(folder);
        // What it says of itself names a file that nobody asked for.
        let cannot = |error: io::Error| {
            let why = if folder.is_dir() {
                io::Error::from(error.kind()).to_string()
            } else {
                "there is no such folder".into()
            };
            format!("{} cannot be written: {why}", path.display())
        };
        let file = made.map_err(cannot)?;
        let copy = file.as_file().try_clone().map_err(cannot)?;
        let recording = Recording::new(copy, Compression::of_name(path), None).map_err(cannot)?;
        let (tap, whole) = OutputRecorder::new(recording, path.display().to_string(), OnRecordingFailure::Fail);
        Ok((Self { stage: stage.to_owned(), path: path.to_owned(), file, whole }, tap))
    }

    /// Gives the file its name, now that the run has come to its end; tells whether the stream was whole.
    ///
    /// # Errors
    /// One sentence that names the file.
    pub(super) fn keep(self) -> Result<Option<PathBuf>, String> {
        let Ok(Ok(_)) = self.whole.try_recv() else { return Ok(None) };
        let path = self.path;
        match self.file.persist(&path) {
            Ok(_) => Ok(Some(path)),
            Err(failed) => Err(format!("{} cannot be written: {}", path.display(), failed.error)),
        }
    }
}

/// Whether nothing would be lost: there is no such file, it is empty, or it holds frames that were saved before.
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
    fn what_holds_no_frames_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("capture.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).unwrap();
        fs::write(path("empty.zst"), []).unwrap();
        let fault = |name: &str| Save::begin("mine", &path(name)).map(|_| ()).unwrap_err();
        assert!(fault("capture.pcap").contains("holds no frames"), "{}", fault("capture.pcap"));
        assert!(fault("").contains("holds no frames"), "a folder");
        assert!(
            fault("no/folder.zst").ends_with("no/folder.zst cannot be written: there is no such folder"),
            "{}",
            fault("no/folder.zst")
        );
        assert!(Save::begin("mine", &path("empty.zst")).is_ok() && Save::begin("mine", &path("new.zst")).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left");
    }

    #[test]
    fn a_stream_that_was_not_whole_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (save, tap) = Save::begin("mine", &folder.path().join("a.frames")).unwrap();
        drop(tap);
        assert_eq!(save.keep(), Ok(None));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
