//! A TLS session: both ends, their handshake, and the records of each message.
//!
//! rustls removes the record padding of TLS 1.3 (RFC 8446 section 5.4) but never adds it. So the encrypter of a padded
//! suite gets a message that ends in the true content type and zeros, with a last zero in the place of the type that it
//! appends itself: its ciphertext is that of a padded record.

use std::cell::Cell;
use std::io::{Read, Write};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rustls::client::Resumption;
use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundOpaqueMessage, OutboundPlainMessage,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::ring;
use rustls::crypto::{CipherSuiteCommon, CryptoProvider};
use rustls::pki_types::{PrivateKeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{
    ClientConfig, ClientConnection, Connection, ConnectionTrafficSecrets, ContentType, Error, RootCertStore,
    ServerConfig, ServerConnection, SupportedCipherSuite, Tls13CipherSuite,
};

use super::{InstalledGenerator, SeededRandom, SeededX25519, ServerIdentity, cbc};
use crate::SimulateError;
use crate::scenario::{Suite, TlsSettings, Version};

/// The largest plaintext of a TLS record, in bytes (RFC 8446 section 5.1).
pub(crate) const MAX_PLAINTEXT: usize = 1 << 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end that opened it: the gateway.
    Client,
    /// The end that accepted it: the service.
    Server,
}

impl Side {
    pub(crate) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// What this end has and what its peer has, of what the client and the server have.
    pub(crate) fn own_first<T>(self, [client, server]: [T; 2]) -> [T; 2] {
        match self {
            Self::Client => [client, server],
            Self::Server => [server, client],
        }
    }
}

#[derive(Debug)]
pub(crate) struct TlsSession {
    /// The client and the server.
    ends: [Connection; 2],
    /// The largest plaintext of a record, in bytes.
    chunk: usize,
    _randomness: InstalledGenerator,
}

impl TlsSession {
    /// A session before its handshake. `protocol` is negotiated by ALPN (RFC 7301).
    pub(crate) fn new(
        identity: &ServerIdentity,
        tls: TlsSettings,
        protocol: &str,
        time_ns: i64,
        random: ChaCha20Rng,
    ) -> Result<Self, SimulateError> {
        let randomness = InstalledGenerator::new(random);
        let provider = Arc::new(provider(tls));
        let clock = Arc::new(FixedClock(UnixTime::since_unix_epoch(Duration::from_nanos(time_ns.unsigned_abs()))));
        let versions = [suite(tls).version()];
        let mut roots = RootCertStore::empty();
        roots.add(identity.certificate.clone())?;

        let mut client = ClientConfig::builder_with_details(provider.clone(), clock.clone())
            .with_protocol_versions(&versions)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.resumption = Resumption::disabled();
        client.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let mut server = ServerConfig::builder_with_details(provider, clock)
            .with_protocol_versions(&versions)?
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate.clone()], PrivateKeyDer::from(identity.key.clone_key()))?;
        server.alpn_protocols = vec![protocol.as_bytes().to_vec()];

        let name = ServerName::try_from(identity.name.clone())
            .map_err(|error| rustls::Error::General(format!("`{}`: {error}", identity.name)))?;
        let client = Connection::from(ClientConnection::new(Arc::new(client), name)?);
        let mut ends = [client, ServerConnection::new(Arc::new(server))?.into()];
        for end in &mut ends {
            end.set_buffer_limit(None);
        }
        Ok(Self { ends, chunk: record_plaintext(tls), _randomness: randomness })
    }

    /// Performs the handshake. Returns the flights of both ends in turn, including session tickets.
    pub(crate) fn handshake(&mut self) -> Result<Vec<(Side, Vec<u8>)>, SimulateError> {
        let mut flights = Vec::new();
        loop {
            let before = flights.len();
            for side in [Side::Client, Side::Server] {
                let flight = drain(&mut self.ends[side as usize])?;
                deliver(&mut self.ends[side.peer() as usize], &flight, &[])?;
                flights.extend(Some((side, flight)).filter(|(_, flight)| !flight.is_empty()));
            }
            if flights.len() == before {
                return Ok(flights);
            }
        }
    }

    /// The records of a message. The other end decrypts them and must obtain the message.
    ///
    /// `padding` are the bytes of padding of each record (RFC 8446 section 5.4).
    pub(crate) fn seal(&mut self, side: Side, message: &[u8], padding: &[usize]) -> Result<Vec<u8>, SimulateError> {
        let mut records = Vec::new();
        let padding = padding.iter().copied().chain(std::iter::repeat(0));
        let from = &mut self.ends[side as usize];
        for (piece, padding) in message.chunks(self.chunk).zip(padding) {
            PADDING.set(padding);
            let written = from.writer().write_all(piece);
            PADDING.set(0);
            written.map_err(SimulateError::tls)?;
            records.extend(drain(from)?);
        }
        deliver(&mut self.ends[side.peer() as usize], &records, message)?;
        Ok(records)
    }

    pub(crate) fn close(&mut self, side: Side) -> Result<Vec<u8>, SimulateError> {
        let end = &mut self.ends[side as usize];
        end.send_close_notify();
        drain(end)
    }
}

