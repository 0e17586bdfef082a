//! The protocols that let a service push commands: WebSocket and MQTT.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::framing::{mqtt, websocket};
use crate::scenario::{QualityOfService, Scenario};
use crate::tls::Side;

/// The protocol state of both ends. Its methods must be called in order of time, so that packet identifiers are in order.
pub(super) trait PushProtocol {
    /// The messages before the first JSON message, in turn.
    fn greeting(&mut self, random: &mut ChaCha20Rng) -> Result<Vec<(Side, Vec<u8>)>, SimulateError>;
    /// A message with a JSON body, and the protocol's answer from its receiver.
    fn message(
        &mut self,
        side: Side,
        body: &[u8],
        random: &mut ChaCha20Rng,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), SimulateError>;
    /// The gateway's keep-alive and the service's answer.
    fn keep_alive(&self, random: &mut ChaCha20Rng) -> [Vec<u8>; 2];
    /// The gateway's last message.
    fn farewell(&self, random: &mut ChaCha20Rng) -> Vec<u8>;
    /// Whether the service acknowledges readings by a JSON message.
    fn readings_need_acknowledgement(&self) -> bool;
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

    fn readings_need_acknowledgement(&self) -> bool {
        true
    }
}

/// MQTT: a topic for either direction.
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

    /// The next packet identifier of a side, never 0; none without acknowledgements.
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

    fn readings_need_acknowledgement(&self) -> bool {
        false
    }
}
