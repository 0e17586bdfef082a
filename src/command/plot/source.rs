//! What a plot is made of: identifications and flows, from a frame stream or from the JSON lines of one.

use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;
use sizeleak_frame::{Flow, Frame, FrameReader, Identification, ReadError};
use thiserror::Error;

/// A line may be as long as a frame: 16 MiB.
const MOST_BYTES: usize = 16 << 20;

/// Why the input could not be read on. What came before was whole.
#[derive(Debug, Error)]
pub(super) enum SourceError {
    #[error(transparent)]
    Frames(#[from] ReadError),
    #[error("line {line}: {source}")]
    Malformed { line: u64, source: serde_json::Error },
    #[error("line {line} ends within its JSON")]
    Cut { line: u64 },
    #[error("line {line} is longer than 16 MiB")]
    TooLong { line: u64 },
    #[error("the input cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl SourceError {
    /// Whether the input ended too early, and had nothing else wrong with it.
    pub(super) fn is_cut(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Frames(error) => error.is_cut(),
            Self::Io(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }
}

/// Takes what a plot is made of.
pub(super) trait Take {
    fn flow(&mut self, flow: &Flow);
    fn identification(&mut self, identification: &Identification);
}

/// Reads all there is; no frame begins as an object of JSON does.
pub(super) fn read(input: impl Read, take: &mut impl Take) -> Result<(), SourceError> {
    let mut input = BufReader::new(input);
    if input.fill_buf()?.first() == Some(&b'{') { read_lines(input, take) } else { read_frames(input, take) }
}

fn read_frames(input: impl Read, take: &mut impl Take) -> Result<(), SourceError> {
    let mut reader = FrameReader::new(input);
    while let Some(frame) = reader.next_frame()? {
        match &frame {
            Frame::Flow(flow) => take.flow(flow),
            Frame::Identification(identification) => take.identification(identification),
            _ => {}
        }
    }
    Ok(())
}

/// A line of JSON, as far as it matters here.
#[derive(Deserialize)]
struct Line {
    flow: Option<Flow>,
    identification: Option<Identification>,
}

fn read_lines(mut input: impl BufRead, take: &mut impl Take) -> Result<(), SourceError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        if input.by_ref().take(MOST_BYTES as u64 + 1).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        if bytes.len() > MOST_BYTES {
            return Err(SourceError::TooLong { line });
        }
        let parsed: Line = serde_json::from_slice(&bytes).map_err(|source| {
            let is_last = bytes.last() != Some(&b'\n');
            if is_last && source.is_eof() { SourceError::Cut { line } } else { SourceError::Malformed { line, source } }
        })?;
        if let Some(flow) = &parsed.flow {
            take.flow(flow);
        }
        if let Some(identification) = &parsed.identification {
            take.identification(identification);
        }
    }
    Ok(())
}
