//! Padding of commands and replies.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_model::policies::{Draw, PaddingKey, PaddingPolicy};

use super::push_protocol::PushProtocol;
use super::{Message, MessageRole};
use crate::scenario::{Compression, Framing, PaddingLayer, Scenario, TlsSettings};
use crate::schedule::PlannedCommand;
use crate::tls::{MAX_PLAINTEXT, Side, record_plaintexts};
use crate::{SimulateError, framing};

const MAX_MESSAGE: usize = 1 << 26;
/// The most bytes that a framing adds.
const MAX_REST: usize = 131;
/// The shortest and the longest Pong frame of either side; only the gateway masks it.
const PONG_BYTES: [[usize; 2]; 2] = [[6, 131], [2, 127]];

#[derive(Debug)]
pub(crate) struct MessagePadding<'a> {
    scenario: &'a Scenario,
    commands: &'a [PlannedCommand],
    key: PaddingKey,
    random: ChaCha20Rng,
}

impl<'a> MessagePadding<'a> {
    /// For the commands of a connection; with randomness for the key, which is that of the gateway, and for padding
    /// that is drawn anew.
    pub(crate) fn new(
        scenario: &'a Scenario,
        commands: &'a [PlannedCommand],
        key: &mut ChaCha20Rng,
        random: ChaCha20Rng,
    ) -> Self {
        Self { scenario, commands, key: PaddingKey::new(key.random()), random }
    }

    /// The body of a message, padded if that is where padding is, and the bytes that the framing has to add.
    pub(super) fn fill(
        &mut self,
        side: Side,
        role: MessageRole,
        mut body: Vec<u8>,
    ) -> Result<(Vec<u8>, usize), SimulateError> {
        let Some(policy) = self.policy(PaddingLayer::Body, role) else { return Ok((body, 0)) };
        let draw = self.draw(policy, role);
        let (length, rest) = padded_body(self.scenario, side, body.len(), |size| policy.drawn(size, draw))?;
        // Blanks after a JSON object, which a parser ignores.
        body.resize(length.max(body.len()), b' ');
        Ok((body, rest))
    }

    /// Sets the padding of each record of messages, if that is where padding is.
    pub(super) fn fill_records(&mut self, messages: &mut [Message]) {
        for Message { role, bytes, record_padding, .. } in messages {
            if let Some(policy) = self.policy(PaddingLayer::Record, *role) {
                let draw = self.draw(policy, *role);
                *record_padding =
                    padding_of_records(bytes.len(), self.scenario.tls, |size| policy.drawn(size, draw)).collect();
            }
        }
    }

    /// How messages are padded in a layer; `None` if they are not.
    fn policy(&self, layer: PaddingLayer, role: MessageRole) -> Option<&'a PaddingPolicy> {
        let padding = &self.scenario.padding;
        let policy = match role {
            MessageRole::Command(_) => &padding.policy,
            MessageRole::Reply(_) => &padding.replies,
            MessageRole::Other => return None,
        };
        (padding.layer == layer && *policy != PaddingPolicy::None).then_some(policy)
    }

    /// A draw: anew, or by what the command does to which devices.
    fn draw(&mut self, policy: &PaddingPolicy, role: MessageRole) -> u64 {
        match policy.draw() {
            None => 0,
            Some(Draw::Independent) => self.random.next_u64(),
            Some(Draw::Keyed) => self.key.draw(&self.identity(role)),
        }
    }

    /// What makes two messages the same to an observer's interest.
    fn identity(&self, role: MessageRole) -> Vec<u8> {
        let (kind, index) = match role {
            MessageRole::Command(index) => (b'c', index),
            MessageRole::Reply(index) => (b'r', index),
            MessageRole::Other => return Vec::new(),
        };
        let actions = self.commands.get(index).map_or(&[][..], |command| &command.actions);
        let mut actions: Vec<_> =
            actions.iter().map(|action| (action.device, action.action as u64, action.parameter)).collect();
        actions.sort_unstable();
        let bytes = actions.iter().flat_map(|(device, action, parameter)| {
            [u64::from(*device), *action, *parameter].into_iter().flat_map(u64::to_le_bytes)
        });
        std::iter::once(kind).chain(bytes).collect()
    }
}

