//! What is known of a capture point: its files, whether they have changed since they were looked at, and what its records
//! and answers were made from. As JSON objects with a digest of what else they say, so that one that was changed or
//! damaged is not believed.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sizeleak_capture::{Damage, is_named_capture};
use sizeleak_output::OutputFormat;
use sizeleak_platform::storage::read_regular;

use crate::archive::layout::Layout;

/// What is named and is neither a file nor a folder, whichever it is.
pub(crate) const SPECIAL: &str = "a named pipe, a socket or a device";

const MAX_PLACES: usize = 16;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileVerdict {
    /// A capture, read to its end.
    #[default]
    Whole,
    /// A capture of which something is missing or damaged; the rest was read.
    Damaged,
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

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    pub damage: Vec<DamagedPlace>,
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
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_string_lossy().into_owned(), ..Self::default() }
    }

    pub(crate) fn unread(path: &Path, verdict: FileVerdict, reason: String) -> Self {
        Self { verdict, reason: Some(reason), ..Self::new(path) }
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

    pub fn is_capture(&self) -> bool {
        matches!(self.verdict, FileVerdict::Whole | FileVerdict::Damaged)
    }

    pub fn fault(&self) -> Option<String> {
        let more = match self.damaged_places {
            0 | 1 => String::new(),
            places => format!(" (and {} more places in it)", places - 1),
        };
        let first = self.damage.first().map(|place| &place.reason);
        self.reason.as_ref().or(first).map(|reason| format!("{reason}{more}"))
    }
}

/// A file that changed within this many seconds before it was described may have changed again without a new time.
const SETTLED_AFTER_S: i64 = 2;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointDescription {
    /// Its name, which is part of file names.
    pub point: String,
    pub version: String,
    /// Its files, captures or not, in order of their paths.
    pub(crate) files: Vec<DescribedFile>,
    /// Its records; `None` if no capture has a packet.
    pub records: Option<RecordsDescription>,
    /// Its answers; `None` while they are not complete.
    pub answers: Option<AnswersDescription>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DescribedFile {
    #[serde(flatten)]
    pub(crate) file: CaptureFile,
    /// The time of its first packet, by which captures follow each other, in nanoseconds since 1970.
    pub(crate) head_ns: Option<i64>,
    pub(crate) state: Option<FileState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsDescription {
    /// The names of their files, without endings, in order.
    pub units: Vec<String>,
    pub records: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswersDescription {
    /// The digest of everything they depend on; `None` if an external program was among it.
    pub key: Option<String>,
    pub format: PartFormat,
    /// How many commands `command-segmenter` found; `None` if it is not in the pipeline.
    pub commands: Option<u64>,
    pub identifications: u64,
    /// How many notices there were of each kind, of all stages.
    pub notices: BTreeMap<String, u64>,
    /// The files below `identifications`, with their sizes in bytes.
    pub parts: BTreeMap<String, u64>,
}

impl DescribedFile {
    pub(crate) fn unread(file: CaptureFile, state: Option<FileState>) -> Self {
        Self { file, head_ns: None, state }
    }

    pub(crate) fn has_packets(&self) -> bool {
        self.file.is_capture() && self.file.packets > 0
    }

    /// Whether it is as it was described, without reading it.
    pub(crate) fn is_same(&self) -> bool {
        match (FileState::of(Path::new(&self.file.path)), self.state) {
            (Ok(now), Some(then)) => now == then,
            // A link to nothing has no state.
            (Err(_), None) => !self.file.is_capture(),
            _ => false,
        }
    }
}

impl PointDescription {
    pub fn files(&self) -> impl Iterator<Item = &CaptureFile> {
        self.files.iter().map(|described| &described.file)
    }

    /// The description of a point; `None` if there is none, or none that can be read, so that the point is processed
    /// again.
    pub(crate) fn read(layout: &Layout, point: &str) -> Option<Self> {
        Self::read_file(&layout.description(point))
    }

    fn read_file(path: &Path) -> Option<Self> {
        let mut description: Self = read_checked_json(path)?;
        forget_unsettled(&mut description.files, path).ok()?;
        Some(description)
    }

    pub(crate) fn read_all(layout: &Layout) -> io::Result<BTreeMap<String, Self>> {
        let entries = match fs::read_dir(layout.points()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            entries => entries?,
        };
        let mut all = BTreeMap::new();
        for entry in entries {
            all.extend(Self::read_file(&entry?.path()).map(|point| (point.point.clone(), point)));
        }
        Ok(all)
    }

    /// Whether it says the same of its files, records and answers; not whether its files have settled since.
    pub(crate) fn has_results_of(&self, other: &Self) -> bool {
        let results = |description: &Self| {
            let mut results = description.clone();
            results.files.iter_mut().for_each(|file| file.state = None);
            results
        };
        results(self) == results(other)
    }

    pub(crate) fn write(&self, layout: &Layout) -> io::Result<()> {
        layout.write(&layout.description(&self.point), &to_checked_json(self)?)
    }
}

pub(crate) fn forget_unsettled(files: &mut [DescribedFile], path: &Path) -> io::Result<()> {
    let described = path.metadata()?.mtime();
    for file in files {
        file.state = file.state.filter(|state| described - state.changed.0 > SETTLED_AFTER_S);
    }
    Ok(())
}

pub(crate) const ANSWER: &str = "identification";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartFormat {
    /// Parquet, compressed by zstd.
    #[default]
    Parquet,
    /// A JSON object a line.
    Ndjson,
}

impl PartFormat {
    pub(crate) const ALL: [Self; 2] = [Self::Parquet, Self::Ndjson];

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Ndjson => "ndjson",
        }
    }

    pub(crate) fn output(self) -> OutputFormat {
        match self {
            Self::Parquet => OutputFormat::Parquet,
            Self::Ndjson => OutputFormat::Ndjson,
        }
    }
}

const DIGEST: &str = "digest";

pub(crate) fn to_checked_json(object: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut json = serde_json::to_value(object)?;
    let digest = digest_of(&json);
    if let Some(object) = json.as_object_mut() {
        object.insert(DIGEST.to_owned(), digest);
    }
    let mut text = serde_json::to_vec_pretty(&json)?;
    text.push(b'\n');
    Ok(text)
}

/// The object in a file; `None` if there is none, or not as it was written.
pub(crate) fn read_checked_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut json: Value = serde_json::from_slice(&read_regular(path).ok()?).ok()?;
    let digest = json.as_object_mut()?.remove(DIGEST)?;
    if digest != digest_of(&json) {
        return None;
    }
    serde_json::from_value(json).ok()
}

fn digest_of(json: &Value) -> Value {
    Value::String(blake3::hash(json.to_string().as_bytes()).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;

    /// White space between values is the one thing that may change.
    #[test]
    fn no_changed_byte_of_a_value_is_believed() {
        let object = BTreeMap::from([("bytes", 1_767_686_407_154_743_000_i64), ("at", -7)]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("object.json");
        let text = to_checked_json(&object).unwrap();
        fs::write(&path, &text).unwrap();
        let read = || read_checked_json::<BTreeMap<String, i64>>(&path);
        assert_eq!(read().unwrap()["at"], -7);
        for at in (0..text.len()).filter(|at| !text[*at].is_ascii_whitespace()) {
            let mut changed = text.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert_eq!(read(), None, "byte {at}");
        }
    }
}
