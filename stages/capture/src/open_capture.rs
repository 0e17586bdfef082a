//! A capture file, and a capture that is open, with the packet at its head.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use sizeleak_frame::Packet;
use sizeleak_platform::runtime::{FileProgress, Interrupt, is_ready};

use crate::error::{CaptureError, Damage};
use crate::open::{Decompression, open, open_file};
use crate::packet::{CapturedPacket, PacketVisitor};
use crate::reader::CaptureReader;
use crate::window::WINDOW_BYTES;

#[derive(Debug, Clone)]
pub(crate) struct CaptureFile {
    pub(crate) path: PathBuf,
    /// Its number among the captures, from 0.
    pub(crate) index: u32,
    /// The time of its first packet; the minimum if that is not known.
    pub(crate) starts_ns: i64,
    /// Whether it is known to be uncompressed.
    pub(crate) is_plain: bool,
    pub(crate) progress: FileProgress,
    pub(crate) read_bytes: usize,
}

impl CaptureFile {
    pub(crate) fn find_start(&mut self, interrupt: &Interrupt) -> Result<bool, CaptureError> {
        let mut capture = OpenCapture::open(self.clone(), interrupt, Decompression::Inline)?;
        self.is_plain = capture.reader.window.plain_file().is_some();
        // Damage that packets follow is reported when the file is read.
        let advanced = capture.advance(interrupt);
        self.starts_ns = capture.head.time_ns;
        if capture.reader.is_over { advanced.map(|()| false) } else { Ok(true) }
    }

    fn error(&self, damage: Damage) -> CaptureError {
        CaptureError { file: self.path.clone(), damage }
    }
}

/// A capture that is open, with a copy of the packet that was read last: its head.
pub(crate) struct OpenCapture {
    pub(crate) file: CaptureFile,
    pub(crate) reader: CaptureReader,
    /// Shows whether a stream has input waiting.
    stream: Option<OwnedFd>,
    head: Head,
    /// The number of the last packet taken, from 1.
    number: u64,
}

#[derive(Debug, Default)]
struct Head {
    time_ns: i64,
    link_type: u16,
    original_length: u32,
    data: Vec<u8>,
}

impl OpenCapture {
    /// Opens a capture and reads its header. Reading a stream ends when `interrupt` is set.
    pub(crate) fn open(
        file: CaptureFile,
        interrupt: &Interrupt,
        decompression: Decompression,
    ) -> Result<Self, CaptureError> {
        let opened = open(&file.path, interrupt, &file.progress, decompression, file.read_bytes);
        let (reader, stream) = opened.map_err(|damage| file.error(damage))?;
        Ok(Self { file, reader, stream, head: Head::default(), number: 0 })
    }

    /// An open stream, with a handle that shows whether it has input waiting; `path` is its name in messages.
    pub(crate) fn of_stream(path: PathBuf, reader: CaptureReader, stream: OwnedFd) -> Self {
        let (progress, read_bytes) = (FileProgress::default(), WINDOW_BYTES);
        let file = CaptureFile { path, index: 0, starts_ns: i64::MIN, is_plain: false, progress, read_bytes };
        Self { file, reader, stream: Some(stream), head: Head::default(), number: 0 }
    }

    /// Reads the next packet into the head, or to the end of the capture; see `CaptureReader::is_over`. An error may be
    /// about damage before that packet.
    pub(crate) fn advance(&mut self, interrupt: &Interrupt) -> Result<(), CaptureError> {
        match self.read_head() {
            // What is missing when the user stops is not damage.
            Err(_) if interrupt.is_set() => Ok(()),
            Err(damage) if damage.skipped_bytes().is_some() => {
                // The packet behind the damage is in the window.
                _ = self.read_head();
                Err(self.file.error(damage))
            }
            read => read.map_err(|damage| self.file.error(damage)),
        }
    }

    fn read_head(&mut self) -> Result<(), Damage> {
        let Self { reader, head, number, .. } = self;
        if let Some(CapturedPacket { time_ns, link_type, original_length, data }) = reader.next_packet()? {
            (head.time_ns, head.link_type, head.original_length) = (time_ns, link_type, original_length);
            head.data.clear();
            head.data.extend_from_slice(data);
            *number += 1;
        }
        Ok(())
    }

    /// Closes the file until more of it is needed than what has been read at once.
    pub(crate) fn suspend(&mut self) {
        let (path, progress) = (self.file.path.clone(), self.file.progress.clone());
        self.reader.window.suspend(move |offset| open_file(&path, &progress, offset));
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        let Head { time_ns, link_type, original_length, ref data } = self.head;
        Packet { time_ns, link_type, original_length, data, capture: self.file.index, number: self.number }
    }

    /// Hands the packets that are in the buffer already to the visitor that `visitor` makes. It is passed the index of
    /// the capture and the number of the last packet taken.
    pub(crate) fn visit_buffered<V: PacketVisitor>(&mut self, visitor: impl FnOnce(u32, u64) -> V) {
        self.number += self.reader.visit_buffered(&mut visitor(self.file.index, self.number));
    }

    pub(crate) fn may_wait(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| !is_ready(stream))
    }

    pub(crate) fn can_suspend(&self) -> bool {
        self.stream.is_none() && !self.reader.window.is_suspended()
    }
}
