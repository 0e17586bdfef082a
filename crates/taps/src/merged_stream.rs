//! The merged stream as bytes, from which a run can continue.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};

use sizeleak_frame::{BATCH_BYTES, FrameWriter, WriteError};

use crate::merged_taps::{MergedTaps, TapError};
use crate::tap_counts::TapCounts;

/// The bytes of a merged stream.
pub struct MergedStream<R> {
    taps: MergedTaps<R>,
    /// Takes the counts at the end.
    counts: Sender<Vec<TapCounts>>,
    /// The next bytes, and how many of them were read.
    bytes: Vec<u8>,
    read: usize,
}

impl<R: Read> MergedStream<R> {
    /// The bytes of this stream. What became of the segments of each tap is received at its end.
    pub fn new(taps: MergedTaps<R>) -> (Self, Receiver<Vec<TapCounts>>) {
        let (counts, counted) = channel();
        (Self { taps, counts, bytes: Vec::new(), read: 0 }, counted)
    }

    /// Fills the buffer with the next frames; it stays empty at the end.
    fn fill(&mut self) -> io::Result<()> {
        (self.read, self.bytes) = (0, Vec::new());
        let mut writer = FrameWriter::new(Vec::new());
        while writer.output().len() < BATCH_BYTES {
            let Some(frame) = self.taps.next_frame().map_err(error_of_tap)? else {
                // Nobody may want to know.
                _ = self.counts.send(self.taps.counts().to_vec());
                break;
            };
            writer.write(&frame).map_err(error_of_frame)?;
        }
        self.bytes = writer.into_output().map_err(error_of_frame)?;
        Ok(())
    }
}

impl<R: Read> Read for MergedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.bytes.len() {
            self.fill()?;
        }
        let mut rest = self.bytes.get(self.read..).unwrap_or_default();
        let count = rest.read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

fn error_of_tap(error: TapError) -> io::Error {
    let TapError::Read { source, .. } = &error;
    let kind = if source.is_cut() { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData };
    io::Error::new(kind, error)
}

fn error_of_frame(error: WriteError) -> io::Error {
    match error {
        WriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}
