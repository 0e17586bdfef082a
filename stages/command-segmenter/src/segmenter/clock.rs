//! Records whose time the rest of the traffic does not confirm, and steps of all times.

use sizeleak_frame::{Notice, what};
use sizeleak_platform::runtime::{ClockEvent, Emit, Stage, StageError, describe_odd_time};

use super::CommandSegmenter;

/// The most notices about clocks; more are only counted.
const MAX_NOTICES: u64 = 64;

impl CommandSegmenter {
    pub(super) fn clock_events(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        while let Some(event) = self.clock.next_event() {
            match event {
                ClockEvent::Item { mut item, ahead_ns } => {
                    item.time_ns = item.time_ns.saturating_sub(ahead_ns);
                    item.start_ns = item.start_ns.saturating_sub(ahead_ns);
                    self.process_record(&item, out)?;
                }
                ClockEvent::Odd { flow, time_ns, ahead_ns } => {
                    self.counts.odd_times += 1;
                    self.notice(time_ns, Some(flow), describe_odd_time(ahead_ns), out)?;
                }
                ClockEvent::Step { flow, from_ns, to_ns } => self.step(flow, [from_ns, to_ns], out)?,
            }
        }
        Ok(())
    }

    /// Goes on at another time. A step forward is mostly a silence; only one that is unusual is reported, and only
    /// where a flow goes on behind it: else this may be another capture.
    fn step(&mut self, flow: u64, [from_ns, to_ns]: [i64; 2], out: &mut dyn Emit) -> Result<(), StageError> {
        if to_ns < from_ns {
            self.counts.clock_steps += 1;
            self.complete_all(out)?;
            self.algorithm.restart_time();
            if let Some(reports) = &mut self.reports {
                reports.restart_time();
            }
            self.now_ns = i64::MIN;
            let detail = format!(
                "the time of all traffic went back by {}: the commands before that end there",
                seconds(from_ns.saturating_sub(to_ns))
            );
            return self.notice(to_ns, None, detail, out);
        }
        let silence_ns = to_ns.saturating_sub(from_ns);
        let Some(longest_ns) = self.silences.exceeded_by(silence_ns).filter(|_| self.algorithm.knows(flow)) else {
            return Ok(());
        };
        self.counts.clock_steps += 1;
        let detail = format!(
            "nothing was captured for {}, but never for more than {} before: the capture paused, or its clock was set",
            seconds(silence_ns),
            seconds(longest_ns)
        );
        self.notice(to_ns, None, detail, out)
    }

    fn notice(&self, time_ns: i64, flow: Option<u64>, detail: String, out: &mut dyn Emit) -> Result<(), StageError> {
        if self.counts.odd_times + self.counts.clock_steps > MAX_NOTICES {
            return Ok(());
        }
        let notice = Notice { time_ns: Some(time_ns), flow, ..Notice::new(Self::NAME, what::CLOCK, detail) };
        Ok(out.emit(notice.into())?)
    }
}

fn seconds(ns: i64) -> String {
    format!("{:.3} s", ns as f64 / 1e9)
}
