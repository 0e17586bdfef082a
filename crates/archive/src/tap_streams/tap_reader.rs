//! Reads the stream of one tap, with its times as the clock of all has them, and finds its position in time.
//!
//! The taps are read by these positions. A single time that is odd moves none: a packet stamped an hour late would make a
//! tap wait for all others.

use std::collections::VecDeque;
use std::io::Read;

use sizeleak_frame::{Frame, FrameReader, Hello, OwnedSegment, ReadError, Segment, Summary};

use crate::tap_streams::tap_clock::TapClock;

/// So many segments are read ahead, to see whether a time is odd.
const AHEAD: usize = 64;

/// Times that go on by at most this much, in nanoseconds, or back, are not odd.
const STEP_NS: i64 = 1_000_000_000;

/// What a tap's stream holds, besides its ends.
#[derive(Debug)]
pub(crate) enum TapItem {
    Segment(OwnedSegment),
    Other(Frame),
}

/// The stream of a tap.
pub(crate) struct TapReader<R> {
    frames: FrameReader<R>,
    clock: TapClock,
    ahead: VecDeque<TapItem>,
    segments_ahead: usize,
    position_ns: i64,
    is_ended: bool,
    pub(crate) hello: Option<Hello>,
    pub(crate) summary: Option<Summary>,
}

impl<R: Read> TapReader<R> {
    pub(crate) fn new(input: R, clock: TapClock) -> Self {
        Self {
            frames: FrameReader::new(input),
            clock,
            ahead: VecDeque::new(),
            segments_ahead: 0,
            position_ns: i64::MIN,
            is_ended: false,
            hello: None,
            summary: None,
        }
    }

    /// Reads ahead, and moves the position to that of the next item. `None` at the end of the stream.
    pub(crate) fn position(&mut self) -> Result<Option<i64>, ReadError> {
        while !self.is_ended && self.segments_ahead < AHEAD {
            match self.frames.next_frame()? {
                Some(frame) => self.hold(frame),
                None => self.is_ended = true,
            }
        }
        self.move_position();
        Ok((!self.ahead.is_empty()).then_some(self.position_ns))
    }

    /// The next item, once it has a position.
    pub(crate) fn next_item(&mut self) -> Option<TapItem> {
        let item = self.ahead.pop_front()?;
        self.segments_ahead -= usize::from(matches!(item, TapItem::Segment(_)));
        Some(item)
    }

    fn hold(&mut self, frame: Frame) {
        match frame {
            Frame::Hello(hello) => self.hello = Some(*hello),
            Frame::Summary(summary) => self.summary = Some(summary),
            Frame::Segments(segments) => {
                for segment in segments.iter() {
                    let time_ns = self.clock.corrected(segment.time_ns);
                    self.ahead.push_back(TapItem::Segment(OwnedSegment::of(&Segment { time_ns, ..segment })));
                    self.segments_ahead += 1;
                }
            }
            Frame::Notice(mut notice) => {
                notice.time_ns = notice.time_ns.map(|time_ns| self.clock.corrected(time_ns));
                self.ahead.push_back(TapItem::Other(Frame::Notice(notice)));
            }
            other => self.ahead.push_back(TapItem::Other(other)),
        }
    }

    /// Times of the segments ahead, the next one first.
    fn times(&self) -> impl Iterator<Item = i64> {
        let segments = self.ahead.iter().filter_map(|item| match item {
            TapItem::Segment(segment) => Some(segment.time_ns()),
            TapItem::Other(_) => None,
        });
        segments.take(AHEAD)
    }

    fn move_position(&mut self) {
        let position = self.position_ns;
        let Some(next) = self.times().next() else { return };
        if next > position.saturating_add(STEP_NS) && self.is_ahead_of_most(next) {
            self.position_ns = self.times().filter(|time_ns| *time_ns >= position).min().unwrap_or(next);
        } else if next >= position {
            self.position_ns = next;
        } else if self.times().all(|time_ns| time_ns < position.saturating_sub(STEP_NS)) {
            // The clock has gone back.
            self.position_ns = next;
        }
    }

    /// Whether most of the segments that follow are from before this time.
    fn is_ahead_of_most(&self, time_ns: i64) -> bool {
        let before = self.times().filter(|other_ns| *other_ns < time_ns.saturating_sub(STEP_NS)).count();
        2 * before >= self.times().count()
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Direction, FrameWriter, SCHEMA, Segments};

    use super::*;

    /// The positions at which segments of these times, in seconds, are read.
    fn positions(times: &[i64]) -> Vec<i64> {
        let mut segments = Segments::new();
        for time_s in times {
            let (time_ns, direction, flags) = (time_s * STEP_NS, Direction::ToGateway, Segment::ACK);
            let (sequence, length, payload) = (0, 0, &[][..]);
            segments.push(Segment {
                time_ns,
                flow: 1,
                direction,
                sequence,
                flags,
                length,
                payload,
                acknowledgement: None,
            });
        }
        let (stage, version) = ("flow-filter".to_owned(), String::new());
        let hello = Hello { schema: SCHEMA, stage, version, upstream: Vec::new() };
        let mut writer = FrameWriter::new(Vec::new());
        writer.write_all(&[hello.into(), segments.into(), Summary::default().into()]).unwrap();
        let stream = writer.into_output().unwrap();
        let mut reader = TapReader::new(&*stream, TapClock::as_it_is());
        let mut positions = Vec::new();
        while let Some(position_ns) = reader.position().unwrap() {
            positions.push(position_ns / STEP_NS);
            assert!(reader.next_item().is_some());
        }
        assert!(reader.hello.is_some() && reader.summary.is_some());
        positions
    }

    #[test]
    fn position_follows_times_and_pauses_and_never_waits_for_an_odd_one() {
        assert_eq!(positions(&[10, 11, 500, 501, 502]), [10, 11, 500, 501, 502]);
        assert_eq!(positions(&[10, 3611, 11, 12, 20]), [10, 11, 11, 12, 20]);
        assert_eq!(positions(&[100, 3, 101, 102, 110]), [100, 100, 101, 102, 110]);
    }

    #[test]
    fn position_goes_back_with_the_clock() {
        let there = 1000..1005;
        let back = 400..404;
        let times: Vec<i64> = there.chain(back).collect();
        assert_eq!(positions(&times), times);
    }
}
