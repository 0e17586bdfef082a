//! Whether datagrams without a handshake are packets of QUIC: their first bytes tell.
//!
//! A packet with a short header has one fixed value in its two highest bits (RFC 9000, section 17.3); its five lowest bits
//! are encrypted, so they look random. Other protocols begin with whatever they begin with: how often each value came
//! so far says how probable the next is (Laplace's rule over 256 values).

use serde::{Deserialize, Serialize};

/// The least packet: what is encrypted has 16 bytes of sample behind the number (RFC 9001, section 5.4.2).
pub(crate) const LEAST_PACKET: u64 = 1 + 4 + 16;

/// The logarithm of how much more probable QUIC has to become: as for DTLS, one flow in 10¹⁰ of another protocol is taken
/// for it.
const ENOUGH: f64 = 23.03;

/// What the first bytes of a flow say.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct QuicProof {
    /// How often each first byte came; those of other protocols end the proof.
    counts: std::collections::BTreeMap<u8, u32>,
    pub(crate) datagrams: u32,
    /// The logarithm of how much more probable QUIC is than another protocol.
    evidence: f64,
}

impl QuicProof {
    /// Whether these can be the bytes of a packet.
    pub(crate) fn may_be(payload: &[u8], length: u64) -> bool {
        length >= LEAST_PACKET && payload.first().is_some_and(|first| first & 0xc0 == 0x40)
    }

    /// Takes the next datagram, which may be QUIC. True once that is proven, false if it is refuted.
    pub(crate) fn add(&mut self, first: u8) -> Option<bool> {
        let count = self.counts.entry(first).or_default();
        let by_other = (f64::from(*count) + 1.0) / (f64::from(self.datagrams) + 256.0);
        *count += 1;
        self.datagrams = self.datagrams.saturating_add(1);
        // Six bits as if they were random; one of them need not be (the spin bit, RFC 9000, section 17.4).
        self.evidence += (1.0_f64 / 64.0).ln() - by_other.ln();
        if self.evidence >= ENOUGH {
            Some(true)
        } else if self.evidence <= -ENOUGH {
            Some(false)
        } else {
            None
        }
    }
}
