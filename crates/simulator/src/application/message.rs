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
    /// The bytes that pad each of its records; none where it is empty.
    pub(crate) record_padding: Vec<usize>,
    pub(crate) role: MessageRole,
}

impl Message {
    /// A message whose records are not padded.
    pub(crate) fn new(time_ns: i64, side: Side, bytes: Vec<u8>, role: MessageRole) -> Self {
        Self { time_ns, side, bytes, record_padding: Vec::new(), role }
    }

    /// Its bytes with the padding of its records.
    pub(crate) fn plaintext_size(&self) -> usize {
        self.bytes.len() + self.record_padding.iter().sum::<usize>()
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

#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageInput<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) encoder: &'a MessageEncoder,
    pub(crate) connection: &'a PlannedConnection,
    /// When the handshakes are done.
    pub(crate) ready_ns: i64,
}
