//! The next capture, read on a thread of its own while the present one still is.
//!
//! Of several captures that do not overlap the packets of each come in one piece. So a thread can gather those of the
//! next one into batches already, and they follow when their turn comes: what comes out does not depend on it. Where
//! captures do overlap after all, the thread leaves off at the first packet that another capture may come before.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use sizeleak_frame::Packets;
use sizeleak_stage::{Furthest, Interrupt, has_several_processors};

use crate::capture::NAME;
use crate::error::CaptureError;
use crate::filling::{Counts, Filling, Keeping, Selection, Stretch};
use crate::merge::Head;
use crate::open::{Decompression, open};
use crate::reader::{CaptureReader, Place};

/// So many parcels wait at most, of about [`PARCEL_BYTES`] of memory each.
const PARCELS: usize = 192;
const PARCEL_BYTES: usize = 64 << 10;

/// A capture to be read.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) file: PathBuf,
    pub(crate) capture: u32,
    /// Packets captured then or later may come behind those of another capture.
    pub(crate) before_ns: i64,
    /// Where to tell how far it was read.
    pub(crate) furthest: Furthest,
}

/// A capture that is being read.
pub(crate) struct Beside {
    pub(crate) capture: u32,
    parcels: Receiver<Parcel>,
    /// Whether nobody wants it any more.
    is_unwanted: Arc<AtomicBool>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.is_unwanted.store(true, Ordering::Relaxed);
    }
}

/// What its thread hands over.
pub(crate) enum Parcel {
    Batches(Vec<Packets>),
    /// Nothing more comes.
    End(Box<End>),
}

/// How far the thread came.
pub(crate) struct End {
    pub(crate) counts: Counts,
    /// When the last packet was captured.
    pub(crate) last_ns: Option<i64>,
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

impl Beside {
    /// Begins to read a capture; `None` where no thread can be had.
    pub(crate) fn start(job: Job, selection: Selection, interrupt: Interrupt) -> Option<Self> {
        let (sender, parcels) = bounded(PARCELS);
        let (capture, is_unwanted) = (job.capture, Arc::new(AtomicBool::new(false)));
        let looked_at = Arc::clone(&is_unwanted);
        let work = move || {
            let mut reading = Reading { parcel: Vec::new(), bytes: 0, sender, is_unwanted: looked_at };
            let mut filling = Filling::new(selection, Keeping::Copied);
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
        filling: &mut Filling,
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
        self.bytes = 0;
        self.sender.send(Parcel::Batches(std::mem::take(&mut self.parcel))).map_err(|_| Unwanted)
    }

    fn finish(mut self, mut filling: Filling, stop: Stop) {
        let batch = filling.finish();
        let end = Box::new(End { last_ns: filling.last_ns(), counts: filling.counts, stop });
        self.parcel.extend(batch);
        // Where nobody wants it any more, that is all there is to do.
        let _sent = self.sender.send(Parcel::Batches(self.parcel)).and_then(|()| self.sender.send(Parcel::End(end)));
    }
}

/// Whether a file is worth a thread: one that is written while it is read is not read ahead of its time.
pub(crate) fn may_be_read_beside(file: &Path) -> bool {
    !crate::open::is_stream(file) && has_several_processors()
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Packet;

    use super::*;

    #[test]
    fn packets_without_data_wait_in_no_more_memory_than_others() {
        for data in [&[][..], &[7; 60]] {
            let (sender, parcels) = bounded(PARCELS);
            let mut reading = Reading { parcel: Vec::new(), bytes: 0, sender, is_unwanted: Arc::default() };
            let mut filling = Filling::new(Selection::All, Keeping::Copied);
            let packet = Packet { time_ns: 0, link_type: 1, original_length: 60, data, capture: 0, number: 1 };
            while parcels.is_empty() {
                filling.take_copy(packet);
                if filling.is_due() {
                    assert!(reading.hand_over(filling.finish()).is_ok());
                }
            }
            let Ok(Parcel::Batches(batches)) = parcels.recv() else { panic!("no batches") };
            let bytes: usize = batches.iter().map(Packets::memory_bytes).sum();
            assert!((PARCEL_BYTES..2 * PARCEL_BYTES).contains(&bytes), "{bytes}");
            // Each packet takes a row.
            assert!(bytes > 16 * batches.iter().map(Packets::len).sum::<usize>());
        }
    }
}
