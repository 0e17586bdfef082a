//! The batch that packets are gathered in.

use std::sync::Arc;

use sizeleak_frame::{BATCH_ROWS, BatchLimit, Packet, Packets, SkippedPackets, what};
use sizeleak_packet::AddressPrefilter;
use sizeleak_runtime::{Closed, SourceEmit};

use crate::capture::notice;
use crate::reader::CapturedPacket;
use crate::skim::{LEAST_OVERHEAD, skim};

/// Which packets are handed on.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    /// All.
    All,
    /// Those that may matter to these addresses. Of the others nothing is told further down.
    Only(AddressPrefilter),
    /// Those that the stage behind this one does not drop at once; the batch stands for the others too.
    For(AddressPrefilter, BatchLimit),
}

/// How much a batch stands for when it is full. Packets passed over weigh one row and their bytes of data.
#[derive(Debug, Clone, Copy)]
struct Size {
    rows: usize,
    bytes: usize,
    /// So many rows a packet weighs that it holds.
    held_rows: usize,
}

impl Size {
    /// Whether a batch that stands for so much is full.
    #[inline]
    fn is_reached(self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows || bytes >= self.bytes
    }
}

/// Where the bytes of packets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// In the buffer they were read into.
    Shared,
    /// In the batch: it is kept for longer, and must not hold a whole buffer.
    Copied,
}

/// Why no more packets were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The batch has no room.
    Full,
    /// The next one is to be passed over.
    Foreign,
    /// There is none that may be taken.
    NoMore,
}

/// The packets of one capture that may be taken at once, since none of another can come between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// Those captured at this time or later may not.
    pub(crate) before_ns: i64,
    pub(crate) capture: u32,
    /// The number of the packet taken last.
    pub(crate) number: u64,
}

/// A batch that is being filled, and what was gathered so far.
#[derive(Debug)]
pub(crate) struct PacketBatcher {
    batch: Packets,
    /// What the batch weighs since it was begun.
    rows: usize,
    bytes: usize,
    size: Size,
    selection: Selection,
    keeping: Keeping,
    /// Whether the selection leaves anything out for now.
    is_sifting: bool,
    passed_over: SkippedPackets,
    /// Packets, and those passed over, before the present capture.
    before: [u64; 2],
    pub(crate) counts: Counts,
    /// When the last packet of the batch, or of those before it, was captured.
    last_row_ns: Option<i64>,
}

/// What was gathered so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    pub(crate) snaplen_cut: u64,
    pub(crate) left_out: u64,
    /// Those, and others that a batch stands for without holding them.
    passed_over: u64,
}

impl Selection {
    /// What tells the packets that are left out.
    #[inline]
    fn sieve(&self) -> Option<&AddressPrefilter> {
        match self {
            Self::All => None,
            Self::Only(sieve) | Self::For(sieve, _) => Some(sieve),
        }
    }

    fn size(&self) -> Size {
        let (batches, held_rows) = match self {
            // Of packets passed over there may be as many as are read at once.
            Self::For(_, batches @ BatchLimit::InProcess) => (*batches, 16),
            _ => (BatchLimit::Contract, 1),
        };
        Size { rows: held_rows * BATCH_ROWS, bytes: batches.bytes(), held_rows }
    }
}

impl PacketBatcher {
    pub(crate) fn new(selection: Selection, keeping: Keeping) -> Self {
        // Of those that are sifted out few are left, and each would hold a whole buffer.
        let keeping = if matches!(selection, Selection::Only(_)) { Keeping::Copied } else { keeping };
        let mut filling = Self {
            batch: Packets::new(),
            rows: 0,
            bytes: 0,
            size: selection.size(),
            selection,
            keeping,
            is_sifting: false,
            passed_over: SkippedPackets::default(),
            before: [0; 2],
            counts: Counts::default(),
            last_row_ns: None,
        };
        filling.begin();
        filling
    }

