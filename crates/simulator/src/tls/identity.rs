//! The identity of a service. Its certificate uses Ed25519, whose signatures are deterministic (RFC 8032).

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::SimulateError;

/// The bytes before the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410 section 7).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A service's name, self-signed certificate and private key.
#[derive(Debug)]
pub(crate) struct ServerIdentity {
    pub(crate) name: String,
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivatePkcs8KeyDer<'static>,
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
