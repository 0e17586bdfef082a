//! From a scenario and a seed to captures, labels and ground truth; and these to files.

use std::fs;
use std::path::Path;

use rand::RngExt;
use sizeleak_platform::storage::replace;

use crate::application::{self, MessageInput, MessagePadding, MessageRole};
use crate::background_traffic::{BackgroundTraffic, FIRMWARE, WEBSITE};
use crate::command_generator::{CapturePart, CommandGenerator, DeviceAction};
use crate::labels::LabelRow;
use crate::message_encoder::MessageEncoder;
use crate::network::{Hosts, SimulatedPacket, TcpRoute};
use crate::random_streams::{Purpose, Seed};
use crate::scenario::Resolution;
use crate::schedule::{PlannedConnection, Schedule, ScheduleRandom};
use crate::time::{DAY, MICROSECOND, MILLISECOND, SECOND, nanoseconds};
use crate::tls::ServerIdentity;
use crate::tls_connection::{ConnectionSetup, SentMessage, TlsConnection};
use crate::{Scenario, SimulateError, labels, network};

/// A simulated home, captured while its commands are labelled and again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// The capture to learn from: the paper's experiments, then random commands.
    pub learn: SimulatedCapture,
    /// The capture to test on: random commands.
    pub test: SimulatedCapture,
    /// The devices, as an inventory file: TOML, `[[device]]` with name, count and actions.
    pub inventory: String,
}

/// A capture with its labels and its ground truth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedCapture {
    /// The capture, a pcap file.
    pub pcap: Vec<u8>,
    /// The labels as a person wrote them down, with inexact times: a CSV file, `time,<action>,…`, a row for each
    /// command.
    pub labels: String,
    /// The commands as they were sent, in the order of the labels, without dummies.
    pub truths: Vec<Truth>,
}

/// The ground truth about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// When its first segment was captured: nanoseconds since the epoch, in the resolution of the capture.
    pub time_ns: i64,
    /// When its last segment was captured.
    pub end_ns: i64,
    /// How often each action occurs, in the order of [`Scenario::action_names`].
    pub counts: Vec<u32>,
    /// Bytes of plaintext: the JSON body with its framing and its padding.
    pub plaintext_size: usize,
    /// The sum of its records' lengths (`TLSCiphertext.length`), in bytes.
    pub wire_size: usize,
    /// The number of its TLS records.
    pub records: usize,
    /// The number of replies: TLS messages of the gateway that answer it.
    pub replies: usize,
    /// Digits of the message id, which make ε.
    pub message_id_width: usize,
}

/// Simulates a scenario. The same scenario and seed produce the same bytes.
///
/// # Errors
/// [`SimulateError::Scenario`] if the scenario is invalid; the others report a message that does not fit its framing,
/// or a bug of the simulator.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Simulation, SimulateError> {
    scenario.check()?;
    let simulator = Simulator::new(scenario, seed)?;
    let start_ns = scenario.epoch.as_second() * SECOND + i64::from(scenario.epoch.subsec_nanosecond());

    let (learn, end_ns) =
        simulator.capture(CapturePart::Learn, Seed::new(seed, 1), start_ns, |generator, random| {
            let mut commands = generator.experiments(scenario.learn.repeats, &mut random.commands);
            let ScheduleRandom { commands: random, variation } = random;
            commands.extend((0..scenario.learn.random).map(|_| generator.usual_command(random, variation)));
            commands
        })?;
    // The test starts at the same time of day, on the first day after the end of learning.
    let days = (end_ns - start_ns).div_euclid(DAY) + 1;
    let test_ns = start_ns + days * DAY;
    let (test, _) = simulator.capture(CapturePart::Test, Seed::new(seed, 2), test_ns, |generator, random| {
        let ScheduleRandom { commands: random, variation } = random;
        (0..scenario.test.commands).map(|_| generator.usual_command(random, variation)).collect()
    })?;
    Ok(Simulation { learn, test, inventory: labels::inventory(&scenario.devices)? })
}

impl Simulation {
    /// The names of the files that [`Simulation::write_to`] writes.
    pub const FILES: [&'static str; 5] = ["learn.pcap", "learn.csv", "test.pcap", "test.csv", "inventory.toml"];

    /// Writes [`Simulation::FILES`] into a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// [`SimulateError::Folder`] and [`SimulateError::File`].
    pub fn write_to(&self, folder: impl AsRef<Path>) -> Result<(), SimulateError> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|source| SimulateError::Folder { path: folder.to_owned(), source })?;
        let contents: [&[u8]; 5] = [
            &self.learn.pcap,
            self.learn.labels.as_bytes(),
            &self.test.pcap,
            self.test.labels.as_bytes(),
            self.inventory.as_bytes(),
        ];
        for (name, content) in Self::FILES.iter().zip(contents) {
            replace(&folder.join(name), content)?;
        }
        Ok(())
    }
}

/// What both captures share.
struct Simulator<'a> {
    scenario: &'a Scenario,
    seed: u64,
    generator: CommandGenerator,
    encoder: MessageEncoder,
    hosts: Hosts,
    service: ServerIdentity,
    firmware: ServerIdentity,
    website: ServerIdentity,
}

