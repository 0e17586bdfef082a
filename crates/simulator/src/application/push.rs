//! The messages of a service that pushes commands to the gateway, by WebSocket or MQTT.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::padding::MessagePadding;
use super::push_protocol::PushProtocol;
use super::{Message, MessageInput, MessageRole, replies};
use crate::SimulateError;
use crate::framing::compressed;
use crate::random_streams::{MILLISECOND, SECOND, nanoseconds, random_duration, recurring_times};
use crate::schedule::PlannedCommand;
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

/// A connection from its greeting on. More commands may be added to those that are planned.
#[derive(Debug)]
pub(crate) struct PushSession {
    protocol: PushProtocol,
    pub(crate) random: ChaCha20Rng,
    greeted_ns: i64,
    /// What is going to happen, in order of time.
    events: VecDeque<(i64, Event)>,
    /// What both ends have written and nobody has taken yet.
    messages: Vec<Message>,
}

impl PushSession {
    /// # Errors
    /// If the service does not push, or the greeting does not fit its framing.
    pub(crate) fn begin(input: MessageInput<'_>, mut random: ChaCha20Rng) -> Result<Self, SimulateError> {
        let MessageInput { scenario, connection, ready_ns, .. } = input;
        let polls = "its gateway polls: choose the framing `websocket` or `mqtt`";
        let mut protocol = PushProtocol::new(scenario).ok_or_else(|| SimulateError::impossible(polls))?;
        let (mut messages, mut greeted_ns) = (Vec::new(), ready_ns);
        for (side, bytes) in protocol.greeting(&mut random)? {
            messages.push(Message::new(greeted_ns, side, bytes, MessageRole::Other));
            let travel = if side == Side::Client { nanoseconds(scenario.network.round_trip) } else { 0 };
            greeted_ns += random.random_range(MILLISECOND..3 * MILLISECOND) + travel;
        }
        let mut session = Self { protocol, random, greeted_ns, events: VecDeque::new(), messages };
        for (index, command) in connection.commands.iter().enumerate() {
            session.add_events(input, index, command);
        }
        session.add_unsolicited(input);
        session.sort();
        Ok(session)
    }

    /// Adds a command, which is sent at its time: it is that of this index in its connection.
    pub(crate) fn add(&mut self, input: MessageInput<'_>, index: usize, command: &PlannedCommand) {
        self.add_events(input, index, command);
        self.sort();
    }

    /// A command, and the gateway's replies.
    fn add_events(&mut self, input: MessageInput<'_>, index: usize, command: &PlannedCommand) {
        let MessageInput { scenario, encoder, .. } = input;
        let time_ns = command.time_ns.max(self.greeted_ns);
        let body = encoder.command(command.form, command.message_id, time_ns, &command.actions);
        let role = MessageRole::Command(index);
        self.events.push_back((time_ns, Event::Bodies { side: Side::Server, bodies: vec![body], role }));
        for (delay_ns, bodies) in replies(command, scenario.replies, encoder, &mut self.random) {
            let event = Event::Bodies { side: Side::Client, bodies, role: MessageRole::Reply(index) };
            self.events.push_back((time_ns + delay_ns, event));
        }
    }

    /// Readings with their acknowledgements, and what keeps the connection alive.
    fn add_unsolicited(&mut self, input: MessageInput<'_>) {
        let MessageInput { scenario, encoder, connection, .. } = input;
        let (random, end_ns) = (&mut self.random, connection.close_ns - SECOND);
        let bodies = |side, body| Event::Bodies { side, bodies: vec![body], role: MessageRole::Other };
        for time_ns in recurring_times(scenario.telemetry.period, self.greeted_ns, end_ns, random) {
            let device = random.random_range(0..scenario.device_count());
            let added_bytes = connection.added_bytes(time_ns);
            let reading = encoder.reading(added_bytes, device, random.random_range(1_000..10_000));
            if self.protocol.acknowledges_readings() {
                let delay =
                    nanoseconds(scenario.network.round_trip) + random_duration(scenario.telemetry.think, random);
                let acknowledgement = encoder.acknowledgement(added_bytes, device);
                self.events.push_back((time_ns + delay, bodies(Side::Server, acknowledgement)));
            }
            self.events.push_back((time_ns, bodies(Side::Client, reading)));
        }
        let keep_alive = nanoseconds(scenario.session.keep_alive);
        let mut time_ns = self.greeted_ns + keep_alive;
        while keep_alive > 0 && time_ns < end_ns {
            self.events.push_back((time_ns, Event::KeepAlive));
            time_ns += keep_alive;
        }
    }

