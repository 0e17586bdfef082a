//! How the packets of captures are emitted: who reads, and when a batch goes out.

use sizeleak_runtime::{Interrupt, SourceEmit, StageError, has_several_processors};

use crate::alternating_readers::{self, PIECE_BYTES};
use crate::capture::{Failures, send};
use crate::error::CaptureError;
use crate::merge::{Head, Merge, Next};
use crate::packet_batcher::{Keeping, PacketBatcher, Selection};
use crate::prefetched_capture::{NextCaptures, Parcel, PrefetchedCapture, Stop};

/// Captures on their way out.
pub(crate) struct CaptureDriver<'a> {
    pub(crate) merge: Merge,
    pub(crate) filling: PacketBatcher,
    pub(crate) damaged_files: u64,
    failures: &'a mut Failures,
    out: &'a mut dyn SourceEmit,
    interrupt: &'a Interrupt,
    /// How much of a capture a thread reads in its turn, where there is a processor for a second one.
    pub(crate) piece_bytes: Option<usize>,
    /// How many such pieces held something that followed.
    pub(crate) pieces: u64,
    head: Head,
    pub(crate) next_captures: NextCaptures,
}

/// Whether there is more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Yes,
    No,
}

impl<'a> CaptureDriver<'a> {
    /// Of what has been looked at and not begun.
    pub(crate) fn new(
        merge: Merge,
        selection: &'a Selection,
        failures: &'a mut Failures,
        out: &'a mut dyn SourceEmit,
        interrupt: &'a Interrupt,
    ) -> Self {
        let filling = PacketBatcher::new(selection.clone(), Keeping::Shared);
        let piece_bytes = has_several_processors().then_some(PIECE_BYTES);
        let next_captures = NextCaptures::new(selection.clone(), interrupt.clone());
        let (damaged_files, pieces, head) = (0, 0, Head::default());
        Self { merge, filling, damaged_files, failures, out, interrupt, piece_bytes, pieces, head, next_captures }
    }

    /// Emits all packets.
    pub(crate) fn run(&mut self) -> Result<(), StageError> {
        while !self.interrupt.is_set() && self.go_on()? == More::Yes {
            // Where most packets are handed on to other threads, these have enough to do.
            let is_worth_it = self.filling.passes_over_most() && self.next_captures.are_worth_less();
            if let Some(piece_bytes) = self.piece_bytes.filter(|_| is_worth_it)
                && let Some((file, reached)) = alternating_readers::are_worth_it(&mut self.merge, piece_bytes)
            {
                self.next_captures.clear();
                alternating_readers::read(self, &file, reached, piece_bytes)?;
            }
        }
        self.send()?;
        self.filling.tell_absence(self.out)?;
        Ok(())
    }

    /// Takes the next packet, and those behind it that lie in memory already.
    pub(crate) fn go_on(&mut self) -> Result<More, StageError> {
        if self.merge.must_wait() {
            self.send()?;
            self.out.flush()?;
        }
        let next = self.merge.next_packet(&mut self.head);
        self.next_captures.leave_begun(&self.merge);
        let error = match next {
            Ok(Next::Packet) => {
                self.filling.take_copy(self.head.packet());
                None
            }
            Ok(Next::Alone) => self.begin()?,
            Ok(Next::End) => return Ok(More::No),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            self.send()?;
            self.damaged_files += 1;
            self.failures.tell(error, self.filling.last_ns(), self.out)?;
        }
        self.gather()?;
        Ok(More::Yes)
    }

    /// Takes what lies in memory already, without the detour over its head.
    fn gather(&mut self) -> Result<(), StageError> {
        loop {
            if self.filling.is_due() {
                self.send()?;
            }
            if self.interrupt.is_set() {
                return Ok(());
            }
            self.merge.gather(&mut self.filling);
            if !self.filling.is_full() {
                return Ok(());
            }
        }
    }

    /// Begins a capture while no other one is open; gives its damage, if it has any.
    fn begin(&mut self) -> Result<Option<CaptureError>, StageError> {
        // With it a batch begins, whoever reads it.
        self.send()?;
        let passes_over_most = self.filling.passes_over_most();
        self.filling.begin_capture();
        match self.next_captures.take_next(&self.merge, passes_over_most) {
            Some(read) => self.follow(&read),
            None => Ok(self.merge.begin_next().err()),
        }
    }

    /// Hands on what a thread reads of the next capture; gives the capture's damage, if it has any.
    fn follow(&mut self, beside: &PrefetchedCapture) -> Result<Option<CaptureError>, StageError> {
        self.merge.leave_next();
        loop {
            match beside.next_parcel() {
                Some(Parcel::Batches(batches)) => {
                    batches.into_iter().try_for_each(|batch| self.out.emit(batch.into()))?;
                }
                Some(Parcel::Room) => {}
                Some(Parcel::End(end)) => {
                    self.filling.go_on_from(end.gathered);
                    let (bytes, skipped, error) = match end.stop {
                        Stop::Read { bytes, skipped } => (bytes, skipped, None),
                        Stop::Damaged { error, bytes, skipped } => (bytes, skipped, Some(error)),
                        Stop::Overlap(head, place) => {
                            self.merge.take_over(head, place);
                            (0, 0, None)
                        }
                    };
                    self.merge.bytes += bytes;
                    self.merge.skipped += skipped;
                    return Ok(error);
                }
                None => return Err(StageError::failed("the thread that reads the next capture is gone")),
            }
        }
    }

    /// Whether the user wants to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Hands on what has gathered, if nobody sees where a batch ends.
    pub(crate) fn send_unseen(&mut self) -> Result<(), StageError> {
        if self.filling.is_unseen() { self.send() } else { Ok(()) }
    }

    /// Hands on what has gathered.
    fn send(&mut self) -> Result<(), StageError> {
        Ok(send(&mut self.filling, self.out)?)
    }
}
