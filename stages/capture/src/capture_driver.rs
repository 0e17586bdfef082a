//! Drives the reading: takes packets in order of time, starts captures, and sends batches.

pub(crate) mod fast;

use std::ops::ControlFlow;

use sizeleak_frame::{Packet, Packets, what};
use sizeleak_platform::runtime::{Interrupt, SourceEmit, StageError};

use crate::dating::Dating;
use crate::error::{CaptureError, Failures, notice};
use crate::merge::{Merge, Next};
use crate::packet_batcher::{PacketBatcher, Selection};
use crate::prefetch::{PrefetchEnd, PrefetchedCapture, Prefetcher};

pub(crate) struct CaptureDriver<'a> {
    pub(crate) merge: Merge,
    pub(crate) batcher: PacketBatcher,
    pub(crate) prefetcher: Prefetcher,
    pub(crate) failures: &'a mut Failures,
    /// Dates packets whose captures are read in the order given.
    pub(crate) dating: Option<Dating>,
    out: &'a mut dyn SourceEmit,
    interrupt: &'a Interrupt,
}

impl<'a> CaptureDriver<'a> {
    pub(crate) fn new(
        merge: Merge,
        selection: &Selection,
        failures: &'a mut Failures,
        out: &'a mut dyn SourceEmit,
        interrupt: &'a Interrupt,
    ) -> Self {
        let batcher = PacketBatcher::new(selection.clone());
        let prefetcher = Prefetcher::new(selection.clone(), interrupt.clone());
        Self { merge, batcher, prefetcher, failures, dating: None, out, interrupt }
    }

    pub(crate) fn run(&mut self) -> Result<(), StageError> {
        while self.step()?.is_continue() {}
        self.finish()
    }

    /// Takes the next packet and those after it that are already in its buffer. Breaks at the end, and when the user
    /// stops.
    fn step(&mut self) -> Result<ControlFlow<()>, StageError> {
        if self.interrupt.is_set() {
            return Ok(ControlFlow::Break(()));
        }
        if self.merge.may_wait() {
            self.send()?;
            self.out.flush()?;
        }
        let error = match self.merge.next_packet() {
            Ok(Next::Packet(packet)) => {
                let dated_ns = self.dating.as_mut().map(|dating| dating.date(packet.capture, packet.time_ns));
                self.batcher.push(Packet { time_ns: dated_ns.unwrap_or(packet.time_ns), ..packet });
                None
            }
            Ok(Next::Start) => self.start_next()?,
            Ok(Next::End) => return Ok(ControlFlow::Break(())),
            Err(error) => Some(error),
        };
        if error.is_some() || self.batcher.is_due() {
            self.send()?;
        }
        if let Some(error) = error {
            self.failures.report(error, self.batcher.last_ns(), self.out)?;
        }
        if self.dating.is_none()
            && let Some((capture, before_ns)) = self.merge.current()
        {
            let send = |batch: Packets| self.out.emit(batch.into());
            self.batcher.take_buffered(capture, before_ns, self.interrupt, send)?;
        }
        self.prefetcher.discard_started(&self.merge.waiting);
        Ok(ControlFlow::Continue(()))
    }

    fn start_next(&mut self) -> Result<Option<CaptureError>, StageError> {
        if self.dating.is_some() {
            return Ok(self.merge.start_next().err());
        }
        // A batch starts with the capture, whichever thread reads it.
        self.send()?;
        match self.prefetcher.take_next(&self.merge.waiting, &self.batcher) {
            Some(prefetched) => self.emit_prefetched(prefetched),
            None => Ok(self.merge.start_next().err()),
        }
    }

    fn emit_prefetched(&mut self, prefetched: PrefetchedCapture) -> Result<Option<CaptureError>, StageError> {
        self.merge.waiting.pop_front();
        while let Ok(batches) = prefetched.parcels.recv() {
            batches.into_iter().try_for_each(|batch| self.out.emit(batch.into()))?;
        }
        let end = prefetched.end().ok_or_else(|| StageError::failed("a thread that reads a capture has panicked"))?;
        let PrefetchEnd { batcher, capture, error } = end;
        self.batcher.continue_from(batcher);
        if let Some(capture) = capture {
            self.merge.add(capture);
        }
        Ok(error)
    }

    fn finish(&mut self) -> Result<(), StageError> {
        self.send()?;
        if let Some(detail) = self.dating.as_ref().and_then(|dating| dating.describe(self.merge.read)) {
            self.out.emit(notice(what::CLOCK, self.batcher.last_ns(), &detail).into())?;
        }
        Ok(self.batcher.report_absence(self.out)?)
    }

    fn send(&mut self) -> Result<(), StageError> {
        Ok(self.batcher.send(self.out)?)
    }
}
