//! The script where the gateway polls: HTTP/1.1 on one connection, one request at a time.
//!
//! While a poll is out the gateway can say nothing else, so readings wait until it is answered; and a command waits
//! until the next poll has reached the service.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;

use super::reply::replies;
use super::{MessageRole, ScriptInput, TimedMessage};
use crate::SimulateError;
use crate::framing::http;
use crate::random::{nanoseconds, recurring, within};
use crate::tls::Side;

const MILLISECOND: i64 = 1_000_000;

pub(super) fn write(setting: ScriptInput<'_>, random: &mut ChaCha20Rng) -> Result<Vec<TimedMessage>, SimulateError> {
    let readings = readings(setting, random)?;
    let mut gateway = Gateway { setting, readings, time_ns: setting.ready_ns, messages: Vec::new(), random };
    let close_ns = setting.stretch.close_ns;
    let hold = nanoseconds(setting.scenario.session.poll_timeout);
    let mut next = 0;
    while gateway.time_ns < close_ns || next < setting.stretch.commands.len() {
        gateway.tell_readings();
        let poll = http::poll(&setting.scenario.network.name);
        gateway.say(gateway.time_ns, Side::Client, poll, MessageRole::Other);
        let arrived_ns = gateway.time_ns + gateway.trip() + MILLISECOND;
        let command = setting.stretch.commands.get(next);
        match command.map(|command| command.time_ns.max(arrived_ns)).filter(|time_ns| *time_ns < arrived_ns + hold) {
            Some(time_ns) => {
                gateway.take_command(next, time_ns)?;
                next += 1;
            }
            // The gateway goes while its last poll is held, but no command is left behind.
            None if arrived_ns + hold > close_ns && command.is_none() => break,
            None => {
                gateway.say(arrived_ns + hold, Side::Server, http::nothing(arrived_ns + hold), MessageRole::Other);
                gateway.pause();
            }
        }
    }
    Ok(gateway.messages)
}

/// When the gateway has something of its own to tell, and what.
fn readings(setting: ScriptInput<'_>, random: &mut ChaCha20Rng) -> Result<VecDeque<(i64, Vec<u8>)>, SimulateError> {
    let scenario = setting.scenario;
    let devices: u32 = scenario.devices.iter().map(|device| device.count).sum();
    let times = recurring(scenario.telemetry.period, setting.ready_ns, setting.stretch.close_ns, random);
    let reading = |time_ns| {
        let device = random.random_range(0..devices);
        Ok((time_ns, setting.writer.reading(device, random.random_range(1_000..10_000))?))
    };
    times.into_iter().map(reading).collect()
}

/// The gateway, between two requests.
struct Gateway<'a> {
    setting: ScriptInput<'a>,
    readings: VecDeque<(i64, Vec<u8>)>,
    time_ns: i64,
    messages: Vec<TimedMessage>,
    random: &'a mut ChaCha20Rng,
}

impl Gateway<'_> {
    fn trip(&self) -> i64 {
        nanoseconds(self.setting.scenario.network.round_trip)
    }

    fn say(&mut self, time_ns: i64, side: Side, bytes: Vec<u8>, role: MessageRole) {
        self.messages.push(TimedMessage { time_ns, side, bytes, role });
        self.time_ns = time_ns;
    }

    fn pause(&mut self) {
        self.time_ns += self.random.random_range(MILLISECOND..4 * MILLISECOND);
    }

    /// Posts something and waits for the response.
    fn post(&mut self, body: &[u8], role: MessageRole) {
        let request = http::post(&self.setting.scenario.network.name, body);
        self.say(self.time_ns, Side::Client, request, role);
        let answered_ns = self.time_ns + self.trip() + within(self.setting.scenario.telemetry.think, self.random);
        self.say(answered_ns, Side::Server, http::nothing(answered_ns), MessageRole::Other);
        self.pause();
    }

    fn tell_readings(&mut self) {
        let until_ns = self.time_ns;
        while let Some((_, body)) = self.readings.pop_front_if(|(time_ns, _)| *time_ns <= until_ns) {
            self.post(&body, MessageRole::Other);
        }
    }

    /// The service answers the poll with a command; the gateway carries it out and reports.
    fn take_command(&mut self, index: usize, time_ns: i64) -> Result<(), SimulateError> {
        let ScriptInput { scenario, writer, stretch, .. } = self.setting;
        let Some(command) = stretch.commands.get(index) else { return Ok(()) };
        let body = writer.command(command.message_id, time_ns, &command.orders)?;
        self.say(time_ns, Side::Server, http::found(time_ns, &body), MessageRole::Command(index));
        self.pause();
        for reply in replies(command, scenario.replies, writer, self.random)? {
            self.time_ns = self.time_ns.max(time_ns + reply.delay_ns);
            // Statuses that go out together are one body: a line each.
            self.post(&reply.bodies.join(&b'\n'), MessageRole::Reply(index));
        }
        Ok(())
    }
}
