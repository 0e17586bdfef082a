//! Messages inside TLS, and what they are made from.

use crate::message_encoder::MessageEncoder;
use crate::scenario::Scenario;
use crate::schedule::PlannedConnection;
use crate::tls::Side;

/// What one end writes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) time_ns: i64,
    pub(crate) side: Side,
    pub(crate) bytes: Vec<u8>,
    pub(crate) role: MessageRole,
}

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    /// A command, by its index in its connection.
    Command(usize),
    /// The gateway's reply to that command.
    Reply(usize),
    /// Anything else.
    Other,
}

/// The input that the messages of a connection are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageInput<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) encoder: &'a MessageEncoder,
    pub(crate) connection: &'a PlannedConnection,
    /// When the handshakes are done.
    pub(crate) ready_ns: i64,
}
