//! The TLS session of a flow: which end is the client, what protects the records, and whether keys are being agreed.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, PerDirection, Protocol, Session};
use tls_parser::TlsCipherSuite;

use crate::handshake::{ClientHello, Hello, ServerHello, TLCP_1_1};
use crate::plaintext::{Protection, exactly, is_1_3};
use crate::record::Header;
use crate::tls13::{Endpoint, Tls13Handshake};

/// The state of a session while a handshake is under way.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Negotiation {
    phase: Phase,
    client: Option<Direction>,
    client_hello: Option<Box<ClientHello>>,
    server_hello: Option<ServerHello>,
    /// Whether a `session` frame was made of these hellos.
    is_reported: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
enum Phase {
    /// No handshake was seen, or it is over.
    #[default]
    Idle,
    /// The client's hello was seen.
    Hellos,
    /// Up to TLS 1.2: until both ends have sent their `Finished`.
    KeyExchange,
    Tls13(Box<Tls13Handshake>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordDetails {
    /// The least and the most bytes of plaintext, where they are known.
    pub(crate) plaintext: Option<[u64; 2]>,
    pub(crate) handshake: bool,
}

impl Negotiation {
    /// Whether no handshake is under way. Nothing else here matters then.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.client_hello.is_none()
    }

    /// The bytes of connection ids in records to the client and to the server, if both hellos ask for ids.
    pub(crate) fn connection_ids(&self) -> Option<[u8; 2]> {
        Some([self.client_hello.as_ref()?.connection_id?, self.server_hello?.connection_id?])
    }

    /// Whether a handshake is under way, up to its last `Finished`.
    pub(crate) fn agrees_keys(&self) -> bool {
        match &self.phase {
            Phase::Hellos | Phase::KeyExchange => true,
            Phase::Tls13(handshake) => handshake.is_open(),
            Phase::Idle => false,
        }
    }

    fn end(&mut self) {
        (self.phase, self.client_hello) = (Phase::Idle, None);
    }
}

/// A session with the state it changes. If its handshake was not captured, its keys are unknown.
#[derive(Debug)]
pub(crate) struct TlsSession<'a> {
    pub(crate) keys: &'a mut SessionKeys,
    pub(crate) negotiation: &'a mut Negotiation,
}