    fn sort(&mut self) {
        self.events.make_contiguous().sort_by_key(|(time_ns, _)| *time_ns);
    }

    /// All messages until the connection closes, in order of time.
    pub(crate) fn all_messages(
        mut self,
        input: MessageInput<'_>,
        padding: &mut MessagePadding<'_>,
    ) -> Result<Vec<Message>, SimulateError> {
        let mut messages = self.take_messages(input, i64::MAX, padding)?;
        let bytes = self.protocol.farewell(&mut self.random);
        messages.push(Message::new(input.connection.close_ns, Side::Client, bytes, MessageRole::Other));
        messages.sort_by_key(|message| message.time_ns);
        Ok(messages)
    }

    /// The messages until a time that were not yet taken, in order of time.
    pub(crate) fn take_messages(
        &mut self,
        input: MessageInput<'_>,
        until_ns: i64,
        padding: &mut MessagePadding<'_>,
    ) -> Result<Vec<Message>, SimulateError> {
        while let Some((time_ns, event)) = self.events.pop_front_if(|(time_ns, _)| *time_ns <= until_ns) {
            self.send(input, event, time_ns, padding)?;
        }
        self.messages.sort_by_key(|message| message.time_ns);
        let later = self.messages.split_off(self.messages.partition_point(|message| message.time_ns <= until_ns));
        let mut messages = std::mem::replace(&mut self.messages, later);
        padding.fill_records(&mut messages);
        Ok(messages)
    }

    pub(crate) fn next_ns(&self) -> Option<i64> {
        let messages = self.messages.first().map(|message| message.time_ns);
        self.events.front().map(|(time_ns, _)| *time_ns).into_iter().chain(messages).min()
    }

    /// Encodes what happens as messages, with the answers of the protocol.
    fn send(
        &mut self,
        input: MessageInput<'_>,
        event: Event,
        time_ns: i64,
        padding: &mut MessagePadding<'_>,
    ) -> Result<(), SimulateError> {
        let (session, network) = (&input.scenario.session, &input.scenario.network);
        let (mut bytes, mut answer) = (Vec::new(), Vec::new());
        let (side, role) = match event {
            Event::KeepAlive => {
                [bytes, answer] = self.protocol.keep_alive(&mut self.random);
                (Side::Client, MessageRole::Other)
            }
            Event::Bodies { side, bodies, role } => {
                for body in bodies {
                    let (body, rest) = padding.fill(side, role, body)?;
                    let body = compressed(&body, session.compression)?;
                    let [message, of_receiver] = self.protocol.message(side, &body, &mut self.random)?;
                    bytes.extend(message);
                    bytes.extend(self.protocol.filler(side, rest, &mut self.random));
                    answer.extend(of_receiver);
                }
                (side, role)
            }
        };
        self.messages.push(Message::new(time_ns, side, bytes, role));
        if !answer.is_empty() {
            let travel = if side == Side::Client { nanoseconds(network.round_trip) } else { 0 };
            let time_ns = time_ns + travel + self.random.random_range(MILLISECOND..3 * MILLISECOND);
            self.messages.push(Message::new(time_ns, side.peer(), answer, MessageRole::Other));
        }
        Ok(())
    }
}
