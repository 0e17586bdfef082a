//! Reads the two hellos out of the bodies of handshake records, and skips all other messages (RFC 8446 section 4).

use serde::{Deserialize, Serialize};
use tls_parser::{
    DTLSMessage, DTLSMessageHandshakeBody, SNIType, TlsExtension, TlsMessage, TlsMessageHandshake,
    TlsServerHelloContents, parse_dtls_message_handshake, parse_tls_client_hello_extension,
    parse_tls_message_handshake, parse_tls_server_hello_extension,
};

use crate::resync::MAX_HELLO;

const HEADER: usize = 4;

/// The longest message that is skipped, in bytes: a certificate chain.
const MAX_SKIPPED: u32 = 1 << 20;

/// The longest DNS name, in bytes.
const MAX_NAME: usize = 255;

const CONNECTION_ID: u16 = 54;

const ENCRYPT_THEN_MAC: u16 = 22;

/// The version of TLCP (GB/T 38636) as on the wire.
pub(crate) const TLCP_1_1: u16 = 0x0101;

/// The `ServerHello.random` that makes it a `HelloRetryRequest` (RFC 8446 section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Hello {
    Client(ClientHello),
    Server(ServerHello),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientHello {
    pub(crate) server_name: Option<Box<str>>,
    /// Whether data may follow before the server has answered (RFC 8446 section 4.2.10).
    pub(crate) early_data: bool,
    /// Bytes of the id in records that it receives (RFC 9146), if it can receive any.
    pub(crate) connection_id: Option<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerHello {
    /// The negotiated version as on the wire, `0x0303` for TLS 1.2.
    pub(crate) version: u16,
    pub(crate) cipher_suite: u16,
    pub(crate) compressed: bool,
    pub(crate) encrypt_then_mac: bool,
    /// A `HelloRetryRequest`: the client sends another hello.
    pub(crate) retry: bool,
    /// Bytes of the id in records that it receives (RFC 9146), if ids are used.
    pub(crate) connection_id: Option<u8>,
}

/// Reads the messages of one direction, however they are split over records.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HandshakeReader {
    Header {
        bytes: [u8; HEADER],
        have: u8,
    },
    Hello(Box<PartialHello>),
    /// In another message, of which `left` bytes are to come.
    Other {
        left: u32,
    },
    /// Out of step until the record ends.
    Lost,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartialHello {
    #[serde(with = "serde_bytes")]
    message: Vec<u8>,
    /// Bytes of the whole message.
    length: usize,
}

impl Default for HandshakeReader {
    fn default() -> Self {
        Self::Header { bytes: [0; HEADER], have: 0 }
    }
}

impl HandshakeReader {
    /// Reads bytes of a record body; calls `found` with each hello they complete, and `read` with those that are not
    /// skipped and their offset.
    pub(crate) fn bytes(&mut self, mut body: &[u8], mut found: impl FnMut(Hello), mut read: impl FnMut(usize, &[u8])) {
        let length = body.len();
        while !body.is_empty() {
            let offset = length - body.len();
            match self {
                Self::Header { bytes, have } => {
                    let places = bytes.iter_mut().skip((*have).into());
                    let count = places.zip(body).map(|(place, byte)| *place = *byte).count();
                    *have += count as u8;
                    let (now, rest) = body.split_at(count);
                    read(offset, now);
                    body = rest;
                    if usize::from(*have) == HEADER {
                        *self = after_header(*bytes);
                    }
                }
                Self::Hello(partial) => {
                    let PartialHello { message, length } = &mut **partial;
                    let (now, rest) = body.split_at(body.len().min(*length - message.len()));
                    message.extend_from_slice(now);
                    read(offset, now);
                    body = rest;
                    if message.len() == *length {
                        if let Some(hello) = hello(message) {
                            found(hello);
                        }
                        *self = Self::default();
                    }
                }
                Self::Other { left } => {
                    let now = body.len().min(*left as usize);
                    *left -= now as u32;
                    body = body.get(now..).unwrap_or_default();
                    if *left == 0 {
                        *self = Self::default();
                    }
                }
                Self::Lost => return,
            }
        }
    }

    /// Passes over missing bytes. Returns the client's hello that they are part of, as far as it was seen: each of its
    /// extensions stands alone. A server's hello says its version last.
    #[must_use]
    pub(crate) fn bytes_lost(&mut self) -> Option<Hello> {
        let Self::Hello(partial) = std::mem::replace(self, Self::Lost) else { return None };
        let PartialHello { mut message, length } = *partial;
        // Zeros are empty extensions, of which only the first of a kind counts.
        message.resize(length, 0);
        hello(&message).filter(|hello| matches!(hello, Hello::Client(hello) if hello.server_name.is_some()))
    }

    /// Ends a record. If the reader is out of step, a message starts with the next one.
    pub(crate) fn end_of_record(&mut self) {
        if matches!(self, Self::Lost) {
            *self = Self::default();
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Header { have: 0, .. })
    }

    pub(crate) fn held_bytes(&self) -> usize {
        if let Self::Hello(partial) = self { partial.message.len().next_power_of_two() } else { 0 }
    }
}

fn after_header(bytes: [u8; HEADER]) -> HandshakeReader {
    let [kind, long, middle, short] = bytes;
    let left = u32::from_be_bytes([0, long, middle, short]);
    match (kind, left) {
        (1 | 2, 38..=MAX_HELLO) => {
            HandshakeReader::Hello(Box::new(PartialHello { message: bytes.to_vec(), length: HEADER + left as usize }))
        }
        (_, 0) => HandshakeReader::default(),
        // The messages of TLS 1.3 (RFC 8446 section 4) and of TLS 1.2; anything else is ciphertext.
        (0 | 3..=5 | 8 | 11..=16 | 20..=25, 1..=MAX_SKIPPED) => HandshakeReader::Other { left },
        _ => HandshakeReader::Lost,
    }
}

fn hello(message: &[u8]) -> Option<Hello> {
    let Some((header, [1, 1, body @ ..])) = message.split_at_checked(HEADER) else { return tls_hello(message) };
    // The parser does not know the version of TLCP, whose hellos have the form of TLS 1.2.
    match tls_hello(&[header, &[3, 3], body].concat())? {
        Hello::Server(hello) => Some(Hello::Server(ServerHello { version: TLCP_1_1, ..hello })),
        client @ Hello::Client(_) => Some(client),
    }
}

fn tls_hello(message: &[u8]) -> Option<Hello> {
    let Ok((_, TlsMessage::Handshake(message))) = parse_tls_message_handshake(message) else { return None };
    match message {
        TlsMessageHandshake::ClientHello(hello) => Some(Hello::Client(client_hello(hello.ext))),
        TlsMessageHandshake::ServerHello(hello) => Some(Hello::Server(server_hello(&hello))),
        TlsMessageHandshake::ServerHelloV13Draft18(hello) => Some(Hello::Server(ServerHello {
            version: hello.version.0,
            cipher_suite: hello.cipher.0,
            ..ServerHello::default()
        })),
        _ => None,
    }
}

/// Parses a DTLS handshake message, from its 12-byte header on; `None` unless it is a whole hello.
pub(crate) fn datagram_hello(message: &[u8]) -> Option<Hello> {
    let Ok((_, DTLSMessage::Handshake(message))) = parse_dtls_message_handshake(message) else { return None };
    match message.body {
        DTLSMessageHandshakeBody::ClientHello(hello) => Some(Hello::Client(client_hello(hello.ext))),
        DTLSMessageHandshakeBody::ServerHello(hello) => Some(Hello::Server(server_hello(&hello))),
        _ => None,
    }
}

fn client_hello(extensions: Option<&[u8]>) -> ClientHello {
    let mut hello = ClientHello::default();
    for (kind, extension) in each_extension(extensions.unwrap_or_default()) {
        hello.connection_id = hello.connection_id.or(connection_id(kind, extension));
        match parse_tls_client_hello_extension(extension) {
            Ok((_, TlsExtension::SNI(names))) => {
                let host = names.into_iter().find(|(kind, _)| *kind == SNIType::HostName).map(|(_, name)| name);
                hello.server_name = hello.server_name.or_else(|| host.and_then(server_name));
            }
            Ok((_, TlsExtension::EarlyData(_))) => hello.early_data = true,
            _ => {}
        }
    }
    hello
}

/// The extensions one by one, each with its type: one that cannot be parsed must not hide those after it.
fn each_extension(mut extensions: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [kind_high, kind_low, high, low, ..] = extensions else { return None };
        let (kind, length) = (u16::from_be_bytes([*kind_high, *kind_low]), u16::from_be_bytes([*high, *low]));
        let (extension, rest) = extensions.split_at_checked(4 + usize::from(length))?;
        extensions = rest;
        Some((kind, extension))
    })
}

