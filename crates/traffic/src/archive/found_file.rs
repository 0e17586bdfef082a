//! A file of a capture point before it is processed: it may be known from an earlier call, or is looked at now, in one
//! read: its digest, its packets and its damage.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blake3::{Hash, Hasher};
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

    /// The time of its first packet, by which captures follow each other.
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
    digest: Hasher,
}

/// Shares a file between its reader and whoever wants the digest.
#[derive(Clone, Default)]
struct Digested(Arc<Mutex<Option<DigestedFile>>>);

impl Digested {
    fn lock(&self) -> MutexGuard<'_, Option<DigestedFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to read a file. What is returned is its bytes.
    fn begin(&self, file: File, progress: &Progress) -> Box<dyn Read + Send> {
        let file = FileProgress::new(progress).watch(file, 0);
        *self.lock() = Some(DigestedFile { file, digest: Hasher::new() });
        Box::new(self.clone())
    }

    /// Reads what is left. Returns the digest and the size of the file.
    fn finish(mut self) -> io::Result<(Hash, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        let DigestedFile { digest, .. } = self.lock().take().ok_or(ErrorKind::NotFound)?;
        Ok((digest.finalize(), digest.count()))
    }
}

impl Read for Digested {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.lock();
        let Some(DigestedFile { file, digest }) = file.as_mut() else { return Ok(0) };
        let read = file.read(buffer)?;
        digest.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

fn inspect(path: &Path, progress: &Progress) -> CaptureFile {
    let digested = Digested::default();
    let file = match CaptureReader::open_watched(path, |file| digested.begin(file, progress)) {
        Ok(reader) => packets_of(path, reader),
        Err(damage) => return refused(path, &damage),
    };
    // Damage ends the packets, but not the file.
    match digested.finish() {
        Ok((digest, bytes)) => CaptureFile { blake3: Some(digest.to_string()), bytes: Some(bytes), ..file },
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
