//! Several captures as one: one after the other, or in order of time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_frame::Packet;
use sizeleak_platform::runtime::{FileProgress, Interrupt, Progress};

use crate::error::{CaptureError, NAME};
use crate::open::{Decompression, is_stream};
use crate::open_capture::{CaptureFile, OpenCapture};
use crate::window::WINDOW_BYTES;

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

/// What is read of one at once at least.
const MIN_READ_BYTES: usize = 4 << 10;

/// What is read of a file to find its start.
const START_BYTES: usize = 64 << 10;

/// While fewer files than this are open, each compressed one is decompressed on a thread of its own.
const MAX_THREADED: usize = 4;

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
        let is_threaded = self.suspendable.len() < MAX_THREADED;
        let decompression = if is_threaded { Decompression::Threaded } else { Decompression::Inline };
        tracing::info!(stage = NAME, file = %file.path.display(), "reads");
        match OpenCapture::open(file, &self.interrupt, decompression) {
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
            if capture.can_suspend() {
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

    /// The capture of the packet returned last, if no other one is open and it is a file that is not compressed.
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

    /// Suspends the file whose next packet is latest if too many are open.
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
