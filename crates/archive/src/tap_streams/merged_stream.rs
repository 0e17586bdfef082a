//! The merged stream as bytes, from which a run can continue.

use std::io::{self, BufRead, Cursor, Read};
use std::sync::mpsc::{Receiver, Sender, channel};

use sizeleak_frame::{BATCH_BYTES, FrameWriter, WriteError};

use crate::tap_streams::merged_taps::{MergedTaps, TapError};
use crate::tap_streams::tap_counts::TapCounts;

/// The bytes of a merged stream.
pub struct MergedStream<R> {
    taps: MergedTaps<R>,
    /// Takes the counts at the end.
    counts: Sender<Vec<TapCounts>>,
    /// The next bytes.
    bytes: Cursor<Vec<u8>>,
}

impl<R: Read> MergedStream<R> {
    /// The bytes of this stream. What became of the segments of each tap is received at its end.
    pub fn new(taps: MergedTaps<R>) -> (Self, Receiver<Vec<TapCounts>>) {
        let (counts, counted) = channel();
        (Self { taps, counts, bytes: Cursor::default() }, counted)
    }

    /// The next frames as bytes; none at the end.
    fn next_bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut writer = FrameWriter::new(Vec::new());
        while writer.output().len() < BATCH_BYTES {
            let Some(frame) = self.taps.next_frame().map_err(error_of_tap)? else {
                // Nobody may want to know.
                _ = self.counts.send(self.taps.counts().to_vec());
                break;
            };
            writer.write(&frame).map_err(error_of_frame)?;
        }
        writer.into_output().map_err(error_of_frame)
    }
}

impl<R: Read> Read for MergedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.fill_buf()?.is_empty() {
            self.bytes = Cursor::new(self.next_bytes()?);
        }
        self.bytes.read(buffer)
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
