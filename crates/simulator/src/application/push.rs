//! The messages of a service that pushes commands to the gateway, by WebSocket or MQTT.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::message::{Message, MessageInput, MessageRole};
use super::padding::{FilledBody, MessagePadding};
use super::push_protocol::PushProtocol;
use super::reply::replies;
use crate::SimulateError;
use crate::framing::compression::compressed;
use crate::random_streams::{random_duration, recurring_times};
use crate::schedule::PlannedCommand;
use crate::time::{MILLISECOND, SECOND, nanoseconds};
use crate::tls::Side;

#[derive(Debug)]
enum Event {
    /// JSON bodies that one side sends.
    Bodies {
        side: Side,
        bodies: Vec<Vec<u8>>,
        role: MessageRole,
    },
    KeepAlive,
}

pub(super) fn messages(
    input: MessageInput<'_>,
    mut protocol: PushProtocol,
    padding: &mut MessagePadding<'_>,
    random: &mut ChaCha20Rng,
) -> Result<Vec<Message>, SimulateError> {
    let (messages, time_ns) = greeting(input, &mut protocol, random)?;
    let events = events(input, &protocol, time_ns, random);
    let mut sender = Sender { input, protocol, padding, random, messages };
    for (time_ns, event) in events {
        sender.push(event, time_ns)?;
    }
    let Sender { protocol, mut messages, random, .. } = sender;
    let bytes = protocol.farewell(random);
    messages.push(Message::new(input.connection.close_ns, Side::Client, bytes, MessageRole::Other));
    Ok(messages)
}

