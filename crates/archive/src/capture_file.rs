//! One file of an archive: what it is, what it holds, and whether it has changed since it was looked at.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sizeleak_capture::{Damage, is_named_capture};

/// What is named and is neither a file nor a folder, whichever it is.
pub(crate) const SPECIAL: &str = "a named pipe, a socket or a device";

/// At most this many damaged places of a file are listed.
const MAX_PLACES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileVerdict {
    /// A capture, read to its end.
    Whole,
    /// A capture of which something is missing or damaged; the rest was read.
    Damaged,
    /// Something else than a capture.
    NoCapture,
    Unreadable,
    /// It was modified so recently that it may still be growing; a later run reads it.
    Growing,
    /// A capture without packets in the range of time, whose packets are not processed.
    Outside,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamagedPlace {
    /// Where it begins, in bytes after decompression.
    pub offset: Option<u64>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureFile {
    /// Where it is, as the archive was named.
    pub path: String,
    pub verdict: FileVerdict,
    /// Why it was not read.
    pub reason: Option<String>,
    /// The BLAKE3 digest of its bytes on disk, in hexadecimal digits.
    pub blake3: Option<String>,
    /// Its size on disk in bytes.
    pub bytes: Option<u64>,
    /// The earliest time of a packet, in nanoseconds since 1970.
    pub first_ns: Option<i64>,
    /// The latest time of a packet, in nanoseconds since 1970.
    pub last_ns: Option<i64>,
    pub packets: u64,
    /// The damaged places, the first ones.
    pub damage: Vec<DamagedPlace>,
    /// How many damaged places there are.
    pub damaged_places: u64,
}

/// Metadata that changes whenever a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl FileState {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&path.metadata()?))
    }
}

impl From<&Metadata> for FileState {
    fn from(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl CaptureFile {
    pub(crate) fn unread(path: &Path, verdict: FileVerdict, reason: String) -> Self {
        Self {
            path: path.to_string_lossy().into_owned(),
            verdict,
            reason: Some(reason),
            blake3: None,
            bytes: None,
            first_ns: None,
            last_ns: None,
            packets: 0,
            damage: Vec::new(),
            damaged_places: 0,
        }
    }

    /// A pipe, a socket or a device, which is not opened; `kind` says which.
    pub(crate) fn special(path: &Path, kind: &str) -> Self {
        Self::unread(path, FileVerdict::NoCapture, format!("is {kind}, which may never end"))
    }

    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        Self::unread(path, FileVerdict::Unreadable, error.to_string())
    }

    /// A file that cannot be opened, or is no capture. One whose name says that it is a capture should have been one.
    pub(crate) fn refused(path: &Path, damage: &Damage) -> Self {
        let is_other = damage.is_no_capture() && !is_named_capture(path);
        let verdict = if is_other { FileVerdict::NoCapture } else { FileVerdict::Unreadable };
        Self::unread(path, verdict, damage.to_string())
    }

    pub(crate) fn count(&mut self, time_ns: i64) {
        self.packets += 1;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = Some(self.last_ns.map_or(time_ns, |last| last.max(time_ns)));
    }

    pub(crate) fn add_damage(&mut self, damage: &Damage) {
        self.verdict = FileVerdict::Damaged;
        self.damaged_places += 1;
        if self.damage.len() < MAX_PLACES {
            self.damage.push(DamagedPlace { offset: damage.offset(), reason: damage.to_string() });
        }
    }

    /// Whether its packets are read.
    pub fn is_capture(&self) -> bool {
        matches!(self.verdict, FileVerdict::Whole | FileVerdict::Damaged)
    }

    /// Whether something of it is missing from the results.
    pub fn is_failure(&self) -> bool {
        matches!(self.verdict, FileVerdict::Damaged | FileVerdict::Unreadable)
    }

    /// What is wrong with it, in words; `None` if nothing is.
    pub fn fault(&self) -> Option<String> {
        let more = match self.damaged_places {
            0 | 1 => String::new(),
            places => format!(" (and {} more places in it)", places - 1),
        };
        let first = self.damage.first().map(|place| &place.reason);
        self.reason.as_ref().or(first).map(|reason| format!("{reason}{more}"))
    }
}