fn drain(end: &mut Connection) -> Result<Vec<u8>, SimulateError> {
    let mut bytes = Vec::new();
    while end.wants_write() {
        end.write_tls(&mut bytes).map_err(SimulateError::tls)?;
    }
    Ok(bytes)
}

/// Delivers records to an end, which must decrypt them to `message`.
fn deliver(end: &mut Connection, mut records: &[u8], message: &[u8]) -> Result<(), SimulateError> {
    let mut read = Vec::with_capacity(message.len());
    while !records.is_empty() {
        end.read_tls(&mut records).map_err(SimulateError::tls)?;
        let available = end.process_new_packets()?.plaintext_bytes_to_read();
        end.reader().take(available as u64).read_to_end(&mut read).map_err(SimulateError::tls)?;
    }
    if read == message {
        return Ok(());
    }
    Err(SimulateError::tls("a message was decrypted to other bytes"))
}

/// The provider of ring, with the seeded generator and key exchange.
pub(super) fn provider(tls: TlsSettings) -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![suite(tls)],
        kx_groups: vec![&SeededX25519],
        secure_random: &SeededRandom,
        ..ring::default_provider()
    }
}

fn suite(tls: TlsSettings) -> SupportedCipherSuite {
    use ring::cipher_suite as suites;
    let [aes_128_sha, aes_256_sha, aes_128_sha256] = cbc::suites();
    match (tls.version, tls.suite) {
        (Version::Tls12, Suite::Aes128Gcm) => suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        (Version::Tls12, Suite::Aes256Gcm) => suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        (Version::Tls12, Suite::ChaCha20Poly1305) => suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        // The check of scenarios rejects CBC with TLS 1.3.
        (_, Suite::Aes128CbcSha) => aes_128_sha,
        (_, Suite::Aes256CbcSha) => aes_256_sha,
        (_, Suite::Aes128CbcSha256) => aes_128_sha256,
        (Version::Tls13, Suite::Aes128Gcm) => with_padding(suites::TLS13_AES_128_GCM_SHA256),
        (Version::Tls13, Suite::Aes256Gcm) => with_padding(suites::TLS13_AES_256_GCM_SHA384),
        (Version::Tls13, Suite::ChaCha20Poly1305) => with_padding(suites::TLS13_CHACHA20_POLY1305_SHA256),
    }
}

/// The start time of a session, which rustls uses to check certificates and to date tickets.
#[derive(Debug)]
struct FixedClock(UnixTime);

impl TimeProvider for FixedClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

fn record_plaintext(tls: TlsSettings) -> usize {
    if tls.chunk == 0 { MAX_PLAINTEXT } else { tls.chunk }
}

/// The plaintext of each record of a message of so many bytes: all but the last are full.
pub(crate) fn record_plaintexts(tls: TlsSettings, message: usize) -> impl Iterator<Item = usize> {
    let most = record_plaintext(tls);
    (0..message.div_ceil(most)).map(move |at| most.min(message - at * most))
}

/// What the lengths in the headers of a message's records are, without encrypting it: `padding` is that of each record.
pub(crate) fn wire_lengths(tls: TlsSettings, message: usize, padding: &[usize]) -> Vec<usize> {
    let mac = match tls.suite {
        Suite::Aes128CbcSha | Suite::Aes256CbcSha => Some(20),
        Suite::Aes128CbcSha256 => Some(32),
        Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => None,
    };
    let sealed = |plaintext: usize| match (mac, tls.version, tls.suite) {
        // The initialisation vector, then whole blocks of plaintext, MAC and at least one byte of padding.
        (Some(mac), ..) => 16 + (plaintext + mac + 1).next_multiple_of(16),
        // The tag and the type (RFC 8446 section 5.2).
        (None, Version::Tls13, _) => plaintext + 17,
        (None, Version::Tls12, Suite::ChaCha20Poly1305) => plaintext + 16,
        // The explicit nonce and the tag (RFC 5288).
        (None, Version::Tls12, _) => plaintext + 24,
    };
    let padding = padding.iter().chain(std::iter::repeat(&0));
    record_plaintexts(tls, message).zip(padding).map(|(part, padding)| sealed(part + padding)).collect()
}

