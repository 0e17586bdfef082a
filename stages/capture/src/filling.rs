//! The batch that packets are gathered in.

use std::sync::Arc;

use sizeleak_address::Sieve;
use sizeleak_frame::{BATCH_BYTES, BATCH_ROWS, Packet, Packets, PassedOver, what};
use sizeleak_stage::{Closed, SourceEmit};

use crate::capture::notice;

/// Which packets are handed on.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    /// All.
    All,
    /// Those that may matter to these addresses. Of the others nothing is told further down.
    Only(Sieve),
    /// Those that the stage behind this one does not drop at once; the batch stands for the others too.
    For(Sieve),
}

/// Where the bytes of packets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// In the buffer they were read into.
    Shared,
    /// In the batch: it is kept for longer, and must not hold a whole buffer.
    Copied,
}

/// A batch that is being filled, and what was gathered so far.
#[derive(Debug)]
pub(crate) struct Filling {
    batch: Packets,
    /// What the batch stands for since it was begun: packets, and bytes of data in them.
    rows: usize,
    bytes: usize,
    selection: Selection,
    keeping: Keeping,
    /// Whether the selection leaves anything out for now.
    is_sifting: bool,
    passed_over: PassedOver,
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
}

impl Filling {
    pub(crate) fn new(selection: Selection, keeping: Keeping) -> Self {
        // Of those that are sifted out few are left, and each would hold a whole buffer.
        let keeping = if matches!(selection, Selection::Only(_)) { Keeping::Copied } else { keeping };
        let mut filling = Self {
            batch: Packets::new(),
            rows: 0,
            bytes: 0,
            selection,
            keeping,
            is_sifting: false,
            passed_over: PassedOver::default(),
            counts: Counts::default(),
            last_row_ns: None,
        };
        filling.begin();
        filling
    }

    /// Takes a packet, without copying it if its data lie in `buffer`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most packets are only counted")]
    pub(crate) fn take(&mut self, packet: Packet<'_>, buffer: &Arc<Vec<u8>>) {
        if !self.leaves_out(&packet) {
            self.add(packet, Some(buffer).filter(|_| self.keeping == Keeping::Shared));
        }
    }

    /// Takes a packet and copies its data.
    pub(crate) fn take_copy(&mut self, packet: Packet<'_>) {
        if !self.leaves_out(&packet) {
            self.add(packet, None);
        }
    }

    /// Counts a packet; whether that is all there is to do.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "most packets are only counted")]
    fn leaves_out(&mut self, packet: &Packet<'_>) -> bool {
        self.counts.packets += 1;
        self.counts.snaplen_cut += u64::from(packet.data.len() < packet.original_length as usize);
        self.rows += 1;
        self.bytes += packet.data.len();
        let (Selection::For(sieve) | Selection::Only(sieve)) = &self.selection else { return false };
        if !self.is_sifting || !sieve.is_foreign(packet.link_type, packet.data) {
            return false;
        }
        self.passed_over.packets += 1;
        self.passed_over.bytes += packet.data.len() as u64;
        self.passed_over.last_ns = Some(packet.time_ns);
        if matches!(self.selection, Selection::Only(_)) {
            self.rows -= 1;
            self.bytes -= packet.data.len();
        }
        true
    }

    #[inline]
    fn add(&mut self, packet: Packet<'_>, buffer: Option<&Arc<Vec<u8>>>) {
        if self.passed_over.packets > 0 {
            self.settle();
        }
        self.last_row_ns = Some(packet.time_ns);
        match buffer {
            Some(buffer) => self.batch.push_shared(packet, buffer),
            None => self.batch.push(packet),
        }
    }

    /// Tells the batch what was passed over.
    fn settle(&mut self) {
        let passed_over = std::mem::take(&mut self.passed_over);
        self.last_row_ns = passed_over.last_ns.or(self.last_row_ns);
        if matches!(self.selection, Selection::Only(_)) {
            self.counts.left_out += passed_over.packets;
        } else {
            self.batch.pass_over(passed_over);
        }
    }

    /// Adds what was gathered elsewhere.
    pub(crate) fn add_counts(&mut self, counts: &Counts, last_ns: Option<i64>) {
        self.counts.packets += counts.packets;
        self.counts.snaplen_cut += counts.snaplen_cut;
        self.counts.left_out += counts.left_out;
        self.last_row_ns = last_ns.or(self.last_row_ns);
    }

    /// When the last packet was captured.
    pub(crate) fn last_ns(&self) -> Option<i64> {
        self.passed_over.last_ns.or(self.last_row_ns)
    }

    /// Whether the batch has reached the contract's size.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Whether it has, and holds something to be looked at; one that is full of packets passed over is begun anew.
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
        (!batch.is_empty() || batch.passed_over().packets > 0).then_some(batch)
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
            Selection::Only(sieve) | Selection::For(sieve) => sieve.is_active(),
        };
    }
}
