//! Gathers packets into batches, and passes over those that do not matter to later stages.

mod fast;

use std::sync::Arc;

use sizeleak_frame::{BATCH_ROWS, BatchLimit, Packet, Packets, SkippedPackets, what};
use sizeleak_packet::AddressPrefilter;
use sizeleak_platform::runtime::{Closed, Interrupt, SourceEmit};

use crate::error::notice;
use crate::merge::OpenCapture;

#[derive(Debug, Clone)]
pub(crate) enum Selection {
    All,
    /// Those that may matter to some addresses. Later stages learn nothing of the others.
    Only(AddressPrefilter),
    /// Those that the next stage would not drop at once. A batch says how many others it stands for.
    NotDropped(AddressPrefilter, BatchLimit),
}

impl Selection {
    #[inline]
    fn prefilter(&self) -> Option<&AddressPrefilter> {
        match self {
            Self::All => None,
            Self::Only(prefilter) | Self::NotDropped(prefilter, _) => Some(prefilter),
        }
    }

    fn batch_capacity(&self) -> BatchCapacity {
        let (batches, rows_per_packet) = match self {
            // A batch within the process may stand for all packets that are read at once.
            Self::NotDropped(_, batches @ BatchLimit::InProcess) => (*batches, 16),
            _ => (BatchLimit::Contract, 1),
        };
        BatchCapacity { rows: rows_per_packet * BATCH_ROWS, bytes: batches.bytes(), rows_per_packet }
    }
}

/// When a batch is full. A packet passed over counts as one row and by its bytes.
#[derive(Debug, Clone, Copy)]
struct BatchCapacity {
    rows: usize,
    bytes: usize,
    /// Rows that a packet in the batch counts as.
    rows_per_packet: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PacketCounts {
    pub(crate) packets: u64,
    pub(crate) snaplen_cut: u64,
    pub(crate) passed_over: u64,
}

#[derive(Debug)]
pub(crate) struct PacketBatcher {
    batch: Packets,
    /// What the batch counts as, against the limit.
    rows: usize,
    bytes: usize,
    capacity: BatchCapacity,
    selection: Selection,
    /// Whether the data of packets are copied into the batch, even if they could stay in the read buffer.
    copies_data: bool,
    is_filtering: bool,
    /// Packets passed over since the last one in the batch.
    passed_over: SkippedPackets,
    pub(crate) counts: PacketCounts,
    /// The time of the last packet in a batch, or of one passed over before it.
    last_row_ns: Option<i64>,
    /// The time of the first packet, and whether any was found to have another one.
    first_ns: Option<i64>,
    time_moves: bool,
}

/// The fewest packets whose equal times are taken to say nothing: a few may be of one moment.
const MIN_STANDING: u64 = 10;

impl PacketBatcher {
    pub(crate) fn new(selection: Selection) -> Self {
        let mut batcher = Self {
            batch: Packets::new(),
            rows: 0,
            bytes: 0,
            capacity: selection.batch_capacity(),
            // Such a selection leaves few packets, and each would hold a whole buffer.
            copies_data: matches!(selection, Selection::Only(_)),
            selection,
            is_filtering: false,
            passed_over: SkippedPackets::default(),
            counts: PacketCounts::default(),
            last_row_ns: None,
            first_ns: None,
            time_moves: false,
        };
        batcher.start_batch();
        batcher
    }

    /// A batcher whose batches are kept for long, and must not hold whole read buffers.
    pub(crate) fn copying_data(selection: Selection) -> Self {
        Self { copies_data: true, ..Self::new(selection) }
    }

    /// Adds a packet, or passes it over; returns whether it was added. Its data are not copied if they are part of
    /// `buffer`.
    #[inline]
    pub(crate) fn push(&mut self, packet: Packet<'_>, buffer: Option<&Arc<Vec<u8>>>) -> bool {
        self.counts.packets += 1;
        self.counts.snaplen_cut += u64::from(packet.data.len() < packet.original_length as usize);
        let prefilter = self.selection.prefilter().filter(|_| self.is_filtering);
        if prefilter.is_some_and(|prefilter| prefilter.rejects(packet.link_type, packet.data)) {
            let (bytes, last_ns) = (packet.data.len() as u64, Some(packet.time_ns));
            self.pass_over(SkippedPackets { packets: 1, bytes, last_ns });
            return false;
        }
        self.count_passed_over();
        self.last_row_ns = Some(packet.time_ns);
        self.rows += self.capacity.rows_per_packet;
        self.bytes += packet.data.len();
        match buffer {
            Some(buffer) => self.batch.push_shared(packet, buffer),
            None => self.batch.push(packet),
        }
        true
    }

