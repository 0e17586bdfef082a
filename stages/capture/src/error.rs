//! What can be wrong with a capture, with the file and the offset.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use sizeleak_frame::{Notice, what};
use sizeleak_platform::runtime::{Closed, SourceEmit, StageError};
use sizeleak_text::counted;
use thiserror::Error;

/// Why a capture cannot be read, or not to its end. Packets before the damage have been emitted.
#[derive(Debug, Error)]
#[error("{}: {damage}", name(file))]
pub struct CaptureError {
    pub file: PathBuf,
    pub damage: Damage,
}

fn name(file: &Path) -> String {
    if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() }
}

/// What is wrong with a capture. Offsets are bytes of the capture after decompression.
#[derive(Debug, Error)]
pub enum Damage {
    #[error("{0}")]
    Open(io::Error),
    #[error("is a link to nothing")]
    DanglingLink,
    #[error("is a folder: name its files, or use `--recursive`")]
    Folder,
    #[error("is empty: even a capture without packets has a header")]
    Empty,
    #[error("is no capture: it begins with {0}, where pcap or pcapng (plain or compressed) is wanted")]
    NotCapture(String),
    #[error("is a capture of {0}, whose format is not read: `editcap -F pcapng FILE FILE.pcapng` converts it")]
    OtherFormat(&'static str),
    #[error("is {0}")]
    StandIn(&'static str),
    #[error(
        "is cut at byte {offset}, {} before the end of a {part}: what comes before is processed",
        counted(*missing, "byte", "bytes")
    )]
    Cut {
        offset: u64,
        /// How many bytes of the part are missing, as far as is known.
        missing: u64,
        part: &'static str,
    },
    #[error("is damaged at byte {offset}: {fault}; what comes before is processed")]
    Malformed { offset: u64, fault: String },
    #[error(
        "is damaged at byte {offset}: {fault}; {bytes} bytes are skipped, and the packets behind them are processed"
    )]
    Skipped { offset: u64, fault: String, bytes: u64 },
    #[error("cannot be read after byte {offset}: {source}; what comes before is processed")]
    Read { offset: u64, source: io::Error },
}

impl Damage {
    pub(crate) fn of_open(file: &Path, error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound && file.is_symlink() {
            Self::DanglingLink
        } else {
            Self::Open(error)
        }
    }

    pub fn skipped_bytes(&self) -> Option<u64> {
        match self {
            Self::Skipped { bytes, .. } => Some(*bytes),
            _ => None,
        }
    }

    /// Where the damage begins and what is wrong, if packets may follow it.
    pub(crate) fn place(&self) -> Option<(u64, String)> {
        match self {
            Self::Cut { offset, missing, part } => Some((*offset, format!("a {part} lacks its last {missing} bytes"))),
            Self::Malformed { offset, fault } => Some((*offset, fault.clone())),
            _ => None,
        }
    }

    /// The byte where the damage begins, after decompression; `None` if it is about the whole file.
    pub fn offset(&self) -> Option<u64> {
        match self {
            Self::Cut { offset, .. }
            | Self::Malformed { offset, .. }
            | Self::Skipped { offset, .. }
            | Self::Read { offset, .. } => Some(*offset),
            _ => None,
        }
    }

    pub fn is_no_capture(&self) -> bool {
        matches!(self, Self::NotCapture(_) | Self::StandIn(_) | Self::Empty | Self::DanglingLink)
    }

    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Read { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}

pub(crate) const NAME: &str = "capture";

pub(crate) fn notice(what: &'static str, time_ns: Option<i64>, detail: &impl Display) -> Notice {
    Notice { time_ns, ..Notice::new(NAME, what, detail.to_string()) }
}

const MAX_NOTICES_OF_FILE: u64 = 8;

/// Errors so far: each is reported at once; the first is returned after everything readable has been read. Damage that
/// packets follow is no error at the end: what it costs is in a notice and a counter.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    first: Option<CaptureError>,
    /// How often each file or folder has failed.
    counts: BTreeMap<PathBuf, u64>,
}

impl Failures {
    pub(crate) fn report(
        &mut self,
        error: CaptureError,
        time_ns: Option<i64>,
        out: &mut dyn SourceEmit,
    ) -> Result<(), Closed> {
        let (skipped, count) = (error.damage.skipped_bytes(), self.counts.entry(error.file.clone()).or_default());
        *count += 1;
        if skipped.is_none() || *count <= MAX_NOTICES_OF_FILE {
            let what = match skipped {
                Some(_) => what::RESYNC,
                None if error.damage.is_cut() => what::TRUNCATED,
                None => what::MALFORMED,
            };
            let more = if *count == MAX_NOTICES_OF_FILE { "; more of these in this file are only counted" } else { "" };
            out.emit(Notice { bytes: skipped, ..notice(what, time_ns, &format!("{error}{more}")) }.into())?;
        }
        if skipped.is_none() {
            self.first.get_or_insert(error);
        }
        Ok(())
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.len() as u64
    }

    pub(crate) fn into_result(self) -> Result<(), StageError> {
        self.first.map_or(Ok(()), |error| Err(StageError::failed(error)))
    }
}