impl TlsSession<'_> {
    /// Takes a hello. True if it completes what there is to report.
    pub(crate) fn hello(&mut self, hello: Hello, direction: Direction, time_ns: i64) -> bool {
        match hello {
            Hello::Client(hello) => self.client_hello(hello, direction),
            Hello::Server(hello) => self.server_hello(hello, direction, time_ns),
        }
    }

    /// Takes a `ClientHello`. It is reported once the server has answered, or once application data follow.
    fn client_hello(&mut self, hello: ClientHello, direction: Direction) -> bool {
        let negotiation = &mut *self.negotiation;
        negotiation.client = Some(direction);
        let is_answered = matches!(negotiation.phase, Phase::KeyExchange | Phase::Tls13(_));
        if is_answered && negotiation.client_hello.as_deref() == Some(&hello) {
            // A retransmitted datagram.
            return false;
        }
        // Where packets were captured out of order, the server's hello may be seen first.
        let is_late = negotiation.client_hello.is_none() && is_answered;
        negotiation.client_hello = Some(Box::new(hello));
        if is_late {
            return true;
        }
        *self.keys = SessionKeys::clear();
        (negotiation.phase, negotiation.server_hello, negotiation.is_reported) = (Phase::Hellos, None, false);
        false
    }

    fn server_hello(&mut self, hello: ServerHello, direction: Direction, time_ns: i64) -> bool {
        let negotiation = &mut *self.negotiation;
        negotiation.client = Some(direction.reversed());
        if hello.retry {
            return false;
        }
        if !matches!(negotiation.phase, Phase::Hellos) {
            // The client's hello of this handshake was not captured.
            negotiation.client_hello = None;
            *self.keys = SessionKeys::clear();
        }
        let protection = Protection::of(hello);
        let is_1_3 = is_1_3(hello.version);
        for state in [&mut self.keys.states.to_gateway, &mut self.keys.states.from_gateway] {
            if is_1_3 || *state == KeyState::Early {
                *state = KeyState::Protected;
            }
        }
        (self.keys.protection, self.keys.is_1_3) = (Some(protection), is_1_3);
        negotiation.phase = if is_1_3 {
            let early_data = negotiation.client_hello.as_ref().is_some_and(|hello| hello.early_data);
            let added = if let Protection::Added(added) = protection { added.into() } else { 17 };
            Phase::Tls13(Box::new(Tls13Handshake::new(hello, added, early_data, time_ns)))
        } else {
            Phase::KeyExchange
        };
        (negotiation.server_hello, negotiation.is_reported) = (Some(hello), true);
        true
    }

    pub(crate) fn record(&mut self, header: Header, direction: Direction, time_ns: i64) -> RecordDetails {
        let handshake = match header.content_type {
            ContentType::ChangeCipherSpec | ContentType::Handshake => true,
            ContentType::Alert | ContentType::Heartbeat | ContentType::Acknowledgement => {
                self.negotiation.agrees_keys()
            }
            ContentType::ApplicationData => self.hides_handshake(header, direction, time_ns),
        };
        let details = RecordDetails { plaintext: self.keys.plaintext(header, direction), handshake };
        self.change_keys(header, direction);
        details
    }

    /// Takes a record of DTLS up to 1.2. Its epoch shows whether it is protected, even where the change to that was lost.
    /// Where it hides its content type, it has a byte less of plaintext, and the first one of an end is its `Finished`.
    pub(crate) fn dtls_record(
        &mut self,
        header: Header,
        direction: Direction,
        (epoch, hides_type): (u16, bool),
        time_ns: i64,
    ) -> RecordDetails {
        let known = self.keys.protection.is_some();
        let state = self.keys.states.of_mut(direction);
        match (epoch, *state) {
            (0, KeyState::Protected | KeyState::Finished | KeyState::Early) => {
                return RecordDetails { plaintext: Some(exactly(header.length)), handshake: true };
            }
            (1, KeyState::Clear) => *state = if known { KeyState::Protected } else { KeyState::Early },
            _ => {}
        }
        let before = *state;
        if epoch > 1 {
            // Keys were renewed, perhaps for another suite.
            *state = KeyState::Unknown;
        }
        let hides_finished = hides_type && *state == KeyState::Protected;
        let content_type = if hides_finished { ContentType::Handshake } else { header.content_type };
        let RecordDetails { plaintext, handshake } = self.record(Header { content_type, ..header }, direction, time_ns);
        // A record of other keys takes nothing from those that follow: it may be forged.
        let state = self.keys.states.of_mut(direction);
        *state = if *state == KeyState::Unknown { before } else { *state };
        let hidden = u64::from(hides_type);
        RecordDetails { plaintext: plaintext.map(|bounds| bounds.map(|bytes| bytes.saturating_sub(hidden))), handshake }
    }

    /// Takes a protected record of DTLS 1.3: keys of the handshake have epoch 2, those of early data 1 (RFC 9147, section
    /// 6.1).
    pub(crate) fn dtls13_record(&mut self, header: Header, epoch: u16) -> RecordDetails {
        // Of a session that was joined in its middle, a later epoch may have the same bits.
        let handshake = epoch == 2 && self.keys.is_1_3;
        if epoch > 2 && self.keys.is_1_3 {
            self.negotiation.end();
        }
        let plaintext = self.keys.protection.and_then(|protection| protection.plaintext(header.length));
        RecordDetails { plaintext, handshake }
    }

    /// Whether this record is application data although no server's hello was seen: the client's hello is then all that
    /// will be reported. True once.
    pub(crate) fn starts_unanswered(&mut self, header: Header) -> bool {
        let Negotiation { client_hello, is_reported, .. } = &mut *self.negotiation;
        let is_due = !*is_reported && client_hello.is_some() && header.content_type == ContentType::ApplicationData;
        *is_reported |= is_due;
        is_due
    }

    pub(crate) fn frame(&self, flow: u64, time_ns: i64, protocol: Protocol) -> Session {
        let Negotiation { client_hello, server_hello, .. } = &*self.negotiation;
        Session {
            time_ns,
            flow,
            server_name: client_hello.as_ref().and_then(|hello| hello.server_name.as_deref().map(str::to_owned)),
            tls_version: server_hello.map(|hello| version_name(hello.version)),
            cipher_suite: server_hello.map(|hello| suite_name(hello.cipher_suite)),
            protocol: Some(protocol.name().to_owned()),
        }
    }

    /// Whether application data carry the handshake, as in TLS 1.3.
    fn hides_handshake(&mut self, header: Header, direction: Direction, time_ns: i64) -> bool {
        let is_client = self.negotiation.client == Some(direction);
        let Phase::Tls13(handshake) = &mut self.negotiation.phase else { return false };
        let endpoint = if is_client { Endpoint::Client } else { Endpoint::Server };
        let is_handshake = handshake.record(endpoint, header.length, time_ns);
        if handshake.is_over() {
            self.negotiation.end();
        }
        is_handshake
    }

    fn change_keys(&mut self, header: Header, direction: Direction) {
        if self.keys.is_1_3 {
            return;
        }
        let known = self.keys.protection.is_some();
        let state = self.keys.states.of_mut(direction);
        match (header.content_type, *state) {
            (ContentType::ChangeCipherSpec, KeyState::Clear) => {
                *state = if known { KeyState::Protected } else { KeyState::Early };
            }
            // Keys are renewed under the protection of the old ones: the new suite cannot be seen.
            (ContentType::ChangeCipherSpec, KeyState::Protected | KeyState::Finished) => *state = KeyState::Unknown,
            (ContentType::Handshake, KeyState::Protected) => {
                *state = KeyState::Finished;
                if self.keys.states.all(|state| *state == KeyState::Finished) {
                    self.negotiation.end();
                }
            }
            _ => {}
        }
    }
}

