//! Segments whose time the rest of the traffic does not confirm, and steps of all times.

use sizeleak_frame::{OwnedSegment, Segment, what};
use sizeleak_platform::runtime::{ClockEvent, Closed, Emit, describe_odd_time};

use super::RecordSizer;

impl RecordSizer {
    #[cold]
    pub(super) fn segment_of_odd_time(&mut self, segment: &Segment<'_>, out: &mut dyn Emit) -> Result<(), Closed> {
        self.clock.add(segment.flow, segment.time_ns, OwnedSegment::of(segment));
        self.clock_events(out)
    }

    /// Handles what the clock found out, and the segments that it held until then.
    pub(super) fn clock_events(&mut self, out: &mut dyn Emit) -> Result<(), Closed> {
        while let Some(event) = self.clock.next_event() {
            match event {
                ClockEvent::Item { item, ahead_ns } => {
                    let segment = item.segment();
                    let time_ns = segment.time_ns.saturating_sub(ahead_ns);
                    self.segment(&Segment { time_ns, ..segment }, out)?;
                }
                ClockEvent::Odd { flow, time_ns, ahead_ns } => {
                    self.reporter.counters.odd_times += 1;
                    self.reporter.notice(flow, time_ns, (what::CLOCK, None, describe_odd_time(ahead_ns)), out)?;
                }
                ClockEvent::Step { from_ns, to_ns, .. } if to_ns < from_ns => self.go_back(to_ns, out)?,
                // A silence.
                ClockEvent::Step { .. } => {}
            }
        }
        Ok(())
    }

    /// Ends all that waits for a time that will not come soon, because all times have gone back.
    fn go_back(&mut self, to_ns: i64, out: &mut dyn Emit) -> Result<(), Closed> {
        self.reporter.counters.clock_steps += 1;
        self.now_ns = i64::MAX;
        self.expire(out)?;
        self.now_ns = to_ns;
        self.connections.restart_time().for_each(|connection| connection.go_back(to_ns));
        self.syns.restart_time().for_each(drop);
        self.datagram_flows.restart_time().for_each(drop);
        Ok(())
    }
}
