//! The messages of a service that pushes commands to the gateway, by WebSocket or MQTT.

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::message::{Message, MessageInput, MessageRole};
use super::push_protocol::PushProtocol;
use super::reply::replies;
use crate::SimulateError;
use crate::framing::compression::compressed;
use crate::random_streams::{random_duration, recurring_times};
use crate::scenario::Compression;
use crate::time::{MILLISECOND, SECOND, nanoseconds};
use crate::tls::Side;

/// What happens on a connection.
#[derive(Debug)]
enum Event {
    /// JSON bodies that one side sends.
    Bodies { side: Side, bodies: Vec<Vec<u8>>, role: MessageRole },
    /// The gateway's keep-alive.
    KeepAlive,
}

impl Event {
    /// The event with its bodies as they are sent.
    fn compressed(mut self, compression: Compression) -> Result<Self, SimulateError> {
        if let Self::Bodies { bodies, .. } = &mut self {
            for body in bodies {
                *body = compressed(body, compression)?.into_owned();
            }
        }
        Ok(self)
    }
}

pub(super) fn messages(
    input: MessageInput<'_>,
    mut protocol: PushProtocol,
    random: &mut ChaCha20Rng,
) -> Result<Vec<Message>, SimulateError> {
    let round_trip = nanoseconds(input.scenario.network.round_trip);
    let mut messages = Vec::new();
    let mut time_ns = input.ready_ns;
    for (side, bytes) in protocol.greeting(random)? {
        messages.push(Message { time_ns, side, bytes, role: MessageRole::Other });
        let is_answered_by_server = side.peer() == Side::Server;
        time_ns +=
            random.random_range(MILLISECOND..3 * MILLISECOND) + if is_answered_by_server { round_trip } else { 0 };
    }
    for (time_ns, event) in events(input, &protocol, time_ns, random) {
        let event = event.compressed(input.scenario.session.compression)?;
        push_messages(event, time_ns, round_trip, &mut protocol, &mut messages, random)?;
    }
    let bytes = protocol.farewell(random);
    let time_ns = input.connection.close_ns;
    messages.push(Message { time_ns, side: Side::Client, bytes, role: MessageRole::Other });
    Ok(messages)
}

/// All events after the greeting, in order of time.
fn events(
    input: MessageInput<'_>,
    protocol: &PushProtocol,
    greeted_ns: i64,
    random: &mut ChaCha20Rng,
) -> Vec<(i64, Event)> {
    let MessageInput { scenario, encoder, connection, .. } = input;
    let bodies = |side, bodies, role| Event::Bodies { side, bodies, role };
    let mut events = Vec::new();
    for (index, command) in connection.commands.iter().enumerate() {
        let time_ns = command.time_ns.max(greeted_ns);
        let body = encoder.command(command.form, command.message_id, time_ns, &command.actions);
        events.push((time_ns, bodies(Side::Server, vec![body], MessageRole::Command(index))));
        for reply in replies(command, scenario.replies, encoder, random) {
            let event = bodies(Side::Client, reply.bodies, MessageRole::Reply(index));
            events.push((time_ns + reply.delay_ns, event));
        }
    }
    let end_ns = connection.close_ns - SECOND;
    let devices = scenario.device_count();
    for time_ns in recurring_times(scenario.telemetry.period, greeted_ns, end_ns, random) {
        let device = random.random_range(0..devices);
        let added_bytes = connection.added_bytes(time_ns);
        let reading = encoder.reading(added_bytes, device, random.random_range(1_000..10_000));
        if protocol.acknowledges_readings() {
            let delay = nanoseconds(scenario.network.round_trip) + random_duration(scenario.telemetry.think, random);
            let acknowledgement = vec![encoder.acknowledgement(added_bytes, device)];
            events.push((time_ns + delay, bodies(Side::Server, acknowledgement, MessageRole::Other)));
        }
        events.push((time_ns, bodies(Side::Client, vec![reading], MessageRole::Other)));
    }
    let keep_alive = nanoseconds(scenario.session.keep_alive);
    let mut time_ns = greeted_ns + keep_alive;
    while keep_alive > 0 && time_ns < end_ns {
        events.push((time_ns, Event::KeepAlive));
        time_ns += keep_alive;
    }
    events.sort_by_key(|(time_ns, _)| *time_ns);
    events
}

/// Appends the messages of an event, with the answers of the protocol.
fn push_messages(
    event: Event,
    time_ns: i64,
    round_trip: i64,
    protocol: &mut PushProtocol,
    messages: &mut Vec<Message>,
    random: &mut ChaCha20Rng,
) -> Result<(), SimulateError> {
    let (mut bytes, mut answer) = (Vec::new(), Vec::new());
    let (side, role) = match event {
        Event::KeepAlive => {
            [bytes, answer] = protocol.keep_alive(random);
            (Side::Client, MessageRole::Other)
        }
        Event::Bodies { side, bodies, role } => {
            for body in bodies {
                let message = protocol.message(side, &body, random)?;
                bytes.extend(message.bytes);
                answer.extend(message.answer.into_iter().flatten());
            }
            (side, role)
        }
    };
    messages.push(Message { time_ns, side, bytes, role });
    if !answer.is_empty() {
        let travel = if side == Side::Client { round_trip } else { 0 };
        let time_ns = time_ns + travel + random.random_range(MILLISECOND..3 * MILLISECOND);
        messages.push(Message { time_ns, side: side.peer(), bytes: answer, role: MessageRole::Other });
    }
    Ok(())
}