fn version_name(version: u16) -> String {
    match version {
        0x0002 => "SSL 2.0".into(),
        TLCP_1_1 => "TLCP 1.1".into(),
        0x0300 => "SSL 3.0".into(),
        0x0301 => "TLS 1.0".into(),
        0x0302 => "TLS 1.1".into(),
        0x0303 => "TLS 1.2".into(),
        0x0304 => "TLS 1.3".into(),
        0x7f00..=0x7fff => format!("TLS 1.3 draft {}", version & 0xff),
        0x0100 | 0xfeff => "DTLS 1.0".into(),
        0xfefd => "DTLS 1.2".into(),
        0xfefc => "DTLS 1.3".into(),
        other => format!("{other:#06x}"),
    }
}

fn suite_name(suite: u16) -> String {
    TlsCipherSuite::from_id(suite).map_or_else(|| format!("{suite:#06x}"), |suite| suite.name.to_owned())
}

/// The protection that the server chose, and which directions use it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionKeys {
    /// By the last `ServerHello`; `None` before it.
    pub(crate) protection: Option<Protection>,
    pub(crate) is_1_3: bool,
    pub(crate) states: PerDirection<KeyState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeyState {
    #[default]
    Unknown,
    /// Nothing yet.
    Clear,
    /// To be shown by the server's hello, which is still to come.
    Early,
    Protected,
    /// The same, after the `Finished` of TLS 1.2 and earlier versions.
    Finished,
}

impl SessionKeys {
    /// Those of a connection that has just started.
    pub(crate) fn clear() -> Self {
        Self { states: PerDirection::same(KeyState::Clear), ..Self::default() }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a record")]
    pub(crate) fn plaintext(self, header: Header, direction: Direction) -> Option<[u64; 2]> {
        let is_data = header.content_type == ContentType::ApplicationData;
        match self.states.of(direction) {
            KeyState::Clear if !is_data => Some(exactly(header.length)),
            KeyState::Protected | KeyState::Finished if !is_data && self.is_1_3 => Some(exactly(header.length)),
            KeyState::Protected | KeyState::Finished => self.protection?.plaintext(header.length),
            KeyState::Unknown | KeyState::Early | KeyState::Clear => None,
        }
    }
}

#[cfg(test)]
mod tests;
