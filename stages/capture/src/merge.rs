//! Several captures as one: one after the other, or in order of time. Each that is open has its next packet at its head.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_frame::Packet;
use sizeleak_platform::runtime::{FileProgress, Interrupt, Progress, is_ready};

use crate::error::{CaptureError, Damage, NAME};
use crate::open::{is_stream, open, open_file};
use crate::reader::CaptureReader;
use crate::window::{CapturedPacket, PacketVisitor, WINDOW_BYTES};

#[derive(Debug, Clone)]
pub(crate) struct CaptureFile {
    pub(crate) path: PathBuf,
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
        let mut capture = OpenCapture::open(self.clone(), interrupt)?;
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
    /// Reading a stream ends when `interrupt` is set.
    pub(crate) fn open(file: CaptureFile, interrupt: &Interrupt) -> Result<Self, CaptureError> {
        let opened = open(&file.path, interrupt, &file.progress, file.read_bytes);
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
}

/// How several captures follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureOrder {
    /// By the times of their packets: where captures overlap, they are merged
    #[default]
    Time,
    /// As they are named, and those of a folder by their paths, one after the other. Times that go back are moved to
    /// follow: for captures whose times were lost or rewritten, such as one file an event that begins at zero
    Given,
    /// As they are named, and no time is used: packets are dated 200 ms apart, so that each message stands alone. For
    /// captures whose times are all equal, or make no sense
    Untimed,
}

/// The most files open at once. If more overlap in time, those whose next packet is latest are suspended: what has been
/// read of them stays, so that each is opened again only once in a while.
const MAX_OPEN: usize = 128;

/// What is read of all open captures together, about, in bytes.
const MAX_READ_BYTES: usize = 8 << 20;

const MIN_READ_BYTES: usize = 4 << 10;

const START_BYTES: usize = 64 << 10;

pub(crate) enum Next<'a> {
    Packet(Packet<'a>),
    /// The start of the next capture, while no other one is open.
    Start,
    End,
}

/// Captures merged by time. A capture is opened only when its first packet is due, so an archive may hold more files
/// than a process may open.
pub(crate) struct Merge {
    pub(crate) waiting: VecDeque<CaptureFile>,
    /// Open captures by the time of their heads; of equal times, the file named first comes first.
    open: BTreeMap<(i64, u32), Box<OpenCapture>>,
    /// Those of them that can be suspended.
    suspendable: BTreeSet<(i64, u32)>,
    /// The capture of the packet returned last. It is read further only when the next packet is asked for: reading at
    /// once would hold back the last packet until another one arrives.
    current: Option<Box<OpenCapture>>,
    interrupt: Interrupt,
    pub(crate) bytes: u64,
    pub(crate) skipped_blocks: u64,
    pub(crate) skipped_bytes: u64,
    pub(crate) read: u64,
}

impl Merge {
    /// Finds the start of each file. Returns an error for each file that cannot be opened or begins with damage.
    pub(crate) fn new(
        paths: Vec<PathBuf>,
        order: CaptureOrder,
        interrupt: &Interrupt,
        progress: &Progress,
    ) -> (Self, Vec<CaptureError>) {
        let (mut waiting, mut errors) = (Vec::new(), Vec::new());
        let is_single = paths.len() == 1;
        for (path, index) in paths.into_iter().zip(0..).take_while(|_| !interrupt.is_set()) {
            let progress = FileProgress::new(progress);
            let (starts_ns, read_bytes) = (i64::MIN, START_BYTES);
            let mut file = CaptureFile { path, index, starts_ns, is_plain: false, progress, read_bytes };
            // The start of a single file does not matter, and that of a stream cannot be known: a stream comes first.
            if is_single || is_stream(&file.path) {
                file.read_bytes = WINDOW_BYTES;
                waiting.push(file);
                continue;
            }
            let found = file.find_start(interrupt);
            file.read_bytes = WINDOW_BYTES;
            match found {
                Ok(true) => waiting.push(file),
                Ok(false) => {}
                Err(error) => errors.push(error),
            }
        }
        if order != CaptureOrder::Time {
            // None begins while another one is open.
            for file in &mut waiting {
                file.starts_ns = i64::MAX;
            }
        }
        waiting.sort_by_key(|file| (file.starts_ns, file.index));
        let merge = Self {
            waiting: waiting.into(),
            open: BTreeMap::new(),
            suspendable: BTreeSet::new(),
            current: None,
            interrupt: interrupt.clone(),
            bytes: 0,
            skipped_blocks: 0,
            skipped_bytes: 0,
            read: 0,
        };
        (merge, errors)
    }

