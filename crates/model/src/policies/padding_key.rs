//! The secret of keyed padding: the same command always gets the same random padding.

use std::fmt;

/// A secret of one gateway, from which random padding is drawn.
///
/// Padding drawn anew each time averages out over repetitions of a command; a draw that depends on the command does not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PaddingKey([u8; 32]);

impl PaddingKey {
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The draw of a command for [`crate::policies::PaddingPolicy::drawn`]: the first eight bytes, little-endian, of the keyed
    /// BLAKE3 hash of `command`.
    ///
    /// `command` is what makes two commands the same to an observer's interest, in one order: devices and actions,
    /// without message ids and timestamps. With these, every repetition would be drawn anew.
    pub fn draw(&self, command: &[u8]) -> u64 {
        let hash = blake3::keyed_hash(&self.0, command);
        hash.as_bytes().iter().take(8).rev().fold(0, |draw, byte| (draw << 8) | u64::from(*byte))
    }
}

impl fmt::Debug for PaddingKey {
    /// Does not show the secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PaddingKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draw_is_the_start_of_the_keyed_hash() {
        let hash = blake3::keyed_hash(&[7; 32], b"plug on");
        let start = u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap());
        assert_eq!(PaddingKey::new([7; 32]).draw(b"plug on"), start);
        assert_ne!(PaddingKey::new([8; 32]).draw(b"plug on"), start);
        assert_ne!(PaddingKey::new([7; 32]).draw(b"plug off"), start);
    }

    #[test]
    fn a_key_does_not_show_in_messages() {
        assert_eq!(format!("{:?}", PaddingKey::new([7; 32])), "PaddingKey(…)");
    }
}
