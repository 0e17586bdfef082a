//! Several captures as one, in order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use sizeleak_frame::Packet;
use sizeleak_runtime::{FileProgress, Interrupt, Progress, is_ready};

use crate::capture::NAME;
use crate::error::CaptureError;
use crate::open::{Decompression, Opened, is_stream, open, reopen};
use crate::packet_batcher::{PacketBatcher, Stretch};
use crate::plain::PlainFile;
use crate::prefetched_capture::Job;
use crate::reader::{CaptureReader, CapturedPacket, Place};

/// So many files are open at once at most. Where more overlap in time, those whose next packet is latest are left off
/// and opened again.
const MOST_OPEN: usize = 128;

/// While no more files than this are open, compressed ones are decompressed on threads of their own.
const MOST_BESIDE: usize = 4;

/// A packet at the head of a capture, copied out of it so that others can be read on.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) time_ns: i64,
    pub(crate) link_type: u16,
    pub(crate) original_length: u32,
    pub(crate) data: Vec<u8>,
    pub(crate) capture: u32,
    pub(crate) number: u64,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A packet.
    Packet,
    /// The next capture is to be begun, and none is open that has packets left.
    Alone,
    End,
}

impl Head {
    pub(crate) fn of(packet: &CapturedPacket<'_>, capture: u32, number: u64) -> Self {
        let CapturedPacket { time_ns, link_type, original_length, data } = *packet;
        Self { time_ns, link_type, original_length, data: data.to_vec(), capture, number }
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        let Self { time_ns, link_type, original_length, ref data, capture, number } = *self;
        Packet { time_ns, link_type, original_length, data, capture, number }
    }
}

/// Captures read in order of time. A capture is begun only when its time has come, so that an archive may hold more files
/// than a process may open.
pub(crate) struct Merge {
    /// Captures not begun yet, those that begin first at the front.
    waiting: VecDeque<(i64, u32)>,
    files: Vec<PathBuf>,
    /// Those that lie in their files as they are.
    plain: HashSet<u32>,
    /// How far each of them was read.
    furthest: Vec<FileProgress>,
    open: Vec<Open>,
    /// The heads of the open captures: the earliest on top, of equal ones that of the file named first.
    order: BinaryHeap<Reverse<(i64, u32, usize)>>,
    /// The capture whose packet was given last, which is to be read on.
    given: Option<usize>,
    interrupt: Interrupt,
    pub(crate) bytes: u64,
    pub(crate) skipped: u64,
}

/// A capture that was begun.
struct Open {
    reading: Reading,
    head: Head,
}

enum Reading {
    Now(CaptureReader),
    /// From something that may keep its reader waiting; the handle tells.
    Stream(CaptureReader, OwnedFd),
    LeftOff(Place),
    Ended,
}

