//! Handshake messages out of the bodies of handshake records: the two hellos, and no more (RFC 8446 section 4).

use tls_parser::{
    DTLSMessage, DTLSMessageHandshakeBody, SNIType, TlsExtension, TlsMessage, TlsMessageHandshake,
    TlsServerHelloContents, parse_dtls_message_handshake, parse_tls_client_hello_extension,
    parse_tls_message_handshake, parse_tls_server_hello_extension,
};

use crate::hello::MOST_MESSAGE;

/// Bytes of a message's header.
const HEADER: usize = 4;

/// No message is longer: a chain of certificates, of which nothing is kept.
const MOST_SKIPPED: u32 = 1 << 20;

/// A name in DNS has no more bytes.
const MOST_NAME: usize = 255;

/// The number of the extension `encrypt_then_mac`.
const ENCRYPT_THEN_MAC: u16 = 22;

/// The `ServerHello.random` that makes it a `HelloRetryRequest` (RFC 8446 section 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// A hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hello {
    Client(ClientHello),
    Server(ServerHello),
}

/// What matters of a `ClientHello`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientHello {
    pub(crate) server_name: Option<Box<str>>,
    /// Whether data may follow before the server has answered (RFC 8446 section 4.2.10).
    pub(crate) early_data: bool,
}

/// What matters of a `ServerHello`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerHello {
    /// The negotiated version as on the wire, `0x0303` for TLS 1.2.
    pub(crate) version: u16,
    pub(crate) cipher_suite: u16,
    pub(crate) compressed: bool,
    pub(crate) encrypt_then_mac: bool,
    /// A `HelloRetryRequest`: the client greets again.
    pub(crate) retry: bool,
}

/// Puts messages together that are split over records, or share one.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    state: State,
}

#[derive(Debug)]
enum State {
    Header {
        bytes: [u8; HEADER],
        have: u8,
    },
    Hello(Box<Partial>),
    Other {
        left: u32,
    },
    /// Out of step until the record ends.
    Lost,
}

/// A hello of which some bytes are still to come.
#[derive(Debug)]
struct Partial {
    message: Vec<u8>,
    /// Of the whole message.
    length: usize,
}

impl Default for State {
    fn default() -> Self {
        Self::Header { bytes: [0; HEADER], have: 0 }
    }
}

impl Messages {
    /// Takes bytes of a record's body; hands on the hellos they complete.
    pub(crate) fn take(&mut self, mut body: &[u8], mut found: impl FnMut(Hello)) {
        while !body.is_empty() {
            match &mut self.state {
                State::Header { bytes, have } => {
                    let places = bytes.iter_mut().skip((*have).into());
                    let count = places.zip(body).map(|(place, byte)| *place = *byte).count();
                    *have += count as u8;
                    body = body.get(count..).unwrap_or_default();
                    if usize::from(*have) == HEADER {
                        self.state = after_header(*bytes);
                    }
                }
                State::Hello(partial) => {
                    let Partial { message, length } = &mut **partial;
                    let (now, rest) = body.split_at(body.len().min(*length - message.len()));
                    message.extend_from_slice(now);
                    body = rest;
                    if message.len() == *length {
                        if let Some(hello) = hello(message) {
                            found(hello);
                        }
                        self.state = State::default();
                    }
                }
                State::Other { left } => {
                    let now = body.len().min(*left as usize);
                    *left -= now as u32;
                    body = body.get(now..).unwrap_or_default();
                    if *left == 0 {
                        self.state = State::default();
                    }
                }
                State::Lost => return,
            }
        }
    }

    /// Some bytes are missing.
    pub(crate) fn lost(&mut self) {
        self.state = State::Lost;
    }

    /// A record ends. A message begins with the next one, if nothing else is known.
    pub(crate) fn end_of_record(&mut self) {
        if matches!(self.state, State::Lost) {
            self.state = State::default();
        }
    }

    /// Starts afresh.
    pub(crate) fn restart(&mut self) {
        self.state = State::default();
    }

    /// Whether the next byte begins a message.
    pub(crate) fn is_between(&self) -> bool {
        matches!(self.state, State::Header { have: 0, .. })
    }

    /// Bytes of memory held by a message that is not complete.
    pub(crate) fn held(&self) -> usize {
        if let State::Hello(partial) = &self.state { partial.message.capacity() } else { 0 }
    }
}

fn after_header(bytes: [u8; HEADER]) -> State {
    let [kind, long, middle, short] = bytes;
    let left = u32::from_be_bytes([0, long, middle, short]);
    match (kind, left) {
        (1 | 2, 38..=MOST_MESSAGE) => {
            State::Hello(Box::new(Partial { message: bytes.to_vec(), length: HEADER + left as usize }))
        }
        (_, 0) => State::default(),
        // RFC 8446 section 4 and what TLS 1.2 has besides; anything else is ciphertext.
        (0 | 3..=5 | 8 | 11..=16 | 20..=25, 1..=MOST_SKIPPED) => State::Other { left },
        _ => State::Lost,
    }
}

