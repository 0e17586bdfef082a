//! The application protocols on the gateway's connection: plaintext messages in order of time.

mod long_poll;
mod message;
mod padding;
mod push;
mod push_protocol;
mod reply;

use push_protocol::PushProtocol;
use rand_chacha::ChaCha20Rng;

pub(crate) use message::{Message, MessageInput, MessageRole};
pub(crate) use padding::{MessagePadding, padded_length};
pub(crate) use push::LivePush;

use crate::SimulateError;
use crate::scenario::Framing;

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
    random: &mut ChaCha20Rng,
) -> Result<Vec<Message>, SimulateError> {
    let mut messages = match PushProtocol::new(input.scenario) {
        Some(protocol) => push::messages(input, protocol, padding, random)?,
        None => long_poll::messages(input, padding, random)?,
    };
    messages.sort_by_key(|message| message.time_ns);
    for message in &mut messages {
        message.record_padding = padding.of_records(message.role, message.bytes.len());
    }
    Ok(messages)
}
