//! The messages of a gateway that polls: HTTP/1.1 long polling on one connection, one request at a time.
//!
//! While a poll is outstanding the gateway can send nothing else. So readings wait for the response, and a command
//! waits until the next poll has reached the service.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::padding::MessagePadding;
use super::{Message, MessageInput, MessageRole, replies};
use crate::SimulateError;
use crate::framing::{self, compressed};
use crate::random_streams::{MILLISECOND, nanoseconds, random_duration, recurring_times};
use crate::scenario::Scenario;
use crate::schedule::PlannedCommand;
use crate::tls::Side;

/// All messages of a connection, in order of time.
pub(crate) fn poll_messages(
    input: MessageInput<'_>,
    padding: &mut MessagePadding<'_>,
    mut random: ChaCha20Rng,
) -> Result<Vec<Message>, SimulateError> {
    let readings = readings(input, &mut random);
    let (time_ns, messages, round_trip) = (input.ready_ns, Vec::new(), nanoseconds(input.scenario.network.round_trip));
    let mut gateway = PollingGateway { input, round_trip, readings, time_ns, messages, padding, random: &mut random };
    let close_ns = input.connection.close_ns;
    let timeout = nanoseconds(input.scenario.session.poll_timeout);
    let mut commands = input.connection.commands.iter().enumerate().peekable();
    let mut answered = None;
    while gateway.time_ns < close_ns || commands.peek().is_some() {
        gateway.post_readings()?;
        let poll = framing::poll(&input.scenario.network.name);
        // The first poll behind a command comes with its replies, and each command has one.
        let role = answered.take().map_or(MessageRole::Other, MessageRole::Reply);
        gateway.push(gateway.time_ns, Side::Client, poll, role);
        let arrived_ns = gateway.time_ns + gateway.round_trip + MILLISECOND;
        if let Some((index, command)) = commands.next_if(|(_, command)| command.time_ns < arrived_ns + timeout) {
            gateway.handle_command(index, command, command.time_ns.max(arrived_ns))?;
            answered = Some(index);
        } else if arrived_ns + timeout > close_ns && commands.peek().is_none() {
            // The gateway closes the connection while its last poll is outstanding.
            break;
        } else {
            let time_ns = arrived_ns + timeout;
            gateway.push(time_ns, Side::Server, framing::nothing(time_ns), MessageRole::Other);
            gateway.pause();
        }
    }
    gateway.padding.fill_records(&mut gateway.messages);
    Ok(gateway.messages)
}

fn readings(input: MessageInput<'_>, random: &mut ChaCha20Rng) -> VecDeque<(i64, Vec<u8>)> {
    let devices = input.scenario.device_count();
    let times = recurring_times(input.scenario.telemetry.period, input.ready_ns, input.connection.close_ns, random);
    let reading = |time_ns| {
        let device = random.random_range(0..devices);
        let added_bytes = input.connection.added_bytes(time_ns);
        (time_ns, input.encoder.reading(added_bytes, device, random.random_range(1_000..10_000)))
    };
    times.into_iter().map(reading).collect()
}

/// The gateway between two requests.
struct PollingGateway<'a, 'b> {
    input: MessageInput<'a>,
    round_trip: i64,
    /// Readings not sent yet.
    readings: VecDeque<(i64, Vec<u8>)>,
    time_ns: i64,
    messages: Vec<Message>,
    padding: &'a mut MessagePadding<'b>,
    random: &'a mut ChaCha20Rng,
}

impl PollingGateway<'_, '_> {
    fn push(&mut self, time_ns: i64, side: Side, bytes: Vec<u8>, role: MessageRole) {
        self.messages.push(Message::new(time_ns, side, bytes, role));
        self.time_ns = time_ns;
    }

    fn pause(&mut self) {
        self.time_ns += self.random.random_range(MILLISECOND..4 * MILLISECOND);
    }

    /// Posts a body and waits for the response.
    fn post(&mut self, body: Vec<u8>, role: MessageRole) -> Result<(), SimulateError> {
        let Scenario { session, network, telemetry, .. } = self.input.scenario;
        let (body, rest) = self.padding.fill(Side::Client, role, body)?;
        let body = compressed(&body, session.compression)?;
        let request = framing::post(&network.name, &body, session.compression, rest);
        self.push(self.time_ns, Side::Client, request, role);
        let think = random_duration(telemetry.think, self.random);
        let answered_ns = self.time_ns + self.round_trip + think;
        self.push(answered_ns, Side::Server, framing::nothing(answered_ns), MessageRole::Other);
        self.pause();
        Ok(())
    }

    fn post_readings(&mut self) -> Result<(), SimulateError> {
        let until_ns = self.time_ns;
        while let Some((_, body)) = self.readings.pop_front_if(|(time_ns, _)| *time_ns <= until_ns) {
            self.post(body, MessageRole::Other)?;
        }
        Ok(())
    }

    /// The service answers the poll with a command, and the gateway posts its replies.
    fn handle_command(&mut self, index: usize, command: &PlannedCommand, time_ns: i64) -> Result<(), SimulateError> {
        let MessageInput { scenario, encoder, .. } = self.input;
        let body = encoder.command(command.form, command.message_id, time_ns, &command.actions);
        let (compression, role) = (scenario.session.compression, MessageRole::Command(index));
        let (body, rest) = self.padding.fill(Side::Server, role, body)?;
        let response = framing::found(time_ns, &compressed(&body, compression)?, compression, rest);
        self.push(time_ns, Side::Server, response, role);
        self.pause();
        for (delay_ns, bodies) in replies(command, scenario.replies, encoder, self.random) {
            self.time_ns = self.time_ns.max(time_ns + delay_ns);
            // Coalesced replies are one body with a line for each.
            self.post(bodies.join(&b'\n'), MessageRole::Reply(index))?;
        }
        Ok(())
    }
}
