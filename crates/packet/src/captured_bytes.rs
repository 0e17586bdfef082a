//! Bytes of a packet whose end the snaplen may have cut off.

/// Bytes of a packet whose end the snaplen may have cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapturedBytes<'a> {
    data: &'a [u8],
    length: u32,
}

impl<'a> CapturedBytes<'a> {
    /// `length` bytes on the wire, of which `data` was captured. If `data` is longer, its end is padding and is
    /// dropped.
    pub fn new(data: &'a [u8], length: u32) -> Self {
        Self { data: data.get(..length as usize).unwrap_or(data), length }
    }

    /// A whole frame. A length on the wire that is less than what was captured is wrong, and is ignored.
    pub fn frame(data: &'a [u8], original_length: u32) -> Self {
        Self { data, length: original_length.max(data.len() as u32) }
    }

    /// What was captured: at most [`length`](Self::length) bytes.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Bytes on the wire.
    pub fn length(&self) -> u32 {
        self.length
    }

    #[must_use]
    pub fn after(self, offset: usize) -> Self {
        Self { data: self.data.get(offset..).unwrap_or_default(), length: self.length.saturating_sub(offset as u32) }
    }

    #[must_use]
    pub fn first(self, limit: usize) -> Self {
        Self::new(self.data, self.length.min(u32::try_from(limit).unwrap_or(u32::MAX)))
    }
}
