//! A piece of one direction's byte stream, in its place: what was captured of it and how much the snaplen hid.

use sizeleak_frame::Segment;

/// Bytes that follow the ones before without a gap. The hidden ones come after the captured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// When the segment was captured that brought it.
    pub(crate) time_ns: i64,
    /// The captured bytes.
    pub(crate) payload: &'a [u8],
    /// Bytes on the wire after them that the capture does not hold.
    pub(crate) hidden: u32,
    /// Whether it begins where its segment begins.
    pub(crate) starts_segment: bool,
    /// Whether it ends where its segment ends.
    pub(crate) ends_segment: bool,
}

impl<'a> Piece<'a> {
    /// What a segment holds.
    #[inline]
    pub(crate) fn of(segment: &Segment<'a>) -> Self {
        Self {
            time_ns: segment.time_ns,
            payload: segment.payload,
            hidden: segment.length.saturating_sub(segment.payload.len() as u32),
            starts_segment: true,
            ends_segment: true,
        }
    }

    /// Bytes on the wire.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.hidden)
    }

    /// Whether nothing of it is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.payload.is_empty() && self.hidden == 0
    }

    /// Takes up to `most` bytes off the front; returns the captured ones of them and how many went in all.
    #[inline]
    pub(crate) fn advance(&mut self, most: u64) -> (&'a [u8], u64) {
        let visible = (self.payload.len() as u64).min(most);
        let (taken, rest) = self.payload.split_at(visible as usize);
        self.payload = rest;
        let hidden = u64::from(self.hidden).min(most - visible);
        self.hidden -= hidden as u32;
        if visible + hidden > 0 {
            self.starts_segment = false;
        }
        (taken, visible + hidden)
    }

    /// Takes up to `most` captured bytes off the front.
    #[inline]
    pub(crate) fn advance_captured(&mut self, most: usize) -> &'a [u8] {
        self.advance(most.min(self.payload.len()) as u64).0
    }

    /// What is left of it where so much is left of its captured bytes, and of its hidden ones.
    #[inline]
    pub(crate) fn behind(self, payload: &'a [u8], hidden: u32) -> Self {
        let starts_segment = self.starts_segment && (payload.len(), hidden) == (self.payload.len(), self.hidden);
        Self { payload, hidden, starts_segment, ..self }
    }

    /// The first `most` bytes of it.
    pub(crate) fn first(mut self, most: u64) -> Self {
        let whole = self.length();
        let visible = (self.payload.len() as u64).min(most);
        self.payload = self.payload.get(..visible as usize).unwrap_or_default();
        self.hidden = u64::from(self.hidden).min(most - visible) as u32;
        self.ends_segment &= most >= whole;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_bytes_come_last() {
        let whole = Piece { time_ns: 1, payload: b"abcd", hidden: 3, starts_segment: true, ends_segment: true };
        let mut piece = whole;
        assert_eq!(piece.advance(3), (&b"abc"[..], 3));
        assert!(!piece.starts_segment);
        assert_eq!(piece.advance(3), (&b"d"[..], 3));
        assert_eq!((piece.length(), piece.is_empty()), (1, false));
        let first = whole.first(5);
        assert_eq!((first.payload, first.hidden, first.ends_segment), (&b"abcd"[..], 1, false));
        assert_eq!(whole.first(7), whole);
    }
}
