//! Several captures as one, in order of time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::PathBuf;

use sizeleak_stage::Interrupt;

use crate::error::CaptureError;
use crate::open::open;
use crate::reader::CaptureReader;

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

/// Captures read in order of time. A capture is open only while its time has come and it is not at its end, so that an
/// archive may hold more files than a process may open.
pub(crate) struct Merge {
    /// Captures not begun yet, those that begin first at the front.
    waiting: VecDeque<(i64, u32)>,
    files: Vec<PathBuf>,
    open: Vec<Open>,
    /// The heads of the open captures: the earliest on top, of equal ones that of the file named first.
    order: BinaryHeap<Reverse<(i64, u32, usize)>>,
    /// The capture whose packet was given last, which is to be read on.
    given: Option<usize>,
    interrupt: Interrupt,
    pub(crate) bytes: u64,
    pub(crate) skipped: u64,
}

struct Open {
    reader: Option<CaptureReader>,
    head: Head,
}

impl Merge {
    /// Looks when each file begins. A file that cannot be opened, or holds no whole packet, gives an error of its own.
    pub(crate) fn new(files: Vec<PathBuf>, interrupt: &Interrupt) -> (Self, Vec<CaptureError>) {
        let mut merge = Self {
            waiting: VecDeque::new(),
            files,
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
        for (file, capture) in merge.files.iter().zip(0..) {
            // One file needs no looking ahead, and stdin allows none: they simply come first.
            if alone || file.as_os_str() == "-" {
                begins.push((i64::MIN, capture));
                continue;
            }
            let first = open(file, interrupt).and_then(|mut reader| {
                let packet = reader.next_packet();
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

    /// The next packet of all captures, moved into `head`; false at the end. After an error the damaged capture is left
    /// behind and the others go on.
    pub(crate) fn next_packet(&mut self, head: &mut Head) -> Result<bool, CaptureError> {
        // Only now: reading on right after giving a packet would hold it back for as long as the next one takes.
        if let Some(slot) = self.given.take() {
            self.advance(slot)?;
        }
        loop {
            let earliest = self.order.peek().map(|Reverse((time_ns, ..))| *time_ns);
            if let Some((begins, capture)) = self.waiting.front().copied()
                && earliest.is_none_or(|earliest| begins <= earliest)
            {
                self.waiting.pop_front();
                self.begin(capture)?;
                continue;
            }
            let Some(Reverse((_, _, slot))) = self.order.pop() else { return Ok(false) };
            let Some(open) = self.open.get_mut(slot) else { continue };
            std::mem::swap(head, &mut open.head);
            (open.head.capture, open.head.number) = (head.capture, head.number);
            self.given = Some(slot);
            return Ok(true);
        }
    }

    /// Whether the next packet is there without waiting for input.
    pub(crate) fn is_buffered(&self) -> bool {
        let given = self.given.and_then(|slot| self.open.get(slot)).and_then(|open| open.reader.as_ref());
        given.is_none_or(CaptureReader::is_buffered)
    }

    fn begin(&mut self, capture: u32) -> Result<(), CaptureError> {
        let Some(file) = self.files.get(capture as usize) else { return Ok(()) };
        let reader = Some(open(file, &self.interrupt)?);
        let head = Head { capture, ..Head::default() };
        let begun = Open { reader, head };
        let free = self.open.iter().position(|open| open.reader.is_none());
        let slot = free.unwrap_or(self.open.len());
        if let Some(open) = self.open.get_mut(slot) {
            *open = begun;
        } else {
            self.open.push(begun);
        }
        self.advance(slot)
    }

    /// Reads the next packet of an open capture into its head, or closes it at its end.
    fn advance(&mut self, slot: usize) -> Result<(), CaptureError> {
        let Some(Open { reader: reader_slot @ Some(_), head }) = self.open.get_mut(slot) else { return Ok(()) };
        let Some(reader) = reader_slot else { return Ok(()) };
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
        self.bytes += reader.offset();
        self.skipped += reader.skipped();
        *reader_slot = None;
        ended
    }
}
