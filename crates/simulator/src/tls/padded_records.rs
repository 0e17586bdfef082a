//! The suites of TLS 1.3 with record padding (RFC 8446 section 5.4), which rustls removes but never adds.
//!
//! The encrypter of a suite gets a message that ends in the true content type and zeros, with a last zero in the place
//! of the type that it appends itself. So its ciphertext is that of a padded record.

use std::cell::Cell;
use std::sync::LazyLock;

use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundOpaqueMessage, OutboundPlainMessage,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::ring::cipher_suite as suites;
use rustls::{ConnectionTrafficSecrets, ContentType, Error, SupportedCipherSuite, Tls13CipherSuite};

const PLAIN: [SupportedCipherSuite; 3] =
    [suites::TLS13_AES_128_GCM_SHA256, suites::TLS13_AES_256_GCM_SHA384, suites::TLS13_CHACHA20_POLY1305_SHA256];

thread_local! {
    static PADDING: Cell<usize> = const { Cell::new(0) };
}

/// The bytes that pad the records which this thread encrypts; when dropped, none.
#[derive(Debug)]
pub(super) struct RecordPadding(());

impl RecordPadding {
    /// Pads records from now on.
    pub(super) fn of_next_record(bytes: usize) -> Self {
        PADDING.set(bytes);
        Self(())
    }
}

impl Drop for RecordPadding {
    fn drop(&mut self) {
        PADDING.set(0);
    }
}

/// A suite of TLS 1.3 whose records are padded.
pub(super) fn with_padding(plain: SupportedCipherSuite) -> SupportedCipherSuite {
    static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| PLAIN.into_iter().filter_map(padded).collect());
    let padded = SUITES.iter().find(|padded| padded.common.suite == plain.suite());
    padded.map_or(plain, SupportedCipherSuite::Tls13)
}

/// A suite of TLS 1.3 that pads as [`RecordPadding`] says.
fn padded(suite: SupportedCipherSuite) -> Option<Tls13CipherSuite> {
    let suite = suite.tls13()?;
    let aead: &'static dyn Tls13AeadAlgorithm = Box::leak(Box::new(PaddedAead(suite.aead_alg)));
    let common = rustls::crypto::CipherSuiteCommon { ..suite.common };
    Some(Tls13CipherSuite { common, hkdf_provider: suite.hkdf_provider, aead_alg: aead, quic: None })
}

/// An algorithm whose records are padded.
struct PaddedAead(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for PaddedAead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(PaddedEncrypter(self.0.encrypter(key, iv)))
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(&self, key: AeadKey, iv: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

struct PaddedEncrypter(Box<dyn MessageEncrypter>);

impl MessageEncrypter for PaddedEncrypter {
    fn encrypt(&mut self, message: OutboundPlainMessage<'_>, sequence: u64) -> Result<OutboundOpaqueMessage, Error> {
        let Some(further) = PADDING.get().checked_sub(1) else { return self.0.encrypt(message, sequence) };
        let OutboundPlainMessage { typ, version, payload } = message;
        let mut inner = payload.to_vec();
        inner.extend(typ.to_array());
        inner.resize(inner.len() + further, 0);
        let payload = OutboundChunks::Single(&inner);
        self.0.encrypt(OutboundPlainMessage { typ: ContentType::Unknown(0), version, payload }, sequence)
    }

    fn encrypted_payload_len(&self, payload: usize) -> usize {
        self.0.encrypted_payload_len(payload + PADDING.get())
    }
}