/// The length of a message that carries a body of `body` bytes, where each `size` of a message is padded to `padded`,
/// in either layer.
pub(crate) fn padded_length(
    scenario: &Scenario,
    side: Side,
    body: usize,
    padded: impl Fn(u64) -> u64,
) -> Result<usize, SimulateError> {
    match scenario.padding.layer {
        PaddingLayer::Body => {
            let (length, rest) = padded_body(scenario, side, body, padded)?;
            Ok(message_length(scenario, side, length)? + rest)
        }
        PaddingLayer::Record => {
            let message = message_length(scenario, side, body)?;
            Ok(message + padding_of_records(message, scenario.tls, padded).sum::<usize>())
        }
    }
}

/// How long a body is padded, and the bytes that the framing has to add.
fn padded_body(
    scenario: &Scenario,
    side: Side,
    body: usize,
    padded: impl Fn(u64) -> u64,
) -> Result<(usize, usize), SimulateError> {
    let mut unpadded = message_length(scenario, side, body)? as u64;
    loop {
        let target = padded(unpadded);
        let length = usize::try_from(target).ok().filter(|length| *length <= MAX_MESSAGE);
        let length = length.ok_or_else(|| {
            SimulateError(format!(
                "a message is padded to {target} bytes, more than {MAX_MESSAGE}: choose a policy with less padding"
            ))
        })?;
        if let Some(fitting) = fitting(scenario, side, body, length)? {
            return Ok(fitting);
        }
        // The framing has no such message.
        unpadded = target + 1;
    }
}

/// How a body of at least `least` bytes becomes a message of `padded` bytes; `None` if the framing has no such message.
fn fitting(
    scenario: &Scenario,
    side: Side,
    least: usize,
    padded: usize,
) -> Result<Option<(usize, usize)>, SimulateError> {
    let head = message_length(scenario, side, least)? - least;
    // A longer body may need a longer head.
    for length in (least..=padded.saturating_sub(head)).rev() {
        let rest = padded.checked_sub(message_length(scenario, side, length)?);
        match rest {
            Some(rest) if can_add(scenario.session.framing, side, rest) => return Ok(Some((length, rest))),
            Some(rest) if rest > MAX_REST => return Ok(None),
            _ => (),
        }
    }
    Ok(None)
}

fn padding_of_records(message: usize, tls: TlsSettings, padded: impl Fn(u64) -> u64) -> impl Iterator<Item = usize> {
    record_plaintexts(tls, message).map(move |record| {
        let padded = usize::try_from(padded(record as u64)).unwrap_or(usize::MAX);
        padded.min(MAX_PLAINTEXT).saturating_sub(record)
    })
}

/// Whether a framing can add so many bytes without a meaning: WebSocket by a Pong that nobody asked for (RFC 6455 section
/// 5.5.3), HTTP by white space in its head.
fn can_add(framing: Framing, side: Side, rest: usize) -> bool {
    let [least, most] = PONG_BYTES[usize::from(side == Side::Server)];
    match framing {
        _ if rest == 0 => true,
        Framing::Websocket => (least..=most).contains(&rest),
        Framing::Http => rest <= MAX_REST,
        Framing::Mqtt => false,
    }
}

