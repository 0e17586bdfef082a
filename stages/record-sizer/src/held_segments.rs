//! Segments of one direction that wait for the bytes before them, by stream position.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::chunk::Chunk;

/// Memory that a held segment is taken to need besides its payload, in bytes.
const SEGMENT_COST: usize = 96;

/// Memory that a direction with held segments is taken to need besides them, in bytes.
const DIRECTION_COST: usize = 256;

/// What is held of a segment: a chunk, and its payload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HeldSegment {
    without_payload: Chunk<'static>,
    #[serde(with = "serde_bytes")]
    payload: Box<[u8]>,
}

impl HeldSegment {
    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk { payload: &self.payload, ..self.without_payload }
    }
}

/// Held segments by the position they start at; they do not overlap. Segments are nearly always added at the end and
/// taken from the front. Most directions hold none or one, so an empty queue keeps no memory.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeldSegments {
    segments: VecDeque<(u64, HeldSegment)>,
    bytes: usize,
}

/// Counts segments that follow each other.
#[derive(Debug, Default)]
struct Run {
    length: usize,
    end: u64,
}

impl Run {
    /// Adds a segment; returns how many follow each other up to it. Pieces of one segment count once.
    fn add(&mut self, start: u64, held: &HeldSegment) -> usize {
        let is_next = self.length > 0 && start == self.end;
        self.length = if is_next { self.length + usize::from(held.without_payload.starts_segment) } else { 1 };
        self.end = start + held.chunk().length();
        self.length
    }
}

impl HeldSegments {
    /// The position and capture time of the first one.
    pub(crate) fn first(&self) -> Option<(u64, i64)> {
        self.segments.front().map(|(start, held)| (*start, held.without_payload.time_ns))
    }

    pub(crate) fn take_at(&mut self, position: u64) -> Option<HeldSegment> {
        self.take_first_if(|start| start == position)
    }

    pub(crate) fn drop_before(&mut self, position: u64) {
        while self.take_first_if(|start| start < position).is_some() {}
    }

    fn take_first_if(&mut self, condition: impl Fn(u64) -> bool) -> Option<HeldSegment> {
        let (_, held) = self.segments.pop_front_if(|(start, _)| condition(*start))?;
        self.bytes -= held.payload.len() + SEGMENT_COST;
        if self.segments.is_empty() {
            self.segments = VecDeque::new();
        }
        Some(held)
    }

    /// The rest, from this position on, of the segment that holds the byte there.
    pub(crate) fn rest_from(&self, position: u64) -> Option<Chunk<'_>> {
        let index = self.segments.partition_point(|(start, _)| *start <= position).checked_sub(1)?;
        let (start, held) = self.segments.get(index)?;
        let mut rest = held.chunk();
        rest.advance(position - start);
        Some(rest).filter(|rest| !rest.is_empty())
    }

    pub(crate) fn is_all_padding(&self) -> bool {
        self.segments.iter().all(|(_, held)| held.without_payload.may_be_padding)
    }

    pub(crate) fn remove_at(&mut self, position: u64) {
        let index = self.segments.partition_point(|(start, _)| *start <= position);
        if let Some((_, held)) = index.checked_sub(1).and_then(|index| self.segments.remove(index)) {
            self.bytes -= held.payload.len() + SEGMENT_COST;
        }
    }

    /// Removes the segments that a chunk from `start` on overlaps and whose captured bytes differ from it; returns how
    /// many of them were no padding.
    pub(crate) fn remove_differing(&mut self, start: u64, chunk: Chunk<'_>) -> usize {
        let end = start + chunk.length();
        let mut removed = 0;
        self.segments.retain(|(position, held)| {
            let (mut first, mut second) = (chunk, held.chunk());
            if *position >= end || position + second.length() <= start {
                return true;
            }
            first.advance(position.saturating_sub(start));
            second.advance(start.saturating_sub(*position));
            let overlap = first.length().min(second.length());
            let (first, second) = (first.first(overlap), second.first(overlap));
            let is_same = first.payload.iter().zip(second.payload).all(|(first, second)| first == second);
            if !is_same {
                self.bytes -= held.payload.len() + SEGMENT_COST;
                removed += usize::from(!second.may_be_padding);
            }
            is_same
        });
        removed
    }

    /// Drops all segments; returns their bytes on the wire.
    pub(crate) fn drop_all(&mut self) -> u64 {
        self.bytes = 0;
        std::mem::take(&mut self.segments).iter().map(|(_, held)| held.chunk().length()).sum()
    }

    /// Whether at least this number of whole segments follow each other without a gap.
    pub(crate) fn has_run(&self, least: usize) -> bool {
        let mut run = Run::default();
        self.segments.iter().any(|(start, held)| run.add(*start, held) >= least)
    }

    /// The number of whole segments that follow each other without a gap around this position, as far as a few
    /// neighbours show.
    pub(crate) fn run_at(&self, position: u64) -> usize {
        const NEIGHBOURS: usize = 8;
        let index = self.segments.partition_point(|(start, _)| *start < position);
        let mut run = Run::default();
        let neighbours = self.segments.iter().skip(index.saturating_sub(NEIGHBOURS)).take(2 * NEIGHBOURS);
        neighbours.map(|(start, held)| run.add(*start, held)).max().unwrap_or_default()
    }

    pub(crate) fn next_start(&self, position: u64) -> Option<u64> {
        self.segments.get(self.segments.partition_point(|(start, _)| *start < position)).map(|(start, _)| *start)
    }

    /// Holds a chunk; none may be held at its position.
    pub(crate) fn insert(&mut self, start: u64, chunk: Chunk<'_>) {
        self.bytes += chunk.payload.len() + SEGMENT_COST;
        let index = self.segments.partition_point(|(other, _)| *other < start);
        let held = HeldSegment { without_payload: Chunk { payload: &[], ..chunk }, payload: chunk.payload.into() };
        self.segments.insert(index, (start, held));
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        if self.is_empty() { 0 } else { DIRECTION_COST + self.bytes }
    }
}
