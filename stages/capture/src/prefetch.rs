//! Reads the next captures on threads of their own while the current one is read.
//!
//! The packets of captures that do not overlap in time follow each other, so a thread can batch those of a later
//! capture before its turn: the output does not depend on it. If captures overlap after all, the thread stops at the
//! first packet that a packet of another capture may precede. Stdin and named pipes are never read before their turn.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::Packets;
use sizeleak_platform::runtime::{Closed, Interrupt, processors};

use crate::error::{CaptureError, NAME};
use crate::merge::{CaptureFile, OpenCapture};
use crate::open::is_stream;
use crate::packet_batcher::{PacketBatcher, Selection};

/// The most parcels that may wait, of all captures together; each stands for about [`PARCEL_BYTES`] of memory.
const PARCELS: usize = 192;
const PARCEL_BYTES: usize = 64 << 10;

/// The most captures read before their turn: each has its own buffer, and decompression takes more.
const MAX_CAPTURES: usize = 8;

pub(crate) struct Prefetcher {
    captures: VecDeque<PrefetchedCapture>,
    most: usize,
    selection: Selection,
    interrupt: Interrupt,
}

impl Prefetcher {
    pub(crate) fn new(selection: Selection, interrupt: Interrupt) -> Self {
        Self { captures: VecDeque::new(), most: (processors() - 1).min(MAX_CAPTURES), selection, interrupt }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.captures.is_empty()
    }

    /// Discards captures that no longer wait: they overlap others and are merged instead.
    pub(crate) fn discard_started(&mut self, waiting: &VecDeque<CaptureFile>) {
        let next = waiting.front().map(|file| file.index);
        while self.captures.pop_front_if(|first| Some(first.index) != next).is_some() {}
    }

    /// Starts reading the captures after the first of those waiting, and returns that first one if it is being read.
    ///
    /// Uncompressed captures are prefetched only if most packets are passed over: others would have to be copied, which
    /// takes longer than reading them in turn. With two processors, two threads that alternate in one file are faster.
    pub(crate) fn take_next(
        &mut self,
        waiting: &VecDeque<CaptureFile>,
        batcher: &PacketBatcher,
    ) -> Option<PrefetchedCapture> {
        self.discard_started(waiting);
        let next = self.captures.pop_front();
        let with_plain = self.most > 1 && batcher.passes_over_most();
        while self.captures.len() < self.most {
            let position = self.captures.len() + 1;
            let can_prefetch = |file: &&CaptureFile| (with_plain || !file.is_plain) && !is_stream(&file.path);
            let Some(file) = waiting.get(position).filter(can_prefetch) else { break };
            let before_ns = waiting.get(position + 1).map_or(i64::MAX, |following| following.starts_ns);
            let Some(capture) = self.start(file.clone(), before_ns) else { break };
            self.captures.push_back(capture);
        }
        next
    }

    fn start(&self, file: CaptureFile, before_ns: i64) -> Option<PrefetchedCapture> {
        let (sender, parcels) = bounded(PARCELS / (self.most + 1));
        let (index, wanted) = (file.index, Arc::new(()));
        let parcels_out = ParcelSender { parcel: Vec::new(), bytes: 0, sender, wanted: Arc::downgrade(&wanted) };
        let batcher = PacketBatcher::copying_data(self.selection.clone());
        let interrupt = self.interrupt.clone();
        let read = move || read(file, before_ns, batcher, parcels_out, &interrupt);
        let thread = thread::Builder::new().name("prefetch".to_owned()).spawn(read).ok()?;
        Some(PrefetchedCapture { index, parcels, thread, _wanted: wanted })
    }
}

pub(crate) struct PrefetchedCapture {
    index: u32,
    /// Until the thread has stopped.
    pub(crate) parcels: Receiver<Vec<Packets>>,
    thread: JoinHandle<Option<PrefetchEnd>>,
    _wanted: Arc<()>,
}

pub(crate) struct PrefetchEnd {
    /// The counts, and a batch that has been started if the capture continues.
    pub(crate) batcher: PacketBatcher,
    /// The capture: over, or with a packet at its head that another capture may precede or that follows damage. `None`
    /// if it cannot be opened.
    pub(crate) capture: Option<Box<OpenCapture>>,
    pub(crate) error: Option<CaptureError>,
}

impl PrefetchedCapture {
    pub(crate) fn end(self) -> Option<PrefetchEnd> {
        self.thread.join().ok()?
    }
}

/// `None` once its receiver is gone.
fn read(
    file: CaptureFile,
    before_ns: i64,
    mut batcher: PacketBatcher,
    mut parcels: ParcelSender,
    interrupt: &Interrupt,
) -> Option<PrefetchEnd> {
    tracing::info!(stage = NAME, file = %file.path.display(), "reads");
    let mut capture = match OpenCapture::open(file, interrupt) {
        Ok(capture) => Box::new(capture),
        Err(error) => return Some(PrefetchEnd { batcher, capture: None, error: Some(error) }),
    };
    let mut error = None;
    while !interrupt.is_set() {
        // Nothing is sent for packets passed over, so the next send may be far off.
        if parcels.wanted.strong_count() == 0 {
            return None;
        }
        error = capture.advance(interrupt).err();
        if capture.reader.is_over {
            break;
        }
        // Damage is reported in its place, between the packets.
        if error.is_some() || capture.packet().time_ns >= before_ns {
            parcels.flush().ok()?;
            return Some(PrefetchEnd { batcher, capture: Some(capture), error });
        }
        batcher.push(capture.packet(), None);
        batcher.take_buffered(&mut capture, before_ns, interrupt, |batch| parcels.send(batch)).ok()?;
    }
    parcels.parcel.extend(batcher.finish());
    parcels.flush().ok()?;
    Some(PrefetchEnd { batcher, capture: Some(capture), error })
}

/// Sends batches in parcels, so that what waits is bounded by its memory.
struct ParcelSender {
    parcel: Vec<Packets>,
    bytes: usize,
    sender: Sender<Vec<Packets>>,
    wanted: Weak<()>,
}

impl ParcelSender {
    fn send(&mut self, batch: Packets) -> Result<(), Closed> {
        self.bytes += batch.memory_bytes();
        self.parcel.push(batch);
        if self.bytes < PARCEL_BYTES {
            return Ok(());
        }
        // A large parcel takes the room of several: empty ones stand for it. One larger than the whole room waits for
        // its turn.
        for _ in 1..std::mem::take(&mut self.bytes) / PARCEL_BYTES {
            self.sender.send(Vec::new()).map_err(|_| Closed)?;
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Closed> {
        self.sender.send(std::mem::take(&mut self.parcel)).map_err(|_| Closed)
    }
}

#[cfg(test)]
mod tests;