    /// Takes packets off the front of `bytes`, as `first` finds them there, whose data lie in `buffer`: as long as they were
    /// captured before `before_ns` and the batch has room. Gives what is left, and how many it took.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most packets are only counted; one copy a format")]
    pub(crate) fn gather<'a>(
        &mut self,
        bytes: &'a [u8],
        stretch: &Stretch,
        buffer: &Arc<Vec<u8>>,
        first: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> (&'a [u8], u64) {
        let shared = Some(buffer).filter(|_| self.keeping == Keeping::Shared);
        let before = self.counts.packets;
        let mut rest = bytes;
        while !self.is_due() {
            let number = stretch.number + self.counts.packets - before;
            let end;
            (rest, end) = self.keep(rest, &Stretch { number, ..*stretch }, shared, first);
            match end {
                End::Full => {}
                End::Foreign => rest = self.pass_over(rest, stretch.before_ns, first),
                End::NoMore => break,
            }
        }
        (rest, self.counts.packets - before)
    }

    /// Keeps packets as [`gather`](Self::gather) takes them, as long as none is to be passed over.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what it counts stays in registers")]
    fn keep<'a>(
        &mut self,
        bytes: &'a [u8],
        stretch: &Stretch,
        shared: Option<&Arc<Vec<u8>>>,
        first: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])>,
    ) -> (&'a [u8], End) {
        self.settle();
        let Stretch { before_ns, capture, number } = *stretch;
        let (mut rest, mut last_ns, mut snaplen_cut) = (bytes, None, 0);
        let (mut rows, mut data_bytes) = (self.rows, self.bytes);
        let sieve = self.selection.sieve().filter(|_| self.is_sifting);
        let mut kept = self.batch.appender(capture, number, shared);
        let end = loop {
            if self.size.is_reached(rows, data_bytes) {
                break End::Full;
            }
            let Some((packet, behind)) = first(rest).filter(|(packet, _)| packet.time_ns < before_ns) else {
                break End::NoMore;
            };
            if sieve.is_some_and(|sieve| sieve.is_foreign(packet.link_type, packet.data)) {
                break End::Foreign;
            }
            let CapturedPacket { time_ns, link_type, original_length, data } = packet;
            (rest, last_ns) = (behind, Some(time_ns));
            rows += self.size.held_rows;
            data_bytes += data.len();
            snaplen_cut += u64::from(data.len() < original_length as usize);
            kept.push(time_ns, link_type, original_length, data);
        };
        self.counts.packets += kept.number() - number;
        (self.rows, self.bytes, self.last_row_ns) = (rows, data_bytes, last_ns.or(self.last_row_ns));
        self.counts.snaplen_cut += snaplen_cut;
        (rest, end)
    }

    /// Passes over packets as [`gather`](Self::gather) takes them, up to the first that is to be handed on.
    fn pass_over<'a>(
        &mut self,
        bytes: &'a [u8],
        before_ns: i64,
        first: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])> + Copy,
    ) -> &'a [u8] {
        let Some(sieve) = self.selection.sieve() else { return bytes };
        let is_told = matches!(self.selection, Selection::For(..));
        let mut rest = bytes;
        loop {
            let left = if is_told { rest.len().saturating_sub(self.least_room()) } else { 0 };
            let skimmed = skim(sieve, rest, left, before_ns, first);
            rest = skimmed.rest;
            self.counts.packets += skimmed.packets as u64;
            self.counts.snaplen_cut += skimmed.snaplen_cut as u64;
            self.passed_over.packets += skimmed.packets as u64;
            self.passed_over.bytes += skimmed.data_bytes as u64;
            if skimmed.packets > 0 {
                self.passed_over.last_ns = Some(skimmed.last_ns);
            }
            if is_told {
                self.rows += skimmed.packets;
                self.bytes += skimmed.data_bytes;
            }
            if left == 0 || rest.len() > left || (self.is_full() && !self.batch.is_empty()) {
                return rest;
            }
            if self.is_full() {
                // It holds nothing to be looked at: the next one begins.
                (self.rows, self.bytes) = (0, 0);
            }
        }
    }

    /// Bytes of a capture that the batch has room for at least. The last packet may be longer.
    fn least_room(&self) -> usize {
        let [rows, bytes] = [self.size.rows.saturating_sub(self.rows), self.size.bytes.saturating_sub(self.bytes)];
        bytes.min(rows * LEAST_OVERHEAD)
    }

    /// Takes a packet and copies its data.
    pub(crate) fn take_copy(&mut self, packet: Packet<'_>) {
        self.counts.packets += 1;
        self.counts.snaplen_cut += u64::from(packet.data.len() < packet.original_length as usize);
        let is_foreign = |sieve: &AddressPrefilter| sieve.is_foreign(packet.link_type, packet.data);
        if !self.is_sifting || !self.selection.sieve().is_some_and(is_foreign) {
            self.settle();
            self.last_row_ns = Some(packet.time_ns);
            self.rows += self.size.held_rows;
            self.bytes += packet.data.len();
            return self.batch.push(packet);
        }
        self.passed_over.packets += 1;
        self.passed_over.bytes += packet.data.len() as u64;
        self.passed_over.last_ns = Some(packet.time_ns);
        if matches!(self.selection, Selection::For(..)) {
            self.rows += 1;
            self.bytes += packet.data.len();
        }
    }

    /// Tells the batch what was passed over, if anything was.
    fn settle(&mut self) {
        if self.passed_over.packets == 0 {
            return;
        }
        let passed_over = std::mem::take(&mut self.passed_over);
        self.counts.passed_over += passed_over.packets;
        self.last_row_ns = passed_over.last_ns.or(self.last_row_ns);
        if matches!(self.selection, Selection::Only(_)) {
            self.counts.left_out += passed_over.packets;
        } else {
            self.batch.skip_packets(passed_over);
        }
    }

    /// Looks at what is passed over from here on.
    pub(crate) fn begin_capture(&mut self) {
        self.before = [self.counts.packets, self.counts.passed_over];
    }

    /// Whether most packets of the capture were passed over so far.
    pub(crate) fn passes_over_most(&self) -> bool {
        let [packets, passed_over] = self.before;
        self.counts.passed_over + self.passed_over.packets - passed_over > (self.counts.packets - packets) / 2
    }

    /// Whether nobody sees where a batch ends.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self.selection, Selection::For(_, BatchLimit::InProcess))
    }

    /// Goes on from what was gathered elsewhere, with the batch that was begun there. Its own is to be empty.
    pub(crate) fn go_on_from(&mut self, other: Self) {
        debug_assert!(self.batch.is_empty() && self.passed_over.packets == 0, "a batch is lost");
        let Self { batch, rows, bytes, is_sifting, passed_over, counts, last_row_ns, .. } = other;
        (self.batch, self.rows, self.bytes) = (batch, rows, bytes);
        (self.is_sifting, self.passed_over) = (is_sifting, passed_over);
        self.last_row_ns = last_row_ns.or(self.last_row_ns);
        self.counts.packets += counts.packets;
        self.counts.snaplen_cut += counts.snaplen_cut;
        self.counts.left_out += counts.left_out;
        self.counts.passed_over += counts.passed_over;
    }

    /// When the last packet was captured.
    pub(crate) fn last_ns(&self) -> Option<i64> {
        self.passed_over.last_ns.or(self.last_row_ns)
    }

    /// Whether the batch has reached its size.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.size.is_reached(self.rows, self.bytes)
    }

    /// Whether it has, and holds something to be looked at; one that is full of packets passed over is begun anew.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full && self.batch.is_empty() {
            self.begin();
            return false;
        }
        is_full
    }

    /// Takes the batch out, if it stands for anything.
    pub(crate) fn finish(&mut self) -> Option<Packets> {
        self.settle();
        self.begin();
        // The next one will be much like it.
        let next = Packets::with_capacity(self.batch.len());
        let batch = std::mem::replace(&mut self.batch, next);
        (!batch.is_empty() || batch.skipped_packets().packets > 0).then_some(batch)
    }

    /// Tells if nothing was let pass.
    pub(crate) fn tell_absence(&self, out: &mut dyn SourceEmit) -> Result<(), Closed> {
        let Counts { packets, left_out, .. } = self.counts;
        match &self.selection {
            Selection::Only(sieve) if packets > 0 && packets == left_out => {
                let detail = format!("none of the {packets} packets is from or to {}", sieve.networks());
                out.emit(notice(what::ABSENT, self.last_ns(), &detail).into())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self) {
        (self.rows, self.bytes) = (0, 0);
        self.is_sifting = match &self.selection {
            Selection::All => false,
            Selection::Only(sieve) | Selection::For(sieve, _) => sieve.is_active(),
        };
    }
}

#[cfg(test)]
mod tests;
