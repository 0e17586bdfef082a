//! The protocols that let a service push commands: WebSocket and MQTT.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha20Rng;

use crate::SimulateError;
use crate::framing::{self, mqtt};
use crate::scenario::{Compression, Framing, QualityOfService, Scenario};
use crate::tls::Side;

const CLIENT: &str = "gateway-20";
const COMMANDS: &str = "home/20/set";
const STATES: &str = "home/20/state";

/// The protocol state of both ends. Messages must be encoded in order of time, so that MQTT packet identifiers are in
/// order.
#[derive(Debug, Clone)]
pub(super) enum PushProtocol {
    /// Text or binary frames, masked by the gateway.
    WebSocket { host: String, opcode: framing::Opcode },
    /// A topic for either direction.
    Mqtt {
        quality: QualityOfService,
        keep_alive_seconds: u16,
        /// The last packet identifier of the gateway and of the broker.
        identifiers: [u16; 2],
    },
}

impl PushProtocol {
    /// The protocol of a scenario; `None` for HTTP.
    pub(super) fn new(scenario: &Scenario) -> Option<Self> {
        match scenario.session.framing {
            Framing::Websocket => {
                let opcode = match scenario.session.compression {
                    Compression::None => framing::Opcode::Text,
                    Compression::Deflate => framing::Opcode::Binary,
                };
                Some(Self::WebSocket { host: scenario.network.name.clone(), opcode })
            }
            Framing::Mqtt => {
                let keep_alive = scenario.session.keep_alive.as_secs();
                Some(Self::Mqtt {
                    quality: scenario.session.quality_of_service,
                    keep_alive_seconds: u16::try_from(keep_alive * 3 / 2).unwrap_or(u16::MAX),
                    identifiers: [0; 2],
                })
            }
            Framing::Http => None,
        }
    }

    /// The messages before the first JSON message, in turn.
    pub(super) fn greeting(&mut self, random: &mut ChaCha20Rng) -> Result<Vec<(Side, Vec<u8>)>, SimulateError> {
        match self {
            Self::WebSocket { host, .. } => {
                let mut key = [0; 16];
                random.fill_bytes(&mut key);
                let request = framing::upgrade_request(host, key);
                Ok(vec![(Side::Client, request), (Side::Server, framing::upgrade_response(key))])
            }
            Self::Mqtt { quality, keep_alive_seconds, identifiers: [client, _] } => {
                let quality = u8::from(*quality == QualityOfService::AtLeastOnce);
                *client = 1;
                Ok(vec![
                    (Side::Client, mqtt::connect(CLIENT, *keep_alive_seconds)?),
                    (Side::Server, mqtt::CONNACK.to_vec()),
                    (Side::Client, mqtt::subscribe(1, COMMANDS, quality)?),
                    (Side::Server, mqtt::suback(1, quality)),
                ])
            }
        }
    }

    /// A message with a JSON body, which is already compressed, and the answer of the receiver's protocol; empty
    /// without one.
    pub(super) fn message(
        &mut self,
        side: Side,
        body: &[u8],
        random: &mut ChaCha20Rng,
    ) -> Result<[Vec<u8>; 2], SimulateError> {
        match self {
            Self::WebSocket { opcode, .. } => {
                let mask = (side == Side::Client).then(|| random.random());
                Ok([framing::frame(*opcode, body, mask), Vec::new()])
            }
            Self::Mqtt { quality, identifiers: [client, broker], .. } => {
                let (topic, last) = if side == Side::Client { (STATES, client) } else { (COMMANDS, broker) };
                // 0 is not a valid identifier.
                *last = last.checked_add(1).unwrap_or(1);
                let identifier = (*quality == QualityOfService::AtLeastOnce).then_some(*last);
                Ok([mqtt::publish(topic, identifier, body)?, identifier.map_or_else(Vec::new, mqtt::puback)])
            }
        }
    }

    /// So many bytes that the receiver ignores: a Pong that it did not ask for (RFC 6455 section 5.5.3). MQTT has none.
    pub(super) fn filler(&self, side: Side, bytes: usize, random: &mut ChaCha20Rng) -> Vec<u8> {
        let mask: Option<[u8; 4]> = (side == Side::Client && bytes > 0).then(|| random.random());
        match self {
            Self::WebSocket { .. } if bytes > 0 => {
                let payload = bytes.saturating_sub(2 + mask.map_or(0, |mask| mask.len()));
                framing::frame(framing::Opcode::Pong, &vec![0; payload], mask)
            }
            _ => Vec::new(),
        }
    }

    /// The gateway's keep-alive and the service's answer.
    pub(super) fn keep_alive(&self, random: &mut ChaCha20Rng) -> [Vec<u8>; 2] {
        match self {
            Self::WebSocket { .. } => {
                let ping = framing::frame(framing::Opcode::Ping, b"ping", Some(random.random()));
                [ping, framing::frame(framing::Opcode::Pong, b"ping", None)]
            }
            Self::Mqtt { .. } => [mqtt::PINGREQ.to_vec(), mqtt::PINGRESP.to_vec()],
        }
    }

    /// The gateway's last message.
    pub(super) fn farewell(&self, random: &mut ChaCha20Rng) -> Vec<u8> {
        match self {
            // 1001: going away (RFC 6455 section 7.4.1).
            Self::WebSocket { .. } => {
                framing::frame(framing::Opcode::Close, &1001_u16.to_be_bytes(), Some(random.random()))
            }
            Self::Mqtt { .. } => mqtt::DISCONNECT.to_vec(),
        }
    }

    /// Whether the service acknowledges readings by a JSON message.
    pub(super) fn acknowledges_readings(&self) -> bool {
        matches!(self, Self::WebSocket { .. })
    }
}
