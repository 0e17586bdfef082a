//! The script where the service pushes commands: WebSocket and MQTT.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha20Rng;

use super::reply::replies;
use super::{MessageRole, ScriptInput, TimedMessage};
use crate::SimulateError;
use crate::framing::{mqtt, websocket};
use crate::random::{nanoseconds, recurring, within};
use crate::scenario::{QualityOfService, Scenario};
use crate::tls::Side;

const MILLISECOND: i64 = 1_000_000;

/// A framing for both ends. It is asked in order of time, so that packet identifiers are in order too.
pub(super) trait PushProtocol {
    /// What is said before the first message, in turn.
    fn greeting(&mut self, random: &mut ChaCha20Rng) -> Result<Vec<(Side, Vec<u8>)>, SimulateError>;
    /// A message with a JSON body, and what its receiver's protocol answers to it.
    fn message(
        &mut self,
        side: Side,
        body: &[u8],
        random: &mut ChaCha20Rng,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), SimulateError>;
    /// The gateway's keep-alive and the service's answer.
    fn keep_alive(&self, random: &mut ChaCha20Rng) -> [Vec<u8>; 2];
    /// What the gateway says last.
    fn farewell(&self, random: &mut ChaCha20Rng) -> Vec<u8>;
    /// Whether the service acknowledges readings in JSON.
    fn receipts(&self) -> Receipts;
}

/// Who acknowledges a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Receipts {
    /// The service, by a message.
    Message,
    /// The protocol, or nobody.
    Protocol,
}

/// What happens on a connection.
#[derive(Debug)]
enum Event {
    Command { index: usize, body: Vec<u8> },
    Reply { index: usize, bodies: Vec<Vec<u8>> },
    Reading { body: Vec<u8> },
    Receipt { body: Vec<u8> },
    KeepAlive,
}

pub(super) fn write(
    setting: ScriptInput<'_>,
    mut framing: impl PushProtocol,
    random: &mut ChaCha20Rng,
) -> Result<Vec<TimedMessage>, SimulateError> {
    let network = &setting.scenario.network;
    let trip = nanoseconds(network.round_trip);
    let mut messages = Vec::new();
    let mut time_ns = setting.ready_ns;
    for (side, bytes) in framing.greeting(random)? {
        messages.push(TimedMessage { time_ns, side, bytes, role: MessageRole::Other });
        let server = side.peer() == Side::Server;
        time_ns += random.random_range(MILLISECOND..3 * MILLISECOND) + if server { trip } else { 0 };
    }
    for (time_ns, event) in events(setting, &framing, time_ns, random)? {
        perform(event, time_ns, trip, &mut framing, &mut messages, random)?;
    }
    let bytes = framing.farewell(random);
    messages.push(TimedMessage {
        time_ns: setting.stretch.close_ns,
        side: Side::Client,
        bytes,
        role: MessageRole::Other,
    });
    Ok(messages)
}

/// All that happens, in order of time.
fn events(
    setting: ScriptInput<'_>,
    framing: &impl PushProtocol,
    greeted_ns: i64,
    random: &mut ChaCha20Rng,
) -> Result<Vec<(i64, Event)>, SimulateError> {
    let ScriptInput { scenario, writer, stretch, .. } = setting;
    let mut events = Vec::new();
    for (index, command) in stretch.commands.iter().enumerate() {
        let time_ns = command.time_ns.max(greeted_ns);
        let body = writer.command(command.message_id, time_ns, &command.orders)?;
        events.push((time_ns, Event::Command { index, body }));
        for reply in replies(command, scenario.replies, writer, random)? {
            events.push((time_ns + reply.delay_ns, Event::Reply { index, bodies: reply.bodies }));
        }
    }
    let quiet_ns = stretch.close_ns - 1_000 * MILLISECOND;
    let devices: u32 = scenario.devices.iter().map(|device| device.count).sum();
    for time_ns in recurring(scenario.telemetry.period, greeted_ns, quiet_ns, random) {
        let device = random.random_range(0..devices);
        let body = writer.reading(device, random.random_range(1_000..10_000))?;
        if framing.receipts() == Receipts::Message {
            let think = nanoseconds(scenario.network.round_trip) + within(scenario.telemetry.think, random);
            events.push((time_ns + think, Event::Receipt { body: writer.receipt(device)? }));
        }
        events.push((time_ns, Event::Reading { body }));
    }
    let keep_alive = nanoseconds(scenario.session.keep_alive);
    let mut time_ns = greeted_ns + keep_alive;
    while keep_alive > 0 && time_ns < quiet_ns {
        events.push((time_ns, Event::KeepAlive));
        time_ns += keep_alive;
    }
    events.sort_by_key(|(time_ns, _)| *time_ns);
    Ok(events)
}