    /// The next packet of all captures. After an error the damaged capture is closed and the others continue.
    pub(crate) fn next_packet(&mut self) -> Result<Next<'_>, CaptureError> {
        if let Some(current) = self.current.take() {
            self.advance(current)?;
        }
        while let Some(next) = self.waiting.front() {
            match self.open.keys().next() {
                None => return Ok(Next::Start),
                Some((earliest_ns, _)) if next.starts_ns <= *earliest_ns => self.start_next()?,
                Some(_) => break,
            }
        }
        let Some((key, earliest)) = self.open.pop_first() else { return Ok(Next::End) };
        self.suspendable.remove(&key);
        Ok(Next::Packet(self.current.insert(earliest).packet()))
    }

    pub(crate) fn start_next(&mut self) -> Result<(), CaptureError> {
        let Some(mut file) = self.waiting.pop_front() else { return Ok(()) };
        self.make_room();
        file.read_bytes = self.read_bytes();
        tracing::info!(stage = NAME, file = %file.path.display(), "reads");
        match OpenCapture::open(file, &self.interrupt) {
            Ok(capture) => self.advance(Box::new(capture)),
            // What has not arrived when the user stops is not damage.
            Err(_) if self.interrupt.is_set() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn add(&mut self, capture: Box<OpenCapture>) {
        let reader = &capture.reader;
        if !reader.is_over {
            let packet = capture.packet();
            let key = (packet.time_ns, packet.capture);
            if capture.stream.is_none() && !capture.reader.window.is_suspended() {
                self.suspendable.insert(key);
            }
            self.open.insert(key, capture);
            return;
        }
        tracing::info!(stage = NAME, file = %capture.file.path.display(), bytes = reader.window.offset(), "has read");
        self.read += 1;
        self.bytes += reader.window.offset();
        self.skipped_blocks += reader.skipped_blocks;
        self.skipped_bytes += reader.skipped_bytes;
    }

    /// The capture of the packet returned last, and the time before which no packet of another capture comes.
    pub(crate) fn current(&mut self) -> Option<(&mut OpenCapture, i64)> {
        let starts_ns = self.waiting.front().map(|file| file.starts_ns);
        let head_ns = self.open.keys().next().map(|(time_ns, _)| *time_ns);
        let before_ns = starts_ns.into_iter().chain(head_ns).min().unwrap_or(i64::MAX);
        Some((self.current.as_mut()?, before_ns))
    }

    pub(crate) fn sole_plain_file(&mut self) -> Option<&mut OpenCapture> {
        self.current
            .as_deref_mut()
            .filter(|current| self.open.is_empty() && current.reader.window.plain_file().is_some())
    }

    pub(crate) fn may_wait(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.may_wait())
    }

    pub(crate) fn advance(&mut self, mut capture: Box<OpenCapture>) -> Result<(), CaptureError> {
        if capture.reader.window.is_suspended() {
            self.make_room();
        }
        capture.reader.window.read_at_once(self.read_bytes());
        let advanced = capture.advance(&self.interrupt);
        self.add(capture);
        advanced
    }

    fn make_room(&mut self) {
        let read_bytes = self.read_bytes();
        if self.suspendable.len() >= MAX_OPEN
            && let Some(latest) = self.suspendable.pop_last()
            && let Some(capture) = self.open.get_mut(&latest)
        {
            capture.reader.window.read_at_once(read_bytes);
            capture.suspend();
        }
    }

    fn read_bytes(&self) -> usize {
        (MAX_READ_BYTES / (self.open.len() + 1)).clamp(MIN_READ_BYTES, WINDOW_BYTES)
    }
}
