//! X25519 key exchange (RFC 7748) with seeded private keys; those of ring always come from the system.

use rustls::crypto::{ActiveKeyExchange, SecureRandom, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

use super::seeded_random::SeededRandom;

#[derive(Debug)]
pub(super) struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut private = [0; 32];
        SeededRandom.fill(&mut private)?;
        Ok(Box::new(X25519KeyExchange { private, public: x25519(private, X25519_BASEPOINT_BYTES) }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct X25519KeyExchange {
    private: [u8; 32],
    public: [u8; 32],
}

impl ActiveKeyExchange for X25519KeyExchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        let invalid = || Error::from(PeerMisbehaved::InvalidKeyShare);
        let shared = x25519(self.private, peer_pub_key.try_into().map_err(|_| invalid())?);
        // RFC 8446 section 7.4.2: all zeros must be rejected.
        if shared == [0; 32] {
            return Err(invalid());
        }
        Ok(SharedSecret::from(shared.as_slice()))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::super::seeded_random::InstalledGenerator;
    use super::*;

    #[test]
    fn both_ends_agree_and_invalid_keys_are_rejected() {
        let _installed = InstalledGenerator::new(ChaCha20Rng::seed_from_u64(3));
        let one = SeededX25519.start().unwrap();
        let other = SeededX25519.start().unwrap();
        let (one_key, other_key) = (one.pub_key().to_vec(), other.pub_key().to_vec());
        let secrets = (one.complete(&other_key).unwrap(), other.complete(&one_key).unwrap());
        assert_eq!(secrets.0.secret_bytes(), secrets.1.secret_bytes());
        assert!(SeededX25519.start().unwrap().complete(&[0; 32]).is_err());
        assert!(SeededX25519.start().unwrap().complete(&[9; 31]).is_err());
    }
}
