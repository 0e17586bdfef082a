//! The application protocols on the gateway's connection: plaintext messages in order of time.

mod long_poll;
mod message;
mod push;
mod push_protocol;
mod reply;

use push_protocol::{Mqtt, PushProtocol, WebSocket};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

pub(crate) use message::{Message, MessageInput, MessageRole};

use crate::SimulateError;
use crate::framing::http;
use crate::scenario::{Framing, Scenario};
use crate::tls::Side;

/// The protocol's name in ALPN.
pub(crate) fn alpn_protocol(framing: Framing) -> &'static str {
    match framing {
        Framing::Websocket | Framing::Http => "http/1.1",
        Framing::Mqtt => "mqtt",
    }
}

/// The length of a message with a body of `body` bytes.
pub(crate) fn message_length(scenario: &Scenario, side: Side, body: usize) -> Result<usize, SimulateError> {
    let body = vec![b' '; body];
    // Random numbers are only drawn for a mask, which has a fixed length.
    let random = &mut ChaCha20Rng::seed_from_u64(0);
    let message = match (scenario.session.framing, side) {
        (Framing::Websocket, _) => WebSocket::new(scenario).message(side, &body, random)?.0,
        (Framing::Mqtt, _) => Mqtt::new(scenario).message(side, &body, random)?.0,
        (Framing::Http, Side::Server) => http::found(0, &body),
        (Framing::Http, Side::Client) => http::post(&scenario.network.name, &body),
    };
    Ok(message.len())
}

/// All messages of a connection.
pub(crate) fn messages(input: MessageInput<'_>, random: &mut ChaCha20Rng) -> Result<Vec<Message>, SimulateError> {
    let mut messages = match input.scenario.session.framing {
        Framing::Websocket => push::messages(input, WebSocket::new(input.scenario), random)?,
        Framing::Mqtt => push::messages(input, Mqtt::new(input.scenario), random)?,
        Framing::Http => long_poll::messages(input, random),
    };
    messages.sort_by_key(|message| message.time_ns);
    Ok(messages)
}