/// The length of a message with a body of `body` bytes, which is not compressed.
fn message_length(scenario: &Scenario, side: Side, body: usize) -> Result<usize, SimulateError> {
    let body = vec![b' '; body];
    // Random numbers are only drawn for a mask, which has a fixed length.
    let random = &mut ChaCha20Rng::seed_from_u64(0);
    let message = match (PushProtocol::new(scenario), side) {
        (Some(mut protocol), _) => protocol.message(side, &body, random).map(|[message, _]| message)?,
        (None, Side::Server) => framing::found(0, &body, Compression::None, 0),
        (None, Side::Client) => framing::post(&scenario.network.name, &body, Compression::None, 0),
    };
    Ok(message.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(framing: Framing) -> Scenario {
        let mut scenario = Scenario::default();
        scenario.session.framing = framing;
        scenario
    }

    #[test]
    fn messages_have_the_size_of_the_policy_in_every_framing() {
        for (framing, unreachable) in [
            (Framing::Websocket, &[(Side::Server, 125, 128)][..]),
            (Framing::Http, &[]),
            (Framing::Mqtt, &[(Side::Server, 16_300, 16_387)]),
        ] {
            let scenario = scenario(framing);
            for side in [Side::Server, Side::Client] {
                for body in [1, 40, 90, 112, 125, 16_300] {
                    let size = message_length(&scenario, side, body).unwrap();
                    for padded in size..size + 150 {
                        let found = padded_length(&scenario, side, body, |size| size.max(padded as u64)).unwrap();
                        let is_near_growth = found > padded && found <= padded + 8;
                        assert!(found == padded || is_near_growth, "{framing:?} {side:?} {body} {padded}: {found}");
                        if framing == Framing::Http
                            || side == Side::Server && framing == Framing::Websocket && body < 125
                        {
                            assert_eq!(found, padded, "{framing:?} {body}");
                        }
                    }
                }
            }
            for (side, body, padded) in unreachable {
                let found = padded_length(&scenario, *side, *body, |size| size.max(*padded)).unwrap();
                assert_eq!(found as u64, padded + 1, "{framing:?}");
            }
        }
    }

    #[test]
    fn a_size_that_the_framing_lacks_is_padded_as_the_next() {
        let multiple = PaddingPolicy::Multiple { bytes: 16 };
        let padded = |framing, body| {
            padded_length(&scenario(framing), Side::Server, body, |size| multiple.padded(size).unwrap()).unwrap()
        };
        // A body of 124 bytes and a Pong of 2; no room for a Pong; a longer frame.
        assert_eq!([124, 125, 126].map(|body| padded(Framing::Websocket, body)), [128, 144, 144]);
    }

    #[test]
    fn each_record_is_padded_by_itself() {
        let tls = TlsSettings { chunk: 100, ..TlsSettings::default() };
        let padding = |message, padded: fn(u64) -> u64| padding_of_records(message, tls, padded).collect::<Vec<_>>();
        assert_eq!(padding(230, |size| size.next_multiple_of(64)), [28, 28, 34]);
        assert_eq!(padding(100, |_| u64::MAX), [MAX_PLAINTEXT - 100]);
    }

    #[test]
    fn keyed_padding_is_drawn_by_what_a_command_does() {
        let mut scenario = scenario(Framing::Mqtt);
        scenario.padding.policy = "keyed-random:1000".parse().unwrap();
        let command = |devices: &[u32]| PlannedCommand {
            time_ns: 0,
            message_id: 1,
            form: crate::message_encoder::BodyForm::default(),
            actions: devices.iter().map(|device| crate::command_generator::DeviceAction::new(*device, 0)).collect(),
            is_dummy: false,
        };
        let commands = [command(&[1, 2]), command(&[2, 1]), command(&[1, 3])];
        let stream = |seed| <ChaCha20Rng as rand::SeedableRng>::seed_from_u64(seed);
        let lengths = |scenario: &Scenario, key| {
            let mut padding = MessagePadding::new(scenario, &commands, &mut stream(key), stream(9));
            [0, 1, 2].map(|at| padding.fill(Side::Server, MessageRole::Command(at), vec![0; 50]).unwrap().0.len())
        };
        let [one, same, other] = lengths(&scenario, 1);
        assert!(one == same && one != other && lengths(&scenario, 2)[0] != one);
        scenario.padding.policy = "random:1000".parse().unwrap();
        let [one, again, _] = lengths(&scenario, 1);
        assert_ne!(one, again);
    }
}
