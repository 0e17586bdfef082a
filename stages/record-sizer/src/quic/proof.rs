//! Whether datagrams without a handshake are packets of QUIC: their bytes tell.
//!
//! A packet with a short header has one fixed value in its two highest bits (RFC 9000, section 17.3); its five lowest bits
//! are encrypted, so they look random, and so does all that follows its id. Other protocols begin with whatever they begin
//! with, or with numbers that grow: how often each first byte came so far, or each step from one to the next, says how
//! probable the next is (Laplace's rule over 256 values). QUIC has to be more probable than both. Text is none of it: its
//! bytes never have their highest bit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;

use crate::connection_id::SHORT_READ;
use crate::per_direction::PerDirection;

/// The least packet: what is encrypted has 16 bytes of sample behind the number (RFC 9001, section 5.4.2).
pub(super) const LEAST_PACKET: u64 = 1 + 4 + 16;

/// The logarithm of how much more probable QUIC has to become: as for DTLS, one flow in 10¹⁰ of another protocol is taken
/// for it.
const ENOUGH: f64 = 23.03;

/// How much of that the port of HTTP/3 says: all but one in a thousand of what it carries is QUIC.
const BY_PORT: f64 = ENOUGH - 6.9;

/// More datagrams than this decide nothing.
const MOST: u32 = 1 << 16;

/// What the first bytes of a flow say.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct QuicProof {
    values: Explanation,
    steps: Explanation,
    last: PerDirection<u8>,
    has_high_bits: bool,
    pub(super) datagrams: u32,
}

/// Another protocol, of which something recurs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Explanation {
    /// How often each value came.
    counts: BTreeMap<u8, u32>,
    /// The logarithm of how much more probable QUIC is.
    evidence: f64,
}

impl Explanation {
    fn add(&mut self, value: u8, datagrams: u32) {
        let count = self.counts.entry(value).or_default();
        let by_other = (f64::from(*count) + 1.0) / (f64::from(datagrams) + 256.0);
        *count += 1;
        // Six bits as if they were random; one of them need not be (the spin bit, RFC 9000, section 17.4).
        self.evidence += (1.0_f64 / 64.0).ln() - by_other.ln();
    }
}

impl QuicProof {
    /// A proof that begins with what the port says.
    pub(super) fn new(is_likely: bool) -> Self {
        let mut proof = Self::default();
        let evidence = if is_likely { BY_PORT } else { 0.0 };
        (proof.values.evidence, proof.steps.evidence) = (evidence, evidence);
        proof
    }

    /// Whether these can be the bytes of a packet.
    pub(super) fn may_be(payload: &[u8], length: u64) -> bool {
        length >= LEAST_PACKET && payload.first().is_some_and(|first| first & 0xc0 == 0x40)
    }

    /// Takes the next datagram, which may be QUIC. True once that is proven, false if it is refuted.
    pub(super) fn add(&mut self, direction: Direction, payload: &[u8]) -> Option<bool> {
        let first = payload.first().copied().unwrap_or_default();
        let last = std::mem::replace(self.last.of_mut(direction), first);
        self.values.add(first, self.datagrams);
        self.steps.add(first.wrapping_sub(last), self.datagrams);
        self.datagrams += 1;
        self.has_high_bits |= payload.iter().skip(SHORT_READ).any(|byte| *byte >= 0x80);
        let evidence = self.values.evidence.min(self.steps.evidence);
        if evidence >= ENOUGH && self.has_high_bits {
            Some(true)
        } else if evidence <= -ENOUGH || self.datagrams >= MOST {
            Some(false)
        } else {
            None
        }
    }

    /// Whether datagrams can have led to this.
    pub(super) fn is_valid(&self) -> bool {
        let is_valid = |explanation: &Explanation| {
            explanation.evidence.is_finite() && explanation.counts.values().all(|count| *count <= self.datagrams)
        };
        self.datagrams < MOST && is_valid(&self.values) && is_valid(&self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many datagrams it is decided, and how.
    fn decided(first: impl Fn(u32) -> u8, rest: u8) -> Option<(u32, bool)> {
        let mut proof = QuicProof::default();
        (0..2000).find_map(|at| {
            let payload = [&[0x40 | first(at)][..], &[rest; 40]].concat();
            Some((at, proof.add(Direction::ToGateway, &payload)?))
        })
    }

    #[test]
    fn random_first_bytes_are_quic_and_others_are_not() {
        // SplitMix64.
        let random = |at: u32| {
            let mixed = u64::from(at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 40) as u8 & 0x3f
        };
        assert!(matches!(decided(random, 0xee), Some((15..40, true))), "{:?}", decided(random, 0xee));
        assert_eq!(decided(|_| 8, 0xee).map(|(_, is_quic)| is_quic), Some(false), "a constant");
        assert_eq!(decided(|at| at as u8 & 0x3f, 0xee).map(|(_, is_quic)| is_quic), Some(false), "a counter");
        assert_eq!(decided(random, 0x61), None, "text");
    }
}
