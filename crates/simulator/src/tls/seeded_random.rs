//! The random bytes of rustls. The generator of a provider must be `'static`, so it is an empty value that draws from
//! the generator installed on this thread.

use std::cell::RefCell;
use std::marker::PhantomData;

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha20Rng>> = const { RefCell::new(None) };
}

/// Draws the random bytes of a simulated TLS session. Fails without an [`InstalledGenerator`].
#[derive(Debug)]
pub(super) struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        GENERATOR.with_borrow_mut(|generator| {
            let generator = generator.as_mut().ok_or(GetRandomFailed)?;
            generator.fill_bytes(buf);
            Ok(())
        })
    }
}

/// Installs a generator for [`SeededRandom`] on this thread; when dropped, restores the previous one.
#[derive(Debug)]
pub(super) struct InstalledGenerator {
    previous: Option<ChaCha20Rng>,
    this_thread: PhantomData<*const ()>,
}

impl InstalledGenerator {
    pub(super) fn new(generator: ChaCha20Rng) -> Self {
        Self { previous: GENERATOR.replace(Some(generator)), this_thread: PhantomData }
    }
}

impl Drop for InstalledGenerator {
    fn drop(&mut self) {
        GENERATOR.set(self.previous.take());
    }
}

/// X25519 key exchange (RFC 7748) with seeded private keys; those of ring always come from the system.
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

    use super::*;

    fn bytes() -> Option<[u8; 8]> {
        let mut bytes = [0; 8];
        SeededRandom.fill(&mut bytes).ok().map(|()| bytes)
    }

    #[test]
    fn bytes_depend_on_the_installed_seed_only() {
        let draw = |seed| {
            let _installed = InstalledGenerator::new(ChaCha20Rng::seed_from_u64(seed));
            bytes().unwrap()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(bytes(), None);
    }

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