impl Merge {
    /// Looks when each file begins. A file that cannot be opened, or holds no whole packet, gives an error of its own.
    pub(crate) fn new(files: Vec<PathBuf>, interrupt: &Interrupt, progress: &Progress) -> (Self, Vec<CaptureError>) {
        let furthest = files.iter().map(|_| FileProgress::new(progress)).collect();
        let mut merge = Self {
            waiting: VecDeque::new(),
            files,
            plain: HashSet::new(),
            furthest,
            open: Vec::new(),
            order: BinaryHeap::new(),
            given: None,
            interrupt: interrupt.clone(),
            bytes: 0,
            skipped: 0,
        };
        let mut errors = Vec::new();
        let mut begins = Vec::new();
        let alone = merge.files.len() == 1;
        for ((file, furthest), capture) in merge.files.iter().zip(&merge.furthest).zip(0..) {
            if interrupt.is_set() {
                break;
            }
            // One file needs no looking ahead, and a stream allows none: they simply come first.
            if alone || is_stream(file) {
                begins.push((i64::MIN, capture));
                continue;
            }
            let first = open(file, interrupt, furthest, Decompression::Here).and_then(|mut opened| {
                if opened.reader.file().is_some() {
                    merge.plain.insert(capture);
                }
                let packet = opened.reader.next_packet();
                packet
                    .map(|packet| packet.map(|packet| packet.time_ns))
                    .map_err(|damage| CaptureError { file: file.clone(), damage })
            });
            match first {
                Ok(Some(time_ns)) => begins.push((time_ns, capture)),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        begins.sort_unstable();
        merge.waiting = begins.into();
        (merge, errors)
    }

    /// The next packet of all captures, moved into `head`, unless a capture is to be begun alone. After an error the damaged
    /// capture is left behind and the others go on.
    pub(crate) fn next_packet(&mut self, head: &mut Head) -> Result<Next, CaptureError> {
        // Only now: reading on right after giving a packet would hold it back for as long as the next one takes.
        if let Some(slot) = self.given.take() {
            self.advance(slot)?;
        }
        loop {
            let earliest = self.order.peek().map(|Reverse((time_ns, ..))| *time_ns);
            if let Some((begins, _)) = self.waiting.front().copied()
                && earliest.is_none_or(|earliest| begins <= earliest)
            {
                if earliest.is_none() {
                    return Ok(Next::Alone);
                }
                self.begin_next()?;
                continue;
            }
            let Some(Reverse((_, _, slot))) = self.order.pop() else { return Ok(Next::End) };
            let Some(open) = self.open.get_mut(slot) else { continue };
            std::mem::swap(head, &mut open.head);
            (open.head.capture, open.head.number) = (head.capture, head.number);
            self.given = Some(slot);
            return Ok(Next::Packet);
        }
    }

    /// Begins the next capture.
    pub(crate) fn begin_next(&mut self) -> Result<(), CaptureError> {
        self.waiting.pop_front().map_or(Ok(()), |(_, capture)| self.begin(capture))
    }

    /// Whether this capture is the next to be begun.
    pub(crate) fn is_next(&self, capture: u32) -> bool {
        self.waiting.front().is_some_and(|(_, next)| *next == capture)
    }

    /// Leaves the next capture to somebody else.
    pub(crate) fn leave_next(&mut self) {
        self.waiting.pop_front();
    }

    /// The capture that comes so many after the next one, if it may be read before its turn.
    pub(crate) fn job_behind(&self, captures: usize, plain: bool) -> Option<Job> {
        let (_, capture) = *self.waiting.get(captures).filter(|(_, capture)| plain || !self.plain.contains(capture))?;
        let file = self.files.get(capture as usize).filter(|file| !is_stream(file))?.clone();
        let before_ns = self.waiting.get(captures + 1).map_or(i64::MAX, |(begins, _)| *begins);
        Some(Job { file, capture, before_ns, furthest: self.furthest.get(capture as usize)?.clone() })
    }

    /// Goes on with a capture that somebody else has read up to the packet in `head`.
    pub(crate) fn take_over(&mut self, head: Head, place: Place) {
        let (time_ns, capture) = (head.time_ns, head.capture);
        let slot = self.put(Open { reading: Reading::LeftOff(place), head });
        self.order.push(Reverse((time_ns, capture, slot)));
    }

    /// Takes the packets that follow the one given last, as long as no other capture's can come before them, none is to be
    /// waited for, and the batch is not full.
    pub(crate) fn gather(&mut self, filling: &mut PacketBatcher) {
        let Some(Open { reading, head }) = self.given.and_then(|slot| self.open.get_mut(slot)) else { return };
        let (Reading::Now(reader) | Reading::Stream(reader, _)) = reading else { return };
        if !self.order.is_empty() {
            return;
        }
        let before_ns = self.waiting.front().map_or(i64::MAX, |(begins, _)| *begins);
        let stretch = Stretch { before_ns, capture: head.capture, number: head.number };
        head.number += reader.gather(&stretch, filling);
    }

    /// The file that only packets are taken of for now, if it is one that can be read by turns, and how far it was read.
    pub(crate) fn lone_file(&mut self) -> Option<(&PlainFile, u64)> {
        self.lone_reader()?.file()
    }

    /// What reads on the capture whose packet was given last, if no other one is open.
    pub(crate) fn lone_reader(&mut self) -> Option<&mut CaptureReader> {
        match &mut self.open.get_mut(self.given?)?.reading {
            Reading::Now(reader) if self.order.is_empty() => Some(reader),
            _ => None,
        }
    }

    /// Whether the next packet is still to be waited for.
    pub(crate) fn must_wait(&self) -> bool {
        match self.given.and_then(|slot| self.open.get(slot)).map(|open| &open.reading) {
            Some(Reading::Stream(reader, handle)) => !reader.is_buffered() && !is_ready(handle),
            _ => false,
        }
    }

    fn begin(&mut self, capture: u32) -> Result<(), CaptureError> {
        let place = self.files.get(capture as usize).cloned().zip(self.furthest.get(capture as usize).cloned());
        let Some((file, furthest)) = place else { return Ok(()) };
        self.make_room();
        let few = self.open.iter().filter(|open| matches!(open.reading, Reading::Now(_))).count() < MOST_BESIDE;
        let decompression = if few { Decompression::PrefetchedCapture } else { Decompression::Here };
        let reading = match open(&file, &self.interrupt, &furthest, decompression) {
            Ok(Opened { reader, stream: Some(handle) }) => Reading::Stream(reader, handle),
            Ok(Opened { reader, stream: None }) => Reading::Now(reader),
            // What has not come when the user stops is no damage.
            Err(_) if self.interrupt.is_set() => return Ok(()),
            Err(error) => return Err(error),
        };
        tracing::info!(stage = NAME, file = %file.display(), "reads");
        let slot = self.put(Open { reading, head: Head { capture, ..Head::default() } });
        self.advance(slot)
    }

    /// Puts a capture where one has ended, or behind all; gives the slot.
    fn put(&mut self, begun: Open) -> usize {
        let free = self.open.iter().position(|open| matches!(open.reading, Reading::Ended));
        let slot = free.unwrap_or(self.open.len());
        if let Some(open) = self.open.get_mut(slot) {
            *open = begun;
        } else {
            self.open.push(begun);
        }
        slot
    }

    /// Leaves off the file whose next packet is latest, if as many as may be are open.
    fn make_room(&mut self) {
        let open = self.open.iter().filter(|open| matches!(open.reading, Reading::Now(_))).count();
        if open < MOST_OPEN {
            return;
        }
        let heads = self.order.iter().map(|Reverse(head)| *head);
        let is_open = |slot: usize| self.open.get(slot).is_some_and(|open| matches!(open.reading, Reading::Now(_)));
        let Some((_, _, slot)) = heads.filter(|(_, _, slot)| is_open(*slot)).max() else { return };
        if let Some(open) = self.open.get_mut(slot) {
            open.reading = match std::mem::replace(&mut open.reading, Reading::Ended) {
                Reading::Now(reader) => Reading::LeftOff(reader.leave()),
                other => other,
            };
        }
    }

    /// Opens a capture again that was left off.
    fn resume(&mut self, slot: usize) -> Result<(), CaptureError> {
        if !self.open.get(slot).is_some_and(|open| matches!(open.reading, Reading::LeftOff(_))) {
            return Ok(());
        }
        self.make_room();
        let Some(open) = self.open.get_mut(slot) else { return Ok(()) };
        if let Reading::LeftOff(place) = std::mem::replace(&mut open.reading, Reading::Ended)
            && let capture = open.head.capture as usize
            && let (Some(file), Some(furthest)) = (self.files.get(capture), self.furthest.get(capture))
        {
            open.reading = Reading::Now(reopen(file, furthest, place)?);
        }
        Ok(())
    }

    /// Reads the next packet of a begun capture into its head, or closes it at its end.
    fn advance(&mut self, slot: usize) -> Result<(), CaptureError> {
        self.resume(slot)?;
        let Some(Open { reading, head }) = self.open.get_mut(slot) else { return Ok(()) };
        let (Reading::Now(reader) | Reading::Stream(reader, _)) = reading else { return Ok(()) };
        let ended = match reader.next_packet() {
            Ok(Some(packet)) => {
                head.time_ns = packet.time_ns;
                head.link_type = packet.link_type;
                head.original_length = packet.original_length;
                head.data.clear();
                head.data.extend_from_slice(packet.data);
                head.number += 1;
                self.order.push(Reverse((head.time_ns, head.capture, slot)));
                return Ok(());
            }
            Ok(None) => Ok(()),
            // What is not whole when the user stops is no damage.
            Err(_) if self.interrupt.is_set() => Ok(()),
            Err(damage) => {
                let file = self.files.get(head.capture as usize).cloned().unwrap_or_default();
                Err(CaptureError { file, damage })
            }
        };
        let file = self.files.get(head.capture as usize).map(|file| file.display());
        tracing::info!(stage = NAME, file = file.map(tracing::field::display), bytes = reader.offset(), "has read");
        self.bytes += reader.offset();
        self.skipped += reader.skipped();
        *reading = Reading::Ended;
        ended
    }
}
