//! Drives the reading: takes packets in order of time, starts captures, and sends batches. Where captures are read in the
//! order given and their times go back, it dates their packets: only differences between times that do not are used.

pub(crate) mod fast;

use std::ops::ControlFlow;

use sizeleak_frame::{Packet, Packets, what};
use sizeleak_platform::runtime::{Interrupt, SourceEmit, StageError};

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
                self.batcher.push(Packet { time_ns: dated_ns.unwrap_or(packet.time_ns), ..packet }, None);
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

/// How far times may go back within a capture, in nanoseconds: the buffers of several interfaces are written with
/// delays of about a second.
const LAG_NS: i64 = 2_000_000_000;

/// How long after the end of one capture the next one begins if its own times are earlier, in nanoseconds: no message
/// of one waits for an answer in the other, and equal distances are longer than those of polls.
const DISTANCE_NS: i64 = 15 * 60_000_000_000;

/// Captures that begin before this time, one year after the epoch, in nanoseconds, have lost their times.
pub(crate) const LOST_BEFORE_NS: i64 = 365 * 86_400 * 1_000_000_000;

/// How far packets are apart where no time is used, in nanoseconds: more than an answer or the next part of a message
/// takes, and less than the wait for a reply.
const SPACING_NS: i64 = 200_000_000;

#[derive(Debug, Default)]
pub(crate) struct Dating {
    /// Whether no time is used but that of the first packet.
    is_untimed: bool,
    capture: Option<u32>,
    /// What is added to the times of the present capture.
    shift_ns: i64,
    last_ns: Option<i64>,
    pub(crate) moved_captures: u64,
    pub(crate) steps_back: u64,
    /// Packets, and those with the time of the one before.
    packets: u64,
    standing: u64,
    before_ns: Option<i64>,
}

impl Dating {
    pub(crate) fn untimed() -> Self {
        Self { is_untimed: true, ..Self::default() }
    }

    fn date(&mut self, capture: u32, time_ns: i64) -> i64 {
        let is_first = self.capture.replace(capture) != Some(capture);
        self.packets += 1;
        self.standing += u64::from(self.before_ns.replace(time_ns) == Some(time_ns));
        if self.is_untimed {
            let distance_ns = if is_first { DISTANCE_NS } else { SPACING_NS };
            let dated_ns = self.last_ns.map_or(time_ns, |last_ns| last_ns.saturating_add(distance_ns));
            self.last_ns = Some(dated_ns);
            return dated_ns;
        }
        if is_first {
            self.shift_ns = 0;
        }
        let last_ns = *self.last_ns.get_or_insert(time_ns);
        let dated_ns = time_ns.saturating_add(self.shift_ns);
        let follows_ns = if is_first && dated_ns < last_ns {
            self.moved_captures += 1;
            Some(last_ns.saturating_add(DISTANCE_NS))
        } else if dated_ns < last_ns.saturating_sub(LAG_NS) {
            self.steps_back += 1;
            Some(last_ns)
        } else {
            None
        };
        if let Some(follows_ns) = follows_ns {
            self.shift_ns = follows_ns.saturating_sub(time_ns);
        }
        let dated_ns = follows_ns.unwrap_or(dated_ns);
        self.last_ns = Some(last_ns.max(dated_ns));
        dated_ns
    }

    fn describe(&self, captures: u64) -> Option<String> {
        if self.is_untimed {
            return Some(format!(
                "no time of the {} packets is used: they are dated {} ms apart, in the order given",
                self.packets,
                SPACING_NS / 1_000_000
            ));
        }
        let stands_still = self.standing > self.packets / 2;
        if self.moved_captures == 0 && self.steps_back == 0 && !stands_still {
            return None;
        }
        let standing = if stands_still {
            format!(
                "; {} of {} packets have the time of the one before: `--order untimed`, with the segmenter's algorithm `gap`, uses no time at all",
                self.standing, self.packets
            )
        } else {
            String::new()
        };
        let steps = match self.steps_back {
            0 => String::new(),
            steps => format!("; {steps} steps back within a capture are passed over"),
        };
        Some(format!(
            "the captures are read in the order given: the times of {} of {captures}, which go back, are not used, only \
             the distances between their packets: each of these begins {} s after the end of the one before{steps}{standing}",
            self.moved_captures,
            DISTANCE_NS / 1_000_000_000,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn dated(packets: &[(u32, i64)]) -> (Vec<i64>, Dating) {
        let mut dating = Dating::default();
        let times = packets.iter().map(|(capture, time)| dating.date(*capture, time * SECOND) / SECOND).collect();
        (times, dating)
    }

    #[test]
    fn captures_that_all_begin_at_zero_follow_each_other() {
        let (times, dating) = dated(&[(0, 0), (0, 3), (1, 0), (1, 4), (2, 0), (2, 1)]);
        assert_eq!(times, [0, 3, 903, 907, 1807, 1808]);
        assert_eq!((dating.moved_captures, dating.steps_back), (2, 0));
        assert!(dating.describe(3).unwrap().contains("2 of 3"));
    }

    #[test]
    fn captures_in_order_of_time_keep_their_times() {
        let (times, dating) = dated(&[(0, 100), (0, 103), (0, 102), (1, 103), (1, 900)]);
        assert_eq!((times, dating.describe(2)), (vec![100, 103, 102, 103, 900], None));
    }

    #[test]
    fn step_back_within_a_capture_is_passed_over() {
        let (times, dating) = dated(&[(0, 100), (0, 105), (0, 3), (0, 4), (0, 200), (0, -9), (1, 8)]);
        assert_eq!(times, [100, 105, 105, 106, 302, 302, 1202]);
        assert_eq!((dating.moved_captures, dating.steps_back), (1, 2));
    }

    #[test]
    fn times_that_stand_still_are_reported() {
        assert!(dated(&[(0, 7), (0, 7), (0, 7)]).1.describe(1).unwrap().contains("--order untimed"));
        assert_eq!(dated(&[(0, 7), (0, 7), (0, 8), (0, 9)]).1.describe(1), None);
    }

    #[test]
    fn untimed_packets_are_evenly_apart() {
        let mut dating = Dating::untimed();
        let times =
            [(0, 5), (0, 5), (0, 1), (1, 0)].map(|(capture, time)| dating.date(capture, time * SECOND) / 1_000_000);
        assert_eq!(times, [5000, 5200, 5400, 905_400]);
    }

    #[test]
    fn extreme_times_are_dated() {
        for mut dating in [Dating::default(), Dating::untimed()] {
            for (capture, time_ns) in [(0, i64::MAX), (0, i64::MIN), (1, i64::MIN), (2, i64::MAX), (3, 0)] {
                dating.date(capture, time_ns);
            }
        }
    }
}
