//! A chunk of one direction's byte stream: the captured bytes, and how many more the snaplen cut off.

use sizeleak_frame::Segment;

/// Consecutive bytes of a stream. The hidden ones, which the capture does not hold, follow the captured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    /// The sequence number of its first byte; 0 where it does not matter.
    pub(crate) sequence: u32,
    /// When the segment that carried it was captured.
    pub(crate) time_ns: i64,
    /// The captured bytes.
    pub(crate) payload: &'a [u8],
    /// Bytes on the wire after them that the snaplen cut off.
    pub(crate) hidden: u32,
    /// Whether it starts where its segment starts.
    pub(crate) starts_segment: bool,
    /// Whether it ends where its segment ends.
    pub(crate) ends_segment: bool,
    /// Whether its segment ends what its sender had to send (PSH, FIN).
    pub(crate) is_pushed: bool,
}

impl<'a> Chunk<'a> {
    /// The whole of a segment.
    #[inline]
    pub(crate) fn of(segment: &Segment<'a>) -> Self {
        let is_syn = segment.flags & Segment::SYN != 0;
        Self {
            sequence: segment.sequence.wrapping_add(is_syn.into()),
            hidden: segment.length.saturating_sub(segment.payload.len() as u32),
            starts_segment: true,
            ends_segment: true,
            is_pushed: segment.flags & (Segment::PSH | Segment::FIN) != 0,
            ..Self::fragment(segment.time_ns, segment.payload)
        }
    }

    /// Captured bytes from the inside of a segment.
    #[inline]
    pub(crate) fn fragment(time_ns: i64, payload: &'a [u8]) -> Self {
        let (sequence, hidden) = (0, 0);
        Self { sequence, time_ns, payload, hidden, starts_segment: false, ends_segment: false, is_pushed: false }
    }

    /// Bytes on the wire.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.hidden)
    }

    /// Whether it may be the padding of an acknowledgement in Ethernet's shortest frame, which some hosts count in the
    /// lengths of IP: 60 bytes, of which the headers of Ethernet, IP and TCP are 54. What ends a write is pushed.
    #[inline]
    pub(crate) fn may_be_padding(&self) -> bool {
        const MOST: usize = 60 - 54;
        self.payload.len() <= MOST && self.hidden == 0 && !self.is_pushed && self.payload.iter().all(|byte| *byte == 0)
    }

    /// Whether no byte is left.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.payload.is_empty() && self.hidden == 0
    }

    /// Removes up to `limit` bytes from the front; returns the captured ones, and how many were removed in all.
    #[inline]
    pub(crate) fn advance(&mut self, limit: u64) -> (&'a [u8], u64) {
        let visible = (self.payload.len() as u64).min(limit);
        let (taken, rest) = self.payload.split_at(visible as usize);
        self.payload = rest;
        let hidden = u64::from(self.hidden).min(limit - visible);
        self.hidden -= hidden as u32;
        self.sequence = self.sequence.wrapping_add((visible + hidden) as u32);
        self.starts_segment &= visible + hidden == 0;
        (taken, visible + hidden)
    }

    /// Removes up to `limit` captured bytes from the front.
    #[inline]
    pub(crate) fn advance_captured(&mut self, limit: usize) -> &'a [u8] {
        self.advance(limit.min(self.payload.len()) as u64).0
    }

    /// Its first `limit` bytes.
    pub(crate) fn first(mut self, limit: u64) -> Self {
        let whole = self.length();
        let visible = (self.payload.len() as u64).min(limit);
        self.payload = self.payload.get(..visible as usize).unwrap_or_default();
        self.hidden = u64::from(self.hidden).min(limit - visible) as u32;
        self.ends_segment &= limit >= whole;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_bytes_follow_the_captured_ones() {
        let whole = Chunk { hidden: 3, starts_segment: true, ends_segment: true, ..Chunk::fragment(1, b"abcd") };
        let mut chunk = whole;
        assert_eq!(chunk.advance(3), (&b"abc"[..], 3));
        assert!(!chunk.starts_segment);
        assert_eq!(chunk.advance(3), (&b"d"[..], 3));
        assert_eq!((chunk.length(), chunk.is_empty(), chunk.sequence), (1, false, 6));
        let first = whole.first(5);
        assert_eq!((first.payload, first.hidden, first.ends_segment), (&b"abcd"[..], 1, false));
        assert_eq!(whole.first(7), whole);
    }

    #[test]
    fn up_to_six_zeros_that_end_no_write_may_be_padding() {
        let zeros = |count: usize| Chunk::fragment(1, &[0; 7][..count]);
        assert!(zeros(1).may_be_padding() && zeros(6).may_be_padding());
        assert!(!zeros(7).may_be_padding());
        assert!(!Chunk { is_pushed: true, ..zeros(6) }.may_be_padding());
        assert!(!Chunk { hidden: 1, ..zeros(3) }.may_be_padding());
        assert!(!Chunk::fragment(1, &[0, 0, 0, 1]).may_be_padding());
    }
}