/// The messages by which both ends greet each other, and when they are done.
fn greeting(
    input: MessageInput<'_>,
    protocol: &mut PushProtocol,
    random: &mut ChaCha20Rng,
) -> Result<(Vec<Message>, i64), SimulateError> {
    let (mut messages, mut time_ns) = (Vec::new(), input.ready_ns);
    let round_trip = nanoseconds(input.scenario.network.round_trip);
    for (side, bytes) in protocol.greeting(random)? {
        messages.push(Message::new(time_ns, side, bytes, MessageRole::Other));
        let is_answered_by_server = side.peer() == Side::Server;
        time_ns +=
            random.random_range(MILLISECOND..3 * MILLISECOND) + if is_answered_by_server { round_trip } else { 0 };
    }
    Ok((messages, time_ns))
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
        events.extend(command_events(input, index, command, greeted_ns, random));
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

/// A command, and the gateway's replies.
fn command_events(
    input: MessageInput<'_>,
    index: usize,
    command: &PlannedCommand,
    greeted_ns: i64,
    random: &mut ChaCha20Rng,
) -> Vec<(i64, Event)> {
    let MessageInput { scenario, encoder, .. } = input;
    let time_ns = command.time_ns.max(greeted_ns);
    let body = encoder.command(command.form, command.message_id, time_ns, &command.actions);
    let sent = Event::Bodies { side: Side::Server, bodies: vec![body], role: MessageRole::Command(index) };
    let replies = replies(command, scenario.replies, encoder, random).into_iter().map(|reply| {
        let event = Event::Bodies { side: Side::Client, bodies: reply.bodies, role: MessageRole::Reply(index) };
        (time_ns + reply.delay_ns, event)
    });
    std::iter::once((time_ns, sent)).chain(replies).collect()
}

/// A connection whose commands are not known beforehand.
#[derive(Debug)]
pub(crate) struct LivePush {
    protocol: PushProtocol,
    random: ChaCha20Rng,
    greeted_ns: i64,
    /// What is going to happen, in order of time.
    events: VecDeque<(i64, Event)>,
    /// What the gateway and the service answer to it.
    messages: Vec<Message>,
    /// The command that replies belong to.
    last: Vec<PlannedCommand>,
}

impl LivePush {
    /// A connection from its greeting on; `None` for HTTP, whose service does not push.
    pub(crate) fn begin(input: MessageInput<'_>, mut random: ChaCha20Rng) -> Result<Option<Self>, SimulateError> {
        let Some(mut protocol) = PushProtocol::new(input.scenario) else { return Ok(None) };
        let (messages, greeted_ns) = greeting(input, &mut protocol, &mut random)?;
        let events = events(input, &protocol, greeted_ns, &mut random).into();
        Ok(Some(Self { protocol, random, greeted_ns, events, messages, last: Vec::new() }))
    }

    /// Adds a command, which is sent at its time.
    pub(crate) fn add(&mut self, input: MessageInput<'_>, command: PlannedCommand) {
        self.events.extend(command_events(input, 0, &command, self.greeted_ns, &mut self.random));
        self.events.make_contiguous().sort_by_key(|(time_ns, _)| *time_ns);
        self.last = vec![command];
    }

    /// The messages until a time that were not yet taken, in order of time. `key` is the gateway's for padding.
    pub(crate) fn take_messages(
        &mut self,
        input: MessageInput<'_>,
        until_ns: i64,
        key: &mut ChaCha20Rng,
    ) -> Result<Vec<Message>, SimulateError> {
        let padded = self.random.clone();
        let mut padding = MessagePadding::new(input.scenario, &self.last, key, padded);
        let (protocol, messages) = (self.protocol.clone(), std::mem::take(&mut self.messages));
        let mut sender = Sender { input, protocol, padding: &mut padding, random: &mut self.random, messages };
        while let Some((time_ns, event)) = self.events.pop_front_if(|(time_ns, _)| *time_ns <= until_ns) {
            sender.push(event, time_ns)?;
        }
        let Sender { protocol, mut messages, .. } = sender;
        self.protocol = protocol;
        messages.sort_by_key(|message| message.time_ns);
        self.messages = messages.split_off(messages.partition_point(|message| message.time_ns <= until_ns));
        for message in &mut messages {
            message.record_padding = padding.of_records(message.role, message.bytes.len());
        }
        Ok(messages)
    }

    /// When something happens next.
    pub(crate) fn next_ns(&self) -> Option<i64> {
        let messages = self.messages.first().map(|message| message.time_ns);
        self.events.front().map(|(time_ns, _)| *time_ns).into_iter().chain(messages).min()
    }
}

/// Encodes what happens, in order of time.
struct Sender<'a, 'b> {
    input: MessageInput<'a>,
    protocol: PushProtocol,
    padding: &'a mut MessagePadding<'b>,
    random: &'a mut ChaCha20Rng,
    messages: Vec<Message>,
}

impl Sender<'_, '_> {
    /// Appends the messages of an event, with the answers of the protocol.
    fn push(&mut self, event: Event, time_ns: i64) -> Result<(), SimulateError> {
        let (mut bytes, mut answer) = (Vec::new(), Vec::new());
        let (side, role) = match event {
            Event::KeepAlive => {
                [bytes, answer] = self.protocol.keep_alive(self.random);
                (Side::Client, MessageRole::Other)
            }
            Event::Bodies { side, bodies, role } => {
                for body in bodies {
                    let FilledBody { body, rest } = self.padding.fill(side, role, body)?;
                    let body = compressed(&body, self.input.scenario.session.compression)?;
                    let message = self.protocol.message(side, &body, self.random)?;
                    bytes.extend(message.bytes);
                    bytes.extend(self.protocol.filler(side, rest, self.random));
                    answer.extend(message.answer.into_iter().flatten());
                }
                (side, role)
            }
        };
        self.messages.push(Message::new(time_ns, side, bytes, role));
        if !answer.is_empty() {
            let travel = if side == Side::Client { nanoseconds(self.input.scenario.network.round_trip) } else { 0 };
            let time_ns = time_ns + travel + self.random.random_range(MILLISECOND..3 * MILLISECOND);
            self.messages.push(Message::new(time_ns, side.peer(), answer, MessageRole::Other));
        }
        Ok(())
    }
}