/// Turns an event into the messages it makes.
fn perform(
    event: Event,
    time_ns: i64,
    trip: i64,
    framing: &mut impl PushProtocol,
    messages: &mut Vec<TimedMessage>,
    random: &mut ChaCha20Rng,
) -> Result<(), SimulateError> {
    let (side, bodies, role) = match event {
        Event::Command { index, body } => (Side::Server, vec![body], MessageRole::Command(index)),
        Event::Reply { index, bodies } => (Side::Client, bodies, MessageRole::Reply(index)),
        Event::Reading { body } => (Side::Client, vec![body], MessageRole::Other),
        Event::Receipt { body } => (Side::Server, vec![body], MessageRole::Other),
        Event::KeepAlive => {
            let [ask, answer] = framing.keep_alive(random);
            let answered_ns = time_ns + trip + random.random_range(MILLISECOND..3 * MILLISECOND);
            messages.push(TimedMessage { time_ns, side: Side::Client, bytes: ask, role: MessageRole::Other });
            messages.push(TimedMessage {
                time_ns: answered_ns,
                side: Side::Server,
                bytes: answer,
                role: MessageRole::Other,
            });
            return Ok(());
        }
    };
    let (mut bytes, mut answer) = (Vec::new(), Vec::new());
    for body in bodies {
        let (message, answered) = framing.message(side, &body, random)?;
        bytes.extend(message);
        answer.extend(answered.into_iter().flatten());
    }
    messages.push(TimedMessage { time_ns, side, bytes, role });
    if !answer.is_empty() {
        let far = if side == Side::Client { trip } else { 0 };
        let time_ns = time_ns + far + random.random_range(MILLISECOND..3 * MILLISECOND);
        messages.push(TimedMessage { time_ns, side: side.peer(), bytes: answer, role: MessageRole::Other });
    }
    Ok(())
}

/// WebSocket: text frames, masked by the gateway.
#[derive(Debug)]
pub(super) struct WebSocket {
    host: String,
}

impl WebSocket {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self { host: scenario.network.name.clone() }
    }
}

impl PushProtocol for WebSocket {
    fn greeting(&mut self, random: &mut ChaCha20Rng) -> Result<Vec<(Side, Vec<u8>)>, SimulateError> {
        let mut key = [0; 16];
        random.fill_bytes(&mut key);
        let request = websocket::upgrade_request(&self.host, key);
        Ok(vec![(Side::Client, request), (Side::Server, websocket::upgrade_response(key))])
    }

    fn message(
        &mut self,
        side: Side,
        body: &[u8],
        random: &mut ChaCha20Rng,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), SimulateError> {
        let mask = (side == Side::Client).then(|| random.random());
        Ok((websocket::frame(websocket::Opcode::Text, body, mask), None))
    }

    fn keep_alive(&self, random: &mut ChaCha20Rng) -> [Vec<u8>; 2] {
        let ping = websocket::frame(websocket::Opcode::Ping, b"ping", Some(random.random()));
        [ping, websocket::frame(websocket::Opcode::Pong, b"ping", None)]
    }

    fn farewell(&self, random: &mut ChaCha20Rng) -> Vec<u8> {
        // 1001: going away (RFC 6455 section 7.4.1).
        websocket::frame(websocket::Opcode::Close, &1001_u16.to_be_bytes(), Some(random.random()))
    }

    fn receipts(&self) -> Receipts {
        Receipts::Message
    }
}

/// MQTT: publications on a topic for either direction.
#[derive(Debug)]
pub(super) struct Mqtt {
    quality: QualityOfService,
    keep_alive_seconds: u16,
    /// The last packet identifier of the gateway and of the broker.
    identifiers: [u16; 2],
}

const CLIENT: &str = "gateway-20";
const COMMANDS: &str = "home/20/set";
const STATES: &str = "home/20/state";

impl Mqtt {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let keep_alive = scenario.session.keep_alive.as_secs();
        Self {
            quality: scenario.session.quality_of_service,
            keep_alive_seconds: u16::try_from(keep_alive * 3 / 2).unwrap_or(u16::MAX),
            identifiers: [0; 2],
        }
    }

    /// The next packet identifier of a side, or none where nothing is acknowledged. 0 is not allowed.
    fn identifier(&mut self, side: Side) -> Option<u16> {
        let [client, server] = &mut self.identifiers;
        let last = if side == Side::Client { client } else { server };
        *last = last.checked_add(1).unwrap_or(1);
        (self.quality == QualityOfService::AtLeastOnce).then_some(*last)
    }
}

impl PushProtocol for Mqtt {
    fn greeting(&mut self, _: &mut ChaCha20Rng) -> Result<Vec<(Side, Vec<u8>)>, SimulateError> {
        let quality = u8::from(self.quality == QualityOfService::AtLeastOnce);
        let [client, _] = &mut self.identifiers;
        *client = 1;
        Ok(vec![
            (Side::Client, mqtt::connect(CLIENT, self.keep_alive_seconds)?),
            (Side::Server, mqtt::CONNACK.to_vec()),
            (Side::Client, mqtt::subscribe(1, COMMANDS, quality)?),
            (Side::Server, mqtt::suback(1, quality)),
        ])
    }

    fn message(
        &mut self,
        side: Side,
        body: &[u8],
        _: &mut ChaCha20Rng,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), SimulateError> {
        let topic = if side == Side::Client { STATES } else { COMMANDS };
        let identifier = self.identifier(side);
        Ok((mqtt::publish(topic, identifier, body)?, identifier.map(mqtt::puback)))
    }

    fn keep_alive(&self, _: &mut ChaCha20Rng) -> [Vec<u8>; 2] {
        [mqtt::PINGREQ.to_vec(), mqtt::PINGRESP.to_vec()]
    }

    fn farewell(&self, _: &mut ChaCha20Rng) -> Vec<u8> {
        mqtt::DISCONNECT.to_vec()
    }

    fn receipts(&self) -> Receipts {
        Receipts::Protocol
    }
}
