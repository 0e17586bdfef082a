//! The next captures, each read on a thread of its own while the present one still is.
//!
//! Of several captures that do not overlap the packets of each come in one piece. So threads can gather those of the
//! next ones into batches already, and they follow when their turn comes: what comes out does not depend on it. Where
//! captures do overlap after all, the thread leaves off at the first packet that another capture may come before. Stdin and named
//! pipes are not read before their turn.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::Packets;
use sizeleak_runtime::{FileProgress, Interrupt, processors};

use crate::capture::NAME;
use crate::error::CaptureError;
use crate::merge::{Head, Merge};
use crate::open::{Decompression, open};
use crate::packet_batcher::{Keeping, PacketBatcher, Selection, Stretch};
use crate::reader::{CaptureReader, Place};

/// So many parcels wait at most, of about [`PARCEL_BYTES`] of memory each: those of all captures together, the one whose turn it
/// is among them.
const PARCELS: usize = 192;
const PARCEL_BYTES: usize = 64 << 10;

/// No more captures are read before their turn than this: each has a buffer of its own, and one that is compressed what its
/// format takes.
const MOST_CAPTURES: usize = 8;

/// Captures that are read before their turn, in the order of their turns.
pub(crate) struct NextCaptures {
    reading: VecDeque<PrefetchedCapture>,
    most: usize,
    selection: Selection,
    interrupt: Interrupt,
}

impl NextCaptures {
    /// None yet. Beside the one whose turn it is, there are to be as many as there are processors for.
    pub(crate) fn new(selection: Selection, interrupt: Interrupt) -> Self {
        Self::at_most((processors() - 1).min(MOST_CAPTURES), selection, interrupt)
    }

    pub(crate) fn at_most(most: usize, selection: Selection, interrupt: Interrupt) -> Self {
        Self { reading: VecDeque::new(), most, selection, interrupt }
    }

    /// Whether a second thread for the capture whose turn it is would be worth more: with two processors, one capture after the
    /// other is read sooner by both.
    pub(crate) fn are_worth_less(&self) -> bool {
        self.reading.is_empty() || self.most == 1
    }

    /// Leaves them all.
    pub(crate) fn clear(&mut self) {
        self.reading.clear();
    }

    /// Leaves those that have begun without this: where captures overlap, the next one begins before its turn to be read alone.
    pub(crate) fn leave_begun(&mut self, merge: &Merge) {
        while self.reading.pop_front_if(|first| !merge.is_next(first.capture)).is_some() {}
    }

    /// The next capture, if it is read already, where those that have begun were left; after it come others. Those that are not compressed are worth it only where most
    /// of their packets are passed over, as they were of the capture before, and where the processors would not read each one
    /// together: to copy packets for them to wait takes longer than to read them in turn.
    pub(crate) fn take_next(&mut self, merge: &Merge, passes_over_most: bool) -> Option<PrefetchedCapture> {
        let plain = passes_over_most && self.most > 1;
        let next = self.reading.pop_front();
        while self.reading.len() < self.most
            && let Some(job) = merge.job_behind(self.reading.len() + 1, plain)
            && let Some(beside) =
                PrefetchedCapture::start(job, PARCELS / (self.most + 1), &self.selection, &self.interrupt)
        {
            self.reading.push_back(beside);
        }
        next
    }
}

/// A capture to be read.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) file: PathBuf,
    pub(crate) capture: u32,
    /// Packets captured then or later may come behind those of another capture.
    pub(crate) before_ns: i64,
    /// Where to tell how far it was read.
    pub(crate) furthest: FileProgress,
}

/// A capture that is being read.
pub(crate) struct PrefetchedCapture {
    capture: u32,
    parcels: Receiver<Parcel>,
    /// Whether nobody wants it any more.
    is_unwanted: Arc<AtomicBool>,
}

impl Drop for PrefetchedCapture {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
    }
}

/// What its thread hands over.
pub(crate) enum Parcel {
    Batches(Vec<Packets>),
    /// Nothing; it keeps the room that the large batches behind it take.
    Room,
    /// Nothing more comes.
    End(Box<End>),
}

/// How far the thread came.
pub(crate) struct End {
    /// What it gathered. A batch is begun in it only where another capture goes on with that.
    pub(crate) gathered: PacketBatcher,
    pub(crate) stop: Stop,
}

/// Why a thread reads no further.
pub(crate) enum Stop {
    /// The capture is at its end, or the user stopped: bytes that were read, and blocks that were no packets.
    Read { bytes: u64, skipped: u64 },
    /// It is damaged there.
    Damaged { error: CaptureError, bytes: u64, skipped: u64 },
    /// Another capture may come before this packet of it.
    Overlap(Head, Place),
}