    /// Takes the packets before `before_ns` that are in the buffer of `capture` already, sending full batches.
    pub(crate) fn take_buffered(
        &mut self,
        capture: &mut OpenCapture,
        before_ns: i64,
        interrupt: &Interrupt,
        mut send: impl FnMut(Packets) -> Result<(), Closed>,
    ) -> Result<(), Closed> {
        loop {
            if self.is_due() {
                self.finish().map_or(Ok(()), &mut send)?;
            }
            if !interrupt.is_set() {
                self.fill(capture, before_ns);
            }
            if interrupt.is_set() || !self.is_full() {
                return Ok(());
            }
        }
    }

    fn pass_over(&mut self, packets: SkippedPackets) {
        self.counts.passed_over += packets.packets;
        self.passed_over.packets += packets.packets;
        self.passed_over.bytes += packets.bytes;
        self.passed_over.last_ns = packets.last_ns.or(self.passed_over.last_ns);
        if self.stands_for_passed_over() {
            self.rows += packets.packets as usize;
            self.bytes += packets.bytes as usize;
        }
    }

    fn count_passed_over(&mut self) {
        let passed_over = std::mem::take(&mut self.passed_over);
        self.last_row_ns = passed_over.last_ns.or(self.last_row_ns);
        if self.stands_for_passed_over() {
            self.batch.skip_packets(passed_over);
        }
    }

    fn stands_for_passed_over(&self) -> bool {
        matches!(self.selection, Selection::NotDropped(..))
    }

    pub(crate) fn passes_over_most(&self) -> bool {
        self.counts.passed_over > self.counts.packets / 2
    }

    /// Packets that the selection excluded and that no batch stands for.
    pub(crate) fn left_out(&self) -> u64 {
        if self.stands_for_passed_over() { 0 } else { self.counts.passed_over }
    }

    /// Whether batches may end anywhere: they do not leave the process.
    pub(crate) fn may_cut_anywhere(&self) -> bool {
        matches!(self.selection, Selection::NotDropped(_, BatchLimit::InProcess))
    }

    /// Continues where another batcher of the same selection has stopped, with the batch that it has started; this
    /// one's must be empty.
    pub(crate) fn continue_from(&mut self, other: Self) {
        debug_assert!(self.batch.is_empty() && self.passed_over.packets == 0, "a batch is lost");
        let (counts, last_row_ns, copies_data) = (self.counts, self.last_row_ns, self.copies_data);
        let first_ns = self.first_ns.or(other.first_ns);
        let time_moves = self.time_moves || other.time_moves || other.first_ns.is_some_and(|ns| Some(ns) != first_ns);
        let last_row_ns = other.last_row_ns.or(last_row_ns);
        *self = Self { copies_data, last_row_ns, first_ns, time_moves, ..other };
        self.counts.packets += counts.packets;
        self.counts.snaplen_cut += counts.snaplen_cut;
        self.counts.passed_over += counts.passed_over;
    }

    pub(crate) fn last_ns(&self) -> Option<i64> {
        self.passed_over.last_ns.or(self.last_row_ns)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.rows >= self.capacity.rows || self.bytes >= self.capacity.bytes
    }

    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full && self.batch.is_empty() {
            self.start_batch();
            return false;
        }
        is_full
    }

    pub(crate) fn describe_standing_time(&self) -> Option<String> {
        let packets = self.counts.packets;
        (packets >= MIN_STANDING && !self.time_moves).then(|| {
            format!(
                "all {packets} packets have the same time, which says nothing: they are taken in their order. Records are \
                 sized, but commands are told apart by times: `--order untimed` with the segmenter's algorithm `gap` \
                 dates the packets evenly"
            )
        })
    }

    pub(crate) fn finish(&mut self) -> Option<Packets> {
        self.count_passed_over();
        if !self.time_moves {
            let first_ns = self.batch.iter().next().map(|packet| packet.time_ns).or(self.last_row_ns);
            self.first_ns = self.first_ns.or(first_ns);
            self.time_moves = [first_ns, self.last_row_ns].iter().any(|ns| *ns != self.first_ns);
        }
        self.start_batch();
        let next = Packets::with_capacity(self.batch.len());
        let batch = std::mem::replace(&mut self.batch, next);
        (!batch.is_empty() || batch.skipped_packets().packets > 0).then_some(batch)
    }

    pub(crate) fn send(&mut self, out: &mut dyn SourceEmit) -> Result<(), Closed> {
        self.finish().map_or(Ok(()), |batch| out.emit(batch.into()))
    }

    pub(crate) fn report_absence(&self, out: &mut dyn SourceEmit) -> Result<(), Closed> {
        let PacketCounts { packets, passed_over, .. } = self.counts;
        match &self.selection {
            Selection::Only(prefilter) if packets > 0 && packets == passed_over => {
                let detail = format!("none of the {packets} packets is from or to {}", prefilter.addresses());
                out.emit(notice(what::ABSENT, self.last_ns(), &detail).into())
            }
            _ => Ok(()),
        }
    }

    fn start_batch(&mut self) {
        (self.rows, self.bytes) = (0, 0);
        self.is_filtering = self.selection.prefilter().is_some_and(AddressPrefilter::is_active);
    }
}