impl<'a> Simulator<'a> {
    fn new(scenario: &'a Scenario, seed: u64) -> Result<Self, SimulateError> {
        let shared = Seed::new(seed, 0);
        let identity = |name: &str, index| ServerIdentity::new(name, &mut shared.stream(Purpose::Certificate, index));
        Ok(Self {
            scenario,
            seed,
            generator: CommandGenerator::new(scenario, &mut shared.stream(Purpose::Variation, 0)),
            encoder: MessageEncoder::new(scenario),
            hosts: Hosts::new(&scenario.network),
            service: identity(&scenario.network.name, 0)?,
            firmware: identity(FIRMWARE, 1)?,
            website: identity(WEBSITE, 2)?,
        })
    }

    /// Simulates a capture. Returns it with its end, in nanoseconds since the epoch.
    fn capture(
        &self,
        part: CapturePart,
        seed: Seed,
        start_ns: i64,
        commands: impl FnOnce(&CommandGenerator, &mut ScheduleRandom) -> Vec<Vec<DeviceAction>>,
    ) -> Result<(SimulatedCapture, i64), SimulateError> {
        let stream = |purpose| seed.stream(purpose, 0);
        let mut random = ScheduleRandom { commands: stream(Purpose::Commands), variation: stream(Purpose::Variation) };
        let commands = commands(&self.generator, &mut random);
        let sent = self.generator.add_dummies(commands, self.scenario.command.dummies, &mut random.variation);
        let (mut commands, dummies): (Vec<_>, Vec<bool>) = sent.into_iter().unzip();
        self.generator.draw_parameters(&mut commands, &mut random.variation);
        let mut schedule = Schedule::new(self.scenario, part, start_ns, commands, &mut random);
        schedule.mark_dummies(&dummies);

        let mut packets = self.background_traffic(seed).packets(schedule.start_ns, schedule.end_ns)?;
        let mut truths = Vec::new();
        for (index, connection) in (0_u32..).zip(&schedule.connections) {
            let (connection_packets, connection_truths) = self.connection(seed, index, connection)?;
            packets.extend(connection_packets);
            truths.extend(connection_truths);
        }

        let settings = self.scenario.capture;
        let pcap = network::write_pcap(packets, settings, schedule.start_ns, seed.stream(Purpose::Capture, 0))?;
        let mut random = seed.stream(Purpose::Labels, 0);
        let error = nanoseconds(self.scenario.labels.error);
        let labels = truths.iter().map(|truth: &Truth| LabelRow {
            time_ns: truth.time_ns + random.random_range(-error..=error),
            counts: &truth.counts,
        });
        let labels = labels::csv(self.scenario, labels)?;
        Ok((SimulatedCapture { pcap, labels, truths }, schedule.end_ns))
    }

    fn background_traffic(&self, seed: Seed) -> BackgroundTraffic<'_> {
        let Self { scenario, hosts, firmware, website, .. } = self;
        BackgroundTraffic { scenario, hosts, firmware, website, seed }
    }

    /// One connection of the gateway.
    fn connection(
        &self,
        seed: Seed,
        index: u32,
        connection: &PlannedConnection,
    ) -> Result<(Vec<SimulatedPacket>, Vec<Truth>), SimulateError> {
        let Self { scenario, encoder, hosts, .. } = self;
        let mut random = seed.stream(Purpose::Messages, index);
        let network = &scenario.network;
        let query_ns = connection.open_ns - 50 * MILLISECOND;
        let dns = self.background_traffic(seed).dns_look_up(query_ns, hosts.gateway, &network.name, &mut random)?;
        let ports = [random.random_range(32_768..=60_999), network.port];
        let tls = TlsConnection::open(ConnectionSetup {
            route: TcpRoute { client: hosts.gateway, server: hosts.service, ports, network },
            identity: &self.service,
            tls: scenario.tls,
            protocol: application::alpn_protocol(scenario.session.framing),
            open_ns: connection.open_ns,
            tls_random: seed.stream(Purpose::Tls, index),
            tcp_random: seed.stream(Purpose::Tcp, index),
        })?;
        let input = MessageInput { scenario, encoder, connection, ready_ns: tls.ready_ns };
        let mut key = Seed::new(self.seed, 0).stream(Purpose::Padding, 0);
        let padded = seed.stream(Purpose::Padding, index);
        let mut padding = MessagePadding::new(scenario, &connection.commands, &mut key, padded);
        let messages = application::messages(input, &mut padding, &mut random)?;
        let traffic = tls.carry(&messages, connection.close_ns)?;
        let truths = self.truths(connection, &traffic.messages);
        Ok((dns.into_iter().chain(traffic.packets).collect(), truths))
    }

    fn truths(&self, connection: &PlannedConnection, sent: &[SentMessage]) -> Vec<Truth> {
        let mut replies = vec![0; connection.commands.len()];
        for message in sent {
            if let MessageRole::Reply(index) = message.role
                && let Some(count) = replies.get_mut(index)
            {
                *count += 1;
            }
        }
        let captured = |time_ns: i64| match self.scenario.capture.resolution {
            Resolution::Microsecond => time_ns.div_euclid(MICROSECOND) * MICROSECOND,
            Resolution::Nanosecond => time_ns,
        };
        let truth = |message: &SentMessage| {
            let MessageRole::Command(index) = message.role else { return None };
            let command = connection.commands.get(index).filter(|command| !command.is_dummy)?;
            Some(Truth {
                time_ns: captured(message.first_ns),
                end_ns: captured(message.last_ns),
                counts: self.generator.counts(&command.actions),
                plaintext_size: message.plaintext_size,
                wire_size: message.wire_size,
                records: message.records,
                replies: replies.get(index).copied().unwrap_or(0),
                message_id_width: command.message_id.to_string().len(),
            })
        };
        sent.iter().filter_map(truth).collect()
    }
}
