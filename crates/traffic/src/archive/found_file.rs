//! A file of a capture point before it is processed: it may be known from an earlier call, or is looked at now, in one
//! read: its digest, its packets and its damage.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use blake3::Hasher;
use sizeleak_capture::{CaptureReader, Damage};
use sizeleak_platform::runtime::ProgressReader;
use sizeleak_platform::telemetry::{FileProgress, Progress};

use crate::archive::description::{CaptureFile, DescribedFile, FileState, FileVerdict};

#[derive(Debug)]
pub(crate) struct FoundFile {
    /// Its state is that before it was read: a file that grows meanwhile is found out.
    pub(crate) described: DescribedFile,
    /// Whether it is a capture of which only the first packet was read. Else it has not changed since it was looked at, or
    /// is no capture.
    pub(crate) is_new: bool,
}

impl FoundFile {
    pub(crate) fn known(described: DescribedFile) -> Self {
        Self { described, is_new: false }
    }

    pub(crate) fn of(path: &Path, known: &mut BTreeMap<PathBuf, DescribedFile>) -> Self {
        if let Some(known) = known.remove(path) {
            return Self::known(known);
        }
        // A file is described under its name as text: by one that is no text it would not be found again.
        let is_named = path.to_str().is_some();
        let state = FileState::of(path).ok().filter(|_| is_named);
        match head(path) {
            Ok(_) if !is_named => {
                let reason = "has a name that is not valid UTF-8: rename it".to_owned();
                Self::known(DescribedFile::unread(CaptureFile::unread(path, FileVerdict::Unreadable, reason), None))
            }
            Ok(head_ns) => {
                let file = CaptureFile { bytes: state.map(|state| state.bytes), ..CaptureFile::new(path) };
                Self { described: DescribedFile { file, head_ns, state }, is_new: true }
            }
            Err(damage) => Self::known(DescribedFile::unread(refused(path, &damage), state)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        Path::new(&self.described.file.path)
    }

    pub(crate) fn head_ns(&self) -> Option<i64> {
        self.described.head_ns
    }

    pub(crate) fn look(self, progress: &Progress) -> Result<DescribedFile, String> {
        if !self.is_new {
            return Ok(self.described);
        }
        let described = DescribedFile { file: inspect(self.path(), progress), ..self.described };
        check_unchanged(&described)?;
        Ok(described)
    }
}

pub(crate) fn check_unchanged(described: &DescribedFile) -> Result<(), String> {
    let (path, state) = (Path::new(&described.file.path), described.state);
    if state.is_some_and(|state| FileState::of(path).ok() != Some(state)) {
        let path = path.display();
        return Err(format!("{path} has changed while it was read: run again once it is complete"));
    }
    Ok(())
}

/// The time of the first packet of a capture; `None` if it has none.
fn head(path: &Path) -> Result<Option<i64>, Damage> {
    let mut reader = CaptureReader::open(path)?;
    loop {
        match reader.next_packet() {
            Ok(packet) => return Ok(packet.map(|packet| packet.time_ns)),
            // Packets follow.
            Err(damage) if damage.skipped_bytes().is_some() => {}
            Err(_) => return Ok(None),
        }
    }
}

fn refused(path: &Path, damage: &Damage) -> CaptureFile {
    CaptureFile { bytes: path.metadata().ok().map(|it| it.len()), ..CaptureFile::refused(path, damage) }
}

struct DigestedFile {
    file: ProgressReader<File>,
    digest: Arc<Mutex<Hasher>>,
}

impl Read for DigestedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let mut digest = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

fn inspect(path: &Path, progress: &Progress) -> CaptureFile {
    let (progress, digest) = (FileProgress::new(progress), Arc::new(Mutex::new(Hasher::new())));
    let mut rest = Err(ErrorKind::NotFound.into());
    let opened = CaptureReader::open_watched(path, |file| {
        // It reads on where the other one stops.
        rest = file.try_clone();
        Box::new(DigestedFile { file: progress.watch(file, 0), digest: Arc::clone(&digest) })
    });
    let file = match opened {
        Ok(reader) => packets_of(path, reader),
        Err(damage) => return refused(path, &damage),
    };
    // Damage ends the packets, but not the file.
    let mut digest = digest.lock().unwrap_or_else(PoisonError::into_inner);
    let read = rest.and_then(|rest| {
        let rest = progress.watch(rest, digest.count());
        digest.update_reader(rest).map(|_| ())
    });
    match read {
        Ok(()) => {
            let (blake3, bytes) = (Some(digest.finalize().to_string()), Some(digest.count()));
            CaptureFile { blake3, bytes, ..file }
        }
        Err(error) => CaptureFile::unread(path, FileVerdict::Unreadable, error.to_string()),
    }
}

fn packets_of(path: &Path, mut reader: CaptureReader) -> CaptureFile {
    let mut file = CaptureFile::new(path);
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => file.count(packet.time_ns),
            Ok(None) => return file,
            Err(damage) => {
                file.add_damage(&damage);
                if damage.skipped_bytes().is_none() {
                    return file;
                }
            }
        }
    }
}