/// The lengths in the headers of complete records (RFC 8446 section 5.1).
pub(crate) fn record_lengths(mut records: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = records {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(length);
        records = rest.get(length..).unwrap_or_default();
    }
    lengths
}

thread_local! {
    /// The bytes that pad the records which this thread encrypts.
    static PADDING: Cell<usize> = const { Cell::new(0) };
}

/// A suite of TLS 1.3 that pads as [`PADDING`] says.
fn with_padding(plain: SupportedCipherSuite) -> SupportedCipherSuite {
    static SUITES: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
        let plain = ring::ALL_CIPHER_SUITES.iter().filter_map(SupportedCipherSuite::tls13);
        let padded = plain.map(|suite| Tls13CipherSuite {
            common: CipherSuiteCommon { ..suite.common },
            hkdf_provider: suite.hkdf_provider,
            aead_alg: Box::leak(Box::new(PaddedAead(suite.aead_alg))),
            quic: None,
        });
        padded.collect()
    });
    let padded = SUITES.iter().find(|padded| padded.common.suite == plain.suite());
    padded.map_or(plain, SupportedCipherSuite::Tls13)
}

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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn flights_and_records(tls: TlsSettings, seed: u64, message: &[u8]) -> (Vec<(Side, Vec<u8>)>, Vec<u8>) {
        let identity = ServerIdentity::new("hub.example", &mut ChaCha20Rng::seed_from_u64(seed)).unwrap();
        let time_ns = 1_767_600_000_000_000_000;
        let random = ChaCha20Rng::seed_from_u64(seed);
        let mut session = TlsSession::new(&identity, tls, "http/1.1", time_ns, random).unwrap();
        (session.handshake().unwrap(), session.seal(Side::Server, message, &[]).unwrap())
    }

    #[test]
    fn sessions_are_reproducible_and_differ_by_seed() {
        for version in [Version::Tls12, Version::Tls13] {
            let aead = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
            let cbc = [Suite::Aes128CbcSha, Suite::Aes256CbcSha, Suite::Aes128CbcSha256];
            let offered = if version == Version::Tls12 { &[aead, cbc][..] } else { &[aead] };
            for suite in offered.iter().flatten().copied() {
                let tls = TlsSettings { version, suite, chunk: 0 };
                let message = [7; 100];
                let (flights, records) = flights_and_records(tls, 5, &message);
                assert_eq!(
                    (&flights, &records),
                    (&flights_and_records(tls, 5, &message).0, &flights_and_records(tls, 5, &message).1)
                );
                assert_ne!(records, flights_and_records(tls, 6, &message).1);
                let overhead = match (version, suite) {
                    (Version::Tls13, _) => 17,
                    (Version::Tls12, Suite::ChaCha20Poly1305) => 16,
                    (Version::Tls12, Suite::Aes128Gcm | Suite::Aes256Gcm) => 24,
                    // Initialisation vector, MAC, and padding to whole blocks.
                    (Version::Tls12, Suite::Aes128CbcSha256) => 16 + 32 + 12,
                    (Version::Tls12, _) => 16 + 20 + 8,
                };
                assert_eq!(record_lengths(&records), [100 + overhead]);
            }
        }
    }

    #[test]
    fn long_and_chunked_messages_have_several_records() {
        let tls = |chunk| TlsSettings { version: Version::Tls13, suite: Suite::Aes128Gcm, chunk };
        assert_eq!(record_lengths(&flights_and_records(tls(0), 1, &vec![1; 100_000]).1).len(), 7);
        assert_eq!(record_lengths(&flights_and_records(tls(40), 1, &[1; 100]).1), [57, 57, 37]);
    }

    #[test]
    fn records_of_tls_1_3_are_padded_and_read_back() {
        for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
            let identity = ServerIdentity::new("hub.example", &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
            let tls = TlsSettings { version: Version::Tls13, suite, chunk: 40 };
            let random = ChaCha20Rng::seed_from_u64(1);
            let mut session = TlsSession::new(&identity, tls, "mqtt", 1_767_600_000_000_000_000, random).unwrap();
            session.handshake().unwrap();
            let lengths = |session: &mut TlsSession, side, padding: &[usize]| {
                record_lengths(&session.seal(side, &[1; 100], padding).unwrap())
            };
            assert_eq!(lengths(&mut session, Side::Server, &[0, 1, 16_364]), [57, 58, 37 + 16_364]);
            assert_eq!(lengths(&mut session, Side::Client, &[30]), [87, 57, 37], "the others are not padded");
        }
    }
}
