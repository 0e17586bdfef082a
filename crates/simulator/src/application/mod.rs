//! Who says what when on the gateway's connection: plaintext messages in order of time.

mod long_poll;
mod push;
mod reply;

use push::PushProtocol as _;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::framing::http;
use crate::message::MessageEncoder;
use crate::plan::PlannedConnection;
use crate::scenario::{Framing, Scenario};
use crate::tls::Side;

/// What one end writes at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedMessage {
    pub(crate) time_ns: i64,
    pub(crate) side: Side,
    pub(crate) bytes: Vec<u8>,
    pub(crate) role: MessageRole,
}

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageRole {
    /// A command, by its place in its stretch.
    Command(usize),
    /// The gateway's answer to one.
    Reply(usize),
    /// Anything else.
    Other,
}

/// All that scripts are written from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScriptInput<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) writer: &'a MessageEncoder,
    pub(crate) stretch: &'a PlannedConnection,
    /// From when on the connection is ready.
    pub(crate) ready_ns: i64,
}

/// The protocol's name for ALPN.
pub(crate) fn protocol(framing: Framing) -> &'static str {
    match framing {
        Framing::Websocket | Framing::Http => "http/1.1",
        Framing::Mqtt => "mqtt",
    }
}

/// How long a message with a body of so many bytes is.
pub(crate) fn message_length(scenario: &Scenario, side: Side, body: usize) -> Result<usize, SimulateError> {
    let body = vec![b' '; body];
    // What is drawn is a mask, which has one length.
    let random = &mut ChaCha20Rng::seed_from_u64(0);
    let message = match (scenario.session.framing, side) {
        (Framing::Websocket, _) => push::WebSocket::new(scenario).message(side, &body, random)?.0,
        (Framing::Mqtt, _) => push::Mqtt::new(scenario).message(side, &body, random)?.0,
        (Framing::Http, Side::Server) => http::found(0, &body),
        (Framing::Http, Side::Client) => http::post(&scenario.network.name, &body),
    };
    Ok(message.len())
}

/// Writes the script of a stretch.
pub(crate) fn write(setting: ScriptInput<'_>, random: &mut ChaCha20Rng) -> Result<Vec<TimedMessage>, SimulateError> {
    let mut messages = match setting.scenario.session.framing {
        Framing::Websocket => push::write(setting, push::WebSocket::new(setting.scenario), random),
        Framing::Mqtt => push::write(setting, push::Mqtt::new(setting.scenario), random),
        Framing::Http => long_poll::write(setting, random),
    }?;
    messages.sort_by_key(|message| message.time_ns);
    Ok(messages)
}
