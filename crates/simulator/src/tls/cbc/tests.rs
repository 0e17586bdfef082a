//! Modified records, and a session with OpenSSL, which has its own implementation of these suites.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ContentType, ProtocolVersion, RootCertStore, Stream};

use super::super::session::provider;
use super::*;
use crate::scenario::{Suite, TlsSettings, Version};
use crate::tls::{InstalledGenerator, ServerIdentity};

type Sha1Keys = DirectionKeys<Aes128, Hmac<Sha1>>;

fn sealed(message: &[u8]) -> Vec<u8> {
    let chunks = [message];
    let message = OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_2,
        payload: rustls::crypto::cipher::OutboundChunks::new(&chunks),
    };
    Sha1Keys::new(&[1; 20], &[2; 16]).encrypt(message, 5).unwrap().encode().split_off(5)
}

fn opened(mut record: Vec<u8>, sequence: u64) -> Option<Vec<u8>> {
    let message = InboundOpaqueMessage::new(ContentType::ApplicationData, ProtocolVersion::TLSv1_2, &mut record);
    let message = Sha1Keys::new(&[1; 20], &[2; 16]).decrypt(message, sequence).ok()?;
    Some(message.payload.to_vec())
}

#[test]
fn invalid_padding_is_rejected() {
    assert_eq!(unpadded(&[7, 7, 0]), Some(&[7, 7][..]));
    assert_eq!(unpadded(&[7, 2, 2, 2]), Some(&[7][..]));
    assert_eq!(unpadded(&[7, 1, 2, 2]), None);
    assert_eq!(unpadded(&[2, 2]), None);
    assert_eq!(unpadded(&[]), None);
}

#[test]
fn modified_records_are_rejected() {
    let _installed = InstalledGenerator::new(ChaCha20Rng::seed_from_u64(1));
    for length in 0..40 {
        let message = vec![9; length];
        let record = sealed(&message);
        assert_eq!(opened(record.clone(), 5).as_ref(), Some(&message));
        assert_eq!(opened(record.clone(), 6), None, "the sequence number is authenticated");
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 1;
            assert_eq!(opened(changed, 5), None, "byte {at} of {length}");
        }
        for cut in 0..record.len() {
            assert_eq!(opened(record[..cut].to_vec(), 5), None);
        }
    }
    assert_ne!(sealed(&[1]), sealed(&[1]), "each record has its own initialisation vector");
}

/// An OpenSSL server that returns each line reversed.
struct OpensslServer(Child);

impl OpensslServer {
    /// Starts a server that accepts only one suite. Returns it with its port.
    fn start(folder: &Path, suite: &str) -> (Self, u16) {
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-rev", "-tls1_2", "-cert", "certificate.pem", "-key"])
            .args(["key.pem", "-cipher", &format!("{suite}:@SECLEVEL=0"), "-naccept", "1"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut ports = lines.filter_map(|line| line.strip_prefix("ACCEPT ")?.rsplit_once(':')?.1.parse().ok());
        let port = ports.next().unwrap();
        (Self(child), port)
    }
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pem(kind: &str, der: &[u8]) -> String {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", BASE64_STANDARD.encode(der))
}

#[test]
#[ignore = "second tier: needs openssl"]
fn openssl_accepts_our_records_and_we_accept_its_records() {
    let mut random = ChaCha20Rng::seed_from_u64(4);
    let ServerIdentity { certificate, key, .. } = ServerIdentity::new("hub.example", &mut random).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("certificate.pem"), pem("CERTIFICATE", &certificate)).unwrap();
    std::fs::write(folder.path().join("key.pem"), pem("PRIVATE KEY", key.secret_pkcs8_der())).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let _installed = InstalledGenerator::new(random);
    let suites = [
        (Suite::Aes128CbcSha, "ECDHE-ECDSA-AES128-SHA"),
        (Suite::Aes256CbcSha, "ECDHE-ECDSA-AES256-SHA"),
        (Suite::Aes128CbcSha256, "ECDHE-ECDSA-AES128-SHA256"),
    ];
    for (suite, name) in suites {
        let (_server, port) = OpensslServer::start(folder.path(), name);
        let provider = provider(TlsSettings { version: Version::Tls12, suite, chunk: 0 });
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS12])
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from("hub.example").unwrap()).unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let mut stream = Stream::new(&mut client, &mut socket);
        for length in 1..40 {
            let line: String = ('a'..='z').cycle().take(length).collect();
            stream.write_all(format!("{line}\n").as_bytes()).unwrap();
            let mut answer = vec![0; length + 1];
            stream.read_exact(&mut answer).unwrap();
            let expected: String = line.chars().rev().chain(['\n']).collect();
            assert_eq!(String::from_utf8(answer).unwrap(), expected, "{name}");
        }
    }
}
