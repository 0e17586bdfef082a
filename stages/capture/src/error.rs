//! What can be wrong with a capture, with its file and place.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a capture cannot be read, or not to its end. Packets before the damage have been given.
#[derive(Debug, Error)]
#[error("{}: {damage}", name(file))]
pub struct CaptureError {
    /// The file; `-` is stdin.
    pub file: PathBuf,
    /// What is wrong.
    pub damage: Damage,
}

fn name(file: &std::path::Path) -> String {
    if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() }
}

/// What is wrong with a capture. Offsets are bytes of the capture after decompression.
#[derive(Debug, Error)]
pub enum Damage {
    /// The system does not give it.
    #[error("{0}")]
    Open(io::Error),
    /// A folder where a file is wanted.
    #[error("is a folder: name its files, or use `--recursive`")]
    Folder,
    /// There is nothing in it.
    #[error("is empty: a capture has a header at least")]
    Empty,
    /// It begins like no capture.
    #[error("is no capture: it begins with {0}, where pcap or pcapng (plain or compressed) is wanted")]
    NotCapture(String),
    /// It ends inside something.
    #[error("is cut at byte {offset}, {missing} bytes before the end of a {part}: what comes before is processed")]
    Cut {
        /// Where the part begins.
        offset: u64,
        /// How many bytes are missing of what is known to belong to it.
        missing: u64,
        /// The part it ends in.
        part: &'static str,
    },
    /// Something claims to be larger than anything in a capture is.
    #[error("is damaged at byte {offset}: a {part} claims {claimed} bytes; what comes before is processed")]
    TooLarge {
        /// Where it begins.
        offset: u64,
        /// What it is.
        part: &'static str,
        /// What it claims.
        claimed: u64,
    },
    /// Something does not follow the format.
    #[error("is damaged at byte {offset}: {fault}; what comes before is processed")]
    Malformed {
        /// Where it begins.
        offset: u64,
        /// What is wrong.
        fault: String,
    },
    /// It cannot be read or decompressed any further.
    #[error("cannot be read after byte {offset}: {source}; what comes before is processed")]
    Read {
        /// How many bytes there were.
        offset: u64,
        /// The reason.
        source: io::Error,
    },
}

impl Damage {
    /// Whether it is whole as far as it goes, and only ends too early.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Read { source, .. } => source.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}