/// The bytes of the connection id in an extension, if it is one with an id of the length that it says.
fn connection_id(kind: u16, extension: &[u8]) -> Option<u8> {
    let [_, _, _, _, length, id @ ..] = extension else { return None };
    (kind == CONNECTION_ID && id.len() == usize::from(*length)).then_some(*length)
}

fn server_name(bytes: &[u8]) -> Option<Box<str>> {
    let name = std::str::from_utf8(bytes).ok()?;
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic());
    (printable && (1..=MAX_NAME).contains(&name.len())).then(|| name.into())
}

fn server_hello(hello: &TlsServerHelloContents<'_>) -> ServerHello {
    let mut seen = ServerHello {
        version: hello.version.0,
        cipher_suite: hello.cipher.0,
        compressed: hello.compression.0 != 0,
        retry: hello.random == RETRY,
        ..ServerHello::default()
    };
    for (kind, extension) in each_extension(hello.ext.unwrap_or_default()) {
        // RFC 7366; the parser knows it by another number.
        seen.encrypt_then_mac |= kind == ENCRYPT_THEN_MAC;
        seen.connection_id = seen.connection_id.or(connection_id(kind, extension));
        if let Ok((_, TlsExtension::SupportedVersions(versions))) = parse_tls_server_hello_extension(extension) {
            seen.version = versions.first().map_or(seen.version, |version| version.0);
        }
    }
    seen
}

#[cfg(test)]
mod tests;
