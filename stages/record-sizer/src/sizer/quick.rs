//! The way of segments that come to steady connections, as nearly all do.

use prefetch_index::prefetch_index;
use sizeleak_frame::{Segment, Segments};
use sizeleak_runtime::{Closed, Emit};

use super::RecordSizer;
use crate::piece::Piece;
use crate::report::Report;
use crate::steady::Remainder;
use crate::table::Place;
use crate::tracked::Tracked;

/// What takes more than a steady connection.
#[derive(Debug)]
enum Undone<'a> {
    /// A segment, and where its connection is, if it was looked up.
    Segment(Segment<'a>, Place),
    /// The end of a segment, in which the connection is steady no longer.
    Piece(Segment<'a>, Piece<'a>),
}

impl RecordSizer {
    /// Where the connections of segments with nothing but data are. Looked up together, they wait for memory together, not one
    /// after the other. So do the first record headers, which may lie in another processor's cache: they are fetched meanwhile.
    pub(super) fn places(&mut self, segments: &Segments) -> Vec<Place> {
        let mut place = |segment: Segment<'_>| {
            if segment.flags == 0 || segment.flags & Segment::SYN != 0 || segment.length == 0 {
                return None;
            }
            let (place, tracked) = self.connections.look_up(segment.flow)?;
            if let Tracked::Steady(steady) = tracked {
                prefetch_index(segment.payload, steady.left(segment.direction));
            }
            Some(place)
        };
        segments.iter().map(|segment| place(segment).unwrap_or(Place::NOWHERE)).collect()
    }

    /// Takes segments, each with the place where its connection is, if it was looked up.
    pub(super) fn segments<'a>(
        &mut self,
        rest: &mut impl Iterator<Item = (Segment<'a>, Place)>,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        while let Some(undone) = self.steady_segments(rest, out)? {
            match undone {
                Undone::Segment(segment, place) => self.any_segment(&segment, place, out)?,
                Undone::Piece(segment, left) => self.go_on_in_full(&segment, left, out)?,
            }
        }
        Ok(())
    }

    /// Takes segments of steady connections, as long as they go on so: up to the first that is none, or is not done with.
    ///
    /// A function of its own, so that most of what it needs stays in registers.
    #[inline(never)]
    fn steady_segments<'a>(
        &mut self,
        rest: &mut impl Iterator<Item = (Segment<'a>, Place)>,
        out: &mut dyn Emit,
    ) -> Result<Option<Undone<'a>>, Closed> {
        // Nearly always nothing waits, and nobody is forgotten. Steady connections change nothing about it.
        let nothing_waits = self.waiting.is_empty();
        let next_expiry_ns = if nothing_waits { self.next_expiry_ns } else { i64::MIN };
        for (segment, place) in rest {
            self.report.counts.segments += 1;
            self.now_ns = segment.time_ns;
            if segment.time_ns < next_expiry_ns
                && let Some(tracked) = self.connections.find_at(place, segment.flow)
                && let Some(left) = steadily(tracked, &segment, &mut self.report, out)
            {
                self.report.hidden(&segment);
                let left = left?;
                if !left.is_empty() {
                    return Ok(Some(Undone::Piece(segment, left.piece(&segment))));
                }
            } else if segment.length > 0 || !nothing_waits || segment.flags & Segment::SYN != 0 || segment.flags == 0 {
                // More than an acknowledgement that nobody waits for.
                return Ok(Some(Undone::Segment(segment, place)));
            }
        }
        Ok(None)
    }
}

/// Takes a segment of a connection that is steady, if it goes on so; what is left of the segment is for all there is to a
/// connection.
#[inline(always)]
#[expect(clippy::inline_always, reason = "once a segment")]
pub(super) fn steadily<'a>(
    tracked: &mut Tracked,
    segment: &Segment<'a>,
    report: &mut Report,
    out: &mut dyn Emit,
) -> Option<Result<Remainder<'a>, Closed>> {
    let Tracked::Steady(steady) = tracked else { return None };
    let (stream, protected) = steady.stream(segment.direction);
    let mut rest = stream.take(segment)?;
    while let Some(record) = stream.next_record(&mut rest) {
        let marks = protected.marks(record.header);
        if let Err(closed) = report.record(segment.flow, (segment.direction, record), marks, out) {
            return Some(Err(closed));
        }
    }
    Some(Ok(rest))
}
