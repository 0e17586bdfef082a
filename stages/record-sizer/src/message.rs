//! Messages of any protocol, and what finds them in a flow.
//!
//! A framer knows one protocol: what recognises it, where its messages begin and end, and how much plaintext they hold:
//! exactly, between two bounds, or at most so much. Records of TLS have a way of their own (`framer`), since their
//! boundaries have to be found again behind losses.

use std::net::SocketAddr;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol, Record, Session, Transport};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// When its first and its last byte were captured, in nanoseconds since the epoch.
    pub(crate) start_ns: i64,
    pub(crate) time_ns: i64,
    pub(crate) direction: Direction,
    pub(crate) content_type: ContentType,
    /// Bytes on the wire behind its header.
    pub(crate) length: u32,
    /// The least and the most bytes of plaintext, where they are known.
    pub(crate) plaintext: Option<[u64; 2]>,
    pub(crate) handshake: bool,
    pub(crate) protocol: Protocol,
}

impl Message {
    pub(crate) fn data(protocol: Protocol, direction: Direction, [start_ns, time_ns]: [i64; 2], length: u32) -> Self {
        let (content_type, plaintext, handshake) = (ContentType::ApplicationData, None, false);
        Self { start_ns, time_ns, direction, content_type, length, plaintext, handshake, protocol }
    }

    pub(crate) fn with_plaintext(self, plaintext: [u64; 2]) -> Self {
        Self { plaintext: Some(plaintext), ..self }
    }

    pub(crate) fn as_handshake(self) -> Self {
        Self { content_type: ContentType::Handshake, handshake: true, ..self }
    }

    pub(crate) fn frame(self, flow: u64) -> Record {
        let Self { start_ns, time_ns, direction, content_type, length, plaintext, handshake, protocol } = self;
        Record { time_ns, start_ns, flow, direction, content_type, length, plaintext, handshake, protocol }
    }
}

/// What a framer needs to be told of a flow, since its messages do not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlowEnds {
    pub(crate) transport: Transport,
    pub(crate) gateway_port: Option<u16>,
    pub(crate) service: SocketAddr,
}

impl FlowEnds {
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.gateway_port == Some(port) || self.service.port() == port
    }
}

#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) events: Vec<FlowEvent>,
    /// The bytes that were read, by their place in the chunk.
    pub(crate) read: Vec<Range<usize>>,
    pub(crate) repeated: u64,
    /// Connection ids of QUIC that both ends know: packets between other ports may have them.
    pub(crate) ids: Vec<Vec<u8>>,
    /// Earlier datagrams that are of a protocol after all.
    pub(crate) recognised: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FlowEvent {
    Message(Message),
    /// A session; whoever reports it knows its flow.
    Session(Box<Session>),
    /// Something that was assumed, or cannot be known.
    Assumed(String),
    /// Something that is recognised, but not read.
    Unsupported(String),
}

impl Found {
    pub(crate) fn message(&mut self, message: Message) {
        self.events.push(FlowEvent::Message(message));
    }

    /// A session of which nothing is known but its protocol, once for `is_reported`.
    pub(crate) fn session_once(&mut self, is_reported: &mut bool, time_ns: i64, protocol: &str) {
        if std::mem::replace(is_reported, true) {
            return;
        }
        let (server_name, tls_version, cipher_suite) = (None, None, None);
        let protocol = Some(protocol.to_owned());
        let session = Session { time_ns, flow: 0, server_name, tls_version, cipher_suite, protocol };
        self.events.push(FlowEvent::Session(Box::new(session)));
    }
}