fn hello(message: &[u8]) -> Option<Hello> {
    let Ok((_, TlsMessage::Handshake(message))) = parse_tls_message_handshake(message) else { return None };
    match message {
        TlsMessageHandshake::ClientHello(hello) => Some(Hello::Client(client_hello(hello.ext))),
        TlsMessageHandshake::ServerHello(hello) => Some(Hello::Server(server_hello(&hello))),
        TlsMessageHandshake::ServerHelloV13Draft18(hello) => Some(Hello::Server(ServerHello {
            version: hello.version.0,
            cipher_suite: hello.cipher.0,
            compressed: false,
            encrypt_then_mac: false,
            retry: false,
        })),
        _ => None,
    }
}

/// What a DTLS handshake message, from its header of 12 bytes on, is; `None` unless it is a whole hello.
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
    for (_, extension) in each(extensions.unwrap_or_default()) {
        match parse_tls_client_hello_extension(extension) {
            Ok((_, TlsExtension::SNI(names))) => {
                let host = names.into_iter().find(|(kind, _)| *kind == SNIType::HostName).map(|(_, name)| name);
                hello.server_name = host.and_then(server_name);
            }
            Ok((_, TlsExtension::EarlyData(_))) => hello.early_data = true,
            _ => {}
        }
    }
    hello
}

/// The extensions one by one, each with its type: one that cannot be parsed must not hide those after it.
fn each(mut extensions: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [kind_high, kind_low, high, low, ..] = extensions else { return None };
        let (kind, length) = (u16::from_be_bytes([*kind_high, *kind_low]), u16::from_be_bytes([*high, *low]));
        let (extension, rest) = extensions.split_at_checked(4 + usize::from(length))?;
        extensions = rest;
        Some((kind, extension))
    })
}

fn server_name(bytes: &[u8]) -> Option<Box<str>> {
    let name = std::str::from_utf8(bytes).ok()?;
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic());
    (printable && (1..=MOST_NAME).contains(&name.len())).then(|| name.into())
}

fn server_hello(hello: &TlsServerHelloContents<'_>) -> ServerHello {
    let mut seen = ServerHello {
        version: hello.version.0,
        cipher_suite: hello.cipher.0,
        compressed: hello.compression.0 != 0,
        encrypt_then_mac: false,
        retry: hello.random == RETRY,
    };
    for (kind, extension) in each(hello.ext.unwrap_or_default()) {
        // RFC 7366; the parser knows it under another number.
        seen.encrypt_then_mac |= kind == ENCRYPT_THEN_MAC;
        if let Ok((_, TlsExtension::SupportedVersions(versions))) = parse_tls_server_hello_extension(extension) {
            seen.version = versions.first().map_or(seen.version, |version| version.0);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, 0, (body.len() >> 8) as u8, body.len() as u8], body].concat()
    }

    fn server(random: &[u8; 32], extensions: &[u8]) -> Vec<u8> {
        let length = [0, extensions.len() as u8];
        message(2, &[&[3, 3], random.as_slice(), &[0, 0x13, 0x01, 0], &length, extensions].concat())
    }

    fn client(extensions: &[u8]) -> Vec<u8> {
        let length = [0, extensions.len() as u8];
        message(1, &[&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 0x01, 1, 0], &length, extensions].concat())
    }

    fn hellos(messages: &mut Messages, body: &[u8], step: usize) -> Vec<Hello> {
        let mut found = Vec::new();
        for bytes in body.chunks(step) {
            messages.take(bytes, |hello| found.push(hello));
        }
        found
    }

    const NAME: [u8; 16] = *b"\0\0\0\x0c\0\x0a\0\0\x07hub.iot";
    const VERSION: [u8; 6] = [0, 43, 0, 2, 3, 4];

    #[test]
    fn hellos_among_other_messages_and_in_fragments() {
        let early_data = [0, 42, 0, 0];
        let all =
            [client(&[&NAME[..], &early_data].concat()), message(11, &[1; 300]), server(&[9; 32], &VERSION)].concat();
        for step in [1, 3, 50, 1000] {
            let found = hellos(&mut Messages::default(), &all, step);
            let [Hello::Client(client), Hello::Server(server)] = &found[..] else { panic!("{found:?}") };
            assert_eq!((client.server_name.as_deref(), client.early_data), (Some("hub.iot"), true));
            assert_eq!((server.version, server.cipher_suite, server.retry), (0x0304, 0x1301, false));
        }
    }

    #[test]
    fn retries_and_encrypt_then_mac() {
        let found = hellos(&mut Messages::default(), &server(&RETRY, &[0, 22, 0, 0]), 99);
        let [Hello::Server(hello)] = &found[..] else { panic!("{found:?}") };
        assert!(hello.retry && hello.encrypt_then_mac && hello.version == 0x0303);
    }

    #[test]
    fn ciphertext_ends_with_its_record() {
        let mut messages = Messages::default();
        assert!(hellos(&mut messages, &[0x9f; 40], 40).is_empty());
        assert!(hellos(&mut messages, &client(&[]), 99).is_empty());
        messages.end_of_record();
        assert_eq!(hellos(&mut messages, &client(&[]), 99).len(), 1);
        messages.take(&client(&NAME)[..20], |_| panic!());
        assert!(messages.held() > 0);
        messages.lost();
        assert_eq!(messages.held(), 0);
    }

    #[test]
    fn names_that_are_none() {
        assert_eq!(server_name(b"a\nb"), None);
        assert_eq!(server_name(&[b'a'; 256]), None);
        assert_eq!(server_name(b""), None);
    }
}
