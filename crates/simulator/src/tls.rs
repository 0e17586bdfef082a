//! Real TLS in memory: a rustls client and server that draw every random byte from the seed. Here are what the server
//! is known by and the random bytes of rustls.
//!
//! The certificate uses Ed25519, whose signatures are deterministic (RFC 8032). The generator of a provider must be
//! `'static`, so it is an empty value that draws from the generator installed on this thread.

mod cbc;
mod session;

use std::cell::RefCell;
use std::marker::PhantomData;

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber, date_time_ymd};
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

use crate::SimulateError;

pub(crate) use session::{MAX_PLAINTEXT, Side, TlsSession, record_lengths, record_plaintexts, wire_lengths};

/// The bytes before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410 section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A service's name, self-signed certificate and private key.
#[derive(Debug)]
pub(crate) struct ServerIdentity {
    pub(crate) name: String,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl ServerIdentity {
    pub(crate) fn new(name: &str, random: &mut ChaCha20Rng) -> Result<Self, SimulateError> {
        let failed = |error| SimulateError(format!("the certificate of `{name}` cannot be created: {error}"));
        let mut key = [0; 32];
        random.fill_bytes(&mut key);
        let key = PrivatePkcs8KeyDer::from([PKCS8_PREFIX.as_slice(), key.as_slice()].concat());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519).map_err(failed)?;
        let mut parameters = CertificateParams::new([name.to_owned()]).map_err(failed)?;
        parameters.serial_number = Some(SerialNumber::from(random.next_u64() >> 1));
        parameters.not_before = date_time_ymd(1970, 1, 1);
        parameters.not_after = date_time_ymd(2099, 12, 31);
        let certificate = parameters.self_signed(&pair).map_err(failed)?.der().clone();
        Ok(Self { name: name.to_owned(), certificate, key })
    }
}

thread_local! {
    static GENERATOR: RefCell<Option<ChaCha20Rng>> = const { RefCell::new(None) };
}

/// Draws the random bytes of a simulated TLS session. Fails without an [`InstalledGenerator`].
#[derive(Debug)]
struct SeededRandom;

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
struct InstalledGenerator {
    previous: Option<ChaCha20Rng>,
    this_thread: PhantomData<*const ()>,
}

impl InstalledGenerator {
    fn new(generator: ChaCha20Rng) -> Self {
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
struct SeededX25519;

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
