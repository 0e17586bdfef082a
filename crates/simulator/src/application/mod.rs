//! The application protocols on the gateway's connection: plaintext messages in order of time.

mod long_poll;
mod message;
mod padding;
mod push;
mod push_protocol;
mod reply;

use push_protocol::PushProtocol;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

pub(crate) use message::{Message, MessageInput, MessageRole};
pub(crate) use padding::{MessagePadding, padded_length};

use crate::SimulateError;
use crate::framing::http;
use crate::scenario::{Compression, Framing, Scenario};
use crate::tls::Side;

/// The protocol's name in ALPN.
pub(crate) fn alpn_protocol(framing: Framing) -> &'static str {
    match framing {
        Framing::Websocket | Framing::Http => "http/1.1",
        Framing::Mqtt => "mqtt",
    }
}

/// The length of a message with a body of `body` bytes, which is not compressed.
pub(crate) fn message_length(scenario: &Scenario, side: Side, body: usize) -> Result<usize, SimulateError> {
    let body = vec![b' '; body];
    // Random numbers are only drawn for a mask, which has a fixed length.
    let random = &mut ChaCha20Rng::seed_from_u64(0);
    let message = match (PushProtocol::new(scenario), side) {
        (Some(mut protocol), _) => protocol.message(side, &body, random)?.bytes,
        (None, Side::Server) => http::found(0, &body, Compression::None, 0),
        (None, Side::Client) => http::post(&scenario.network.name, &body, Compression::None, 0),
    };
    Ok(message.len())
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
