//! How many bytes of connection id packets begin with, where nobody says so: those that packets of one direction have in
//! common, since what follows the id is random to whoever has no keys (RFC 9001, section 5.4; RFC 9147, section 4.2.3).

use serde::{Deserialize, Serialize};

/// The longest id of QUIC (RFC 9000, section 17.2); longer ones of DTLS are not recognised.
pub(crate) const LONGEST: usize = 20;

/// The most bytes that are read of a packet that begins with one byte and an id.
pub(crate) const SHORT_READ: usize = 1 + LONGEST;

/// After so many packets, that a random byte is taken for a part of the id has a probability of 256⁻⁴.
const ENOUGH: u8 = 5;

/// Fewer bytes may be equal by chance: two random packets have so many in common with a probability of 256⁻⁴.
pub(crate) const SURE: usize = 4;

/// The length of the ids in packets of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum IdLength {
    /// No packet was seen.
    #[default]
    Unknown,
    /// A handshake has said so, the user has, or packets have shown it.
    Known(u8),
    /// At most what packets have in common so far.
    AtMost { common: Vec<u8>, packets: u8 },
}

impl IdLength {
    /// Takes what follows the first byte of a packet.
    pub(crate) fn packet(&mut self, bytes: &[u8]) {
        let first = bytes.get(..LONGEST).unwrap_or(bytes);
        match self {
            Self::Unknown => *self = Self::AtMost { common: first.to_vec(), packets: 1 },
            Self::Known(_) => {}
            Self::AtMost { common, packets } => {
                let equal = common.iter().zip(first).take_while(|(one, other)| one == other).count();
                if *packets > 1 && common.len() >= SURE && equal < SURE {
                    // So many bytes are not equal by chance: this is a new id, no longer than the old one.
                    *common = first.get(..common.len()).unwrap_or(first).to_vec();
                    *packets = 1;
                    return;
                }
                common.truncate(equal);
                *packets += 1;
                if *packets >= ENOUGH || common.is_empty() {
                    *self = Self::Known(common.len() as u8);
                }
            }
        }
    }

    /// The least and the most bytes.
    pub(crate) fn bounds(&self) -> [u8; 2] {
        match self {
            Self::Unknown => [0, LONGEST as u8],
            Self::Known(length) => [*length; 2],
            Self::AtMost { common, .. } => [0, common.len() as u8],
        }
    }

    /// Whether packets can have shown it.
    pub(crate) fn is_valid(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Known(length) => usize::from(*length) <= LONGEST,
            Self::AtMost { common, packets } => common.len() <= LONGEST && (1..ENOUGH).contains(packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_what_packets_have_in_common() {
        let mut length = IdLength::default();
        assert_eq!(length.bounds(), [0, 20]);
        for (packet, bounds) in [("idabc", [0, 5]), ("idaxy", [0, 3]), ("idbcd", [0, 2]), ("idccc", [0, 2])] {
            length.packet(packet.as_bytes());
            assert_eq!(length.bounds(), bounds, "{packet}");
        }
        length.packet(b"id123");
        assert_eq!(length, IdLength::Known(2));
        length.packet(b"other");
        assert_eq!(length, IdLength::Known(2), "a new id has the length of the old one");
        let mut changing = IdLength::default();
        for packet in ["old-id#1", "old-id#2", "new-id#3", "new-id#4", "new-id/5", "new-id.6", "new-id,7"] {
            changing.packet(packet.as_bytes());
        }
        assert_eq!(changing, IdLength::Known(6), "an id that changes early");
        let mut none = IdLength::default();
        none.packet(b"abc");
        none.packet(b"xyz");
        assert_eq!(none, IdLength::Known(0));
    }
}
