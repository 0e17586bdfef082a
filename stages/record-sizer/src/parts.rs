//! Segments of one direction that wait for those before them, in the order of their places.

use std::collections::VecDeque;

use crate::piece::Piece;

/// What is held of a segment.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) time_ns: i64,
    pub(crate) payload: Box<[u8]>,
    pub(crate) hidden: u32,
    pub(crate) starts_segment: bool,
    pub(crate) ends_segment: bool,
}

impl Part {
    pub(crate) fn piece(&self) -> Piece<'_> {
        Piece {
            time_ns: self.time_ns,
            payload: &self.payload,
            hidden: self.hidden,
            starts_segment: self.starts_segment,
            ends_segment: self.ends_segment,
        }
    }
}

/// Parts by where they start. One is added at the end nearly always and taken from the front; a single one, which is
/// what most flows hold that wait, takes little memory.
#[derive(Debug, Default)]
pub(crate) struct Parts(VecDeque<(u64, Part)>);

impl Parts {
    /// The first part with its start.
    pub(crate) fn first(&self) -> Option<(u64, &Part)> {
        self.0.front().map(|(start, part)| (*start, part))
    }

    /// Takes the first part if it starts there.
    pub(crate) fn take_at(&mut self, at: u64) -> Option<Part> {
        self.0.pop_front_if(|(start, _)| *start == at).map(|(_, part)| part)
    }

    /// Takes the first part if it starts before that.
    pub(crate) fn take_before(&mut self, end: u64) -> Option<Part> {
        self.0.pop_front_if(|(start, _)| *start < end).map(|(_, part)| part)
    }

    /// The last part that starts at `at` or before.
    pub(crate) fn at_or_before(&self, at: u64) -> Option<(u64, &Part)> {
        let behind = self.0.partition_point(|(start, _)| *start <= at);
        self.0.get(behind.checked_sub(1)?).map(|(start, part)| (*start, part))
    }

    /// Where the first part at `at` or behind starts.
    pub(crate) fn start_from(&self, at: u64) -> Option<u64> {
        self.0.get(self.0.partition_point(|(start, _)| *start < at)).map(|(start, _)| *start)
    }

    /// Adds a part where none starts.
    pub(crate) fn insert(&mut self, start: u64, part: Part) {
        let place = self.0.partition_point(|(other, _)| *other < start);
        self.0.insert(place, (start, part));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
