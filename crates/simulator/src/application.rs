//! The application protocols on the gateway's connection: plaintext messages in order of time.

mod long_poll;
mod padding;
mod push;
mod push_protocol;
mod reply;

use rand_chacha::ChaCha20Rng;

pub(crate) use padding::{MessagePadding, padded_length};
pub(crate) use push::PushSession;

use crate::SimulateError;
use crate::message_encoder::MessageEncoder;
use crate::scenario::{Framing, Scenario};
use crate::schedule::PlannedConnection;
use crate::tls::Side;

/// What one end writes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) time_ns: i64,
    pub(crate) side: Side,
    pub(crate) bytes: Vec<u8>,
    /// The bytes that pad each of its records; none where it is empty.
    pub(crate) record_padding: Vec<usize>,
    pub(crate) role: MessageRole,
}

impl Message {
    /// A message whose records are not padded.
    pub(crate) fn new(time_ns: i64, side: Side, bytes: Vec<u8>, role: MessageRole) -> Self {
        Self { time_ns, side, bytes, record_padding: Vec::new(), role }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    /// A command, by its index in its connection.
    Command(usize),
    /// The gateway's reply to that command.
    Reply(usize),
    Other,
}

/// What the messages of a connection are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageInput<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) encoder: &'a MessageEncoder,
    pub(crate) connection: &'a PlannedConnection,
    /// When the handshakes are done.
    pub(crate) ready_ns: i64,
}

/// The protocol's name in ALPN.
pub(crate) fn alpn_protocol(framing: Framing) -> &'static str {
    match framing {
        Framing::Websocket | Framing::Http => "http/1.1",
        Framing::Mqtt => "mqtt",
    }
}

/// All messages of a connection, in order of time.
pub(crate) fn messages(
    input: MessageInput<'_>,
    padding: &mut MessagePadding<'_>,
    mut random: ChaCha20Rng,
) -> Result<Vec<Message>, SimulateError> {
    if input.scenario.session.framing == Framing::Http {
        return long_poll::messages(input, padding, &mut random);
    }
    PushSession::begin(input, random)?.all_messages(input, padding)
}