impl PrefetchedCapture {
    /// Begins to read a capture, of which so many parcels may wait; `None` where no thread can be had.
    fn start(job: Job, most: usize, selection: &Selection, interrupt: &Interrupt) -> Option<Self> {
        let (sender, parcels) = bounded(most);
        let (selection, interrupt) = (selection.clone(), interrupt.clone());
        let (capture, is_unwanted) = (job.capture, Arc::new(AtomicBool::new(false)));
        let looked_at = Arc::clone(&is_unwanted);
        let work = move || {
            let mut reading = Reading { parcel: Vec::new(), bytes: 0, sender, is_unwanted: looked_at };
            let mut filling = PacketBatcher::new(selection, Keeping::Copied);
            tracing::info!(stage = NAME, file = %job.file.display(), "reads");
            let stop = match open(&job.file, &interrupt, &job.furthest, Decompression::Here) {
                Ok(opened) => reading.read(opened.reader, &job, &mut filling, &interrupt),
                Err(error) => Some(Stop::Damaged { error, bytes: 0, skipped: 0 }),
            };
            if let Some(stop) = stop {
                reading.finish(filling, stop);
            }
        };
        thread::Builder::new().name("read beside".to_owned()).spawn(work).ok()?;
        Some(Self { capture, parcels, is_unwanted })
    }

    /// What comes next; `None` where its thread has died.
    pub(crate) fn next_parcel(&self) -> Option<Parcel> {
        self.parcels.recv().ok()
    }
}

/// The thread's part.
struct Reading {
    parcel: Vec<Packets>,
    bytes: usize,
    sender: Sender<Parcel>,
    is_unwanted: Arc<AtomicBool>,
}

/// Nobody wants it any more.
struct Unwanted;

impl Reading {
    /// Reads a capture as far as it may; `None` where nobody wants it any more.
    fn read(
        &mut self,
        mut reader: CaptureReader,
        job: &Job,
        filling: &mut PacketBatcher,
        interrupt: &Interrupt,
    ) -> Option<Stop> {
        let (capture, before_ns, mut number) = (job.capture, job.before_ns, 0);
        while !interrupt.is_set() {
            // What it reads may hold nothing to be sent for long.
            if self.is_unwanted.load(Ordering::Relaxed) {
                return None;
            }
            match reader.next_packet() {
                Ok(Some(packet)) => {
                    number += 1;
                    let head = Head::of(&packet, capture, number);
                    if packet.time_ns >= before_ns {
                        return Some(Stop::Overlap(head, reader.leave()));
                    }
                    filling.take_copy(head.packet());
                }
                Ok(None) => break,
                Err(damage) => {
                    let error = CaptureError { file: job.file.clone(), damage };
                    return Some(Stop::Damaged { error, bytes: reader.offset(), skipped: reader.skipped() });
                }
            }
            loop {
                if filling.is_due() {
                    self.hand_over(filling.finish()).ok()?;
                }
                number += reader.gather(&Stretch { before_ns, capture, number }, filling);
                if !filling.is_full() || interrupt.is_set() {
                    break;
                }
            }
        }
        tracing::info!(stage = NAME, file = %job.file.display(), bytes = reader.offset(), "has read");
        Some(Stop::Read { bytes: reader.offset(), skipped: reader.skipped() })
    }

    fn hand_over(&mut self, batch: Option<Packets>) -> Result<(), Unwanted> {
        let Some(batch) = batch else { return Ok(()) };
        self.bytes += batch.memory_bytes();
        self.parcel.push(batch);
        if self.bytes < PARCEL_BYTES {
            return Ok(());
        }
        // What is larger than a parcel takes the room of several; what is larger than all room waits for its turn.
        for _ in 1..std::mem::take(&mut self.bytes) / PARCEL_BYTES {
            self.sender.send(Parcel::Room).map_err(|_| Unwanted)?;
        }
        self.sender.send(Parcel::Batches(std::mem::take(&mut self.parcel))).map_err(|_| Unwanted)
    }

    fn finish(mut self, mut filling: PacketBatcher, stop: Stop) {
        if !matches!(stop, Stop::Overlap(..)) {
            self.parcel.extend(filling.finish());
        }
        let end = Box::new(End { gathered: filling, stop });
        // Where nobody wants it any more, that is all there is to do.
        let _sent = self.sender.send(Parcel::Batches(self.parcel)).and_then(|()| self.sender.send(Parcel::End(end)));
    }
}

#[cfg(test)]
mod tests;
