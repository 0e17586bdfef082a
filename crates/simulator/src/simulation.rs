//! From a scenario and a seed to captures, labels and truth; and these to files.

use std::fs;
use std::path::Path;

use rand::RngExt;

use crate::application::{self, MessageRole, ScriptInput};
use crate::background_traffic::{BackgroundTraffic, FIRMWARE, WEBSITE};
use crate::message::MessageEncoder;
use crate::network::{Hosts, SimulatedPacket, TcpRoute};
use crate::open_connection::{ConnectionSetup, OpenConnection, SentMessage};
use crate::plan::{CommandGenerator, DeviceAction, PlannedConnection, Schedule};
use crate::random::{Purpose, Seed, nanoseconds};
use crate::scenario::Resolution;
use crate::tls::ServerIdentity;
use crate::{Scenario, SimulateError, labels, network};

const DAY: i64 = 86_400_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// A simulated home: what is seen of it while its commands are labelled, and later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// The part to learn from: the paper's experiments, then random commands.
    pub learn: SimulatedCapture,
    /// The part to test on: random commands.
    pub test: SimulatedCapture,
    /// The devices, as an inventory file: TOML, `[[device]]` with name, count and actions.
    pub inventory: String,
}

/// A capture and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedCapture {
    /// The capture, a pcap file.
    pub pcap: Vec<u8>,
    /// The labels as a person wrote them down, a CSV file: `time,<action>,…`; one row a command, its time inexact.
    pub labels: String,
    /// The commands as they were, in the order of the labels.
    pub truths: Vec<Truth>,
}

/// The truth about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// When its first segment was captured, nanoseconds since the epoch, as exact as the capture's times.
    pub time_ns: i64,
    /// When its last segment was captured.
    pub end_ns: i64,
    /// How often each action occurs, in the order of [`Scenario::action_names`].
    pub counts: Vec<u32>,
    /// Plaintext bytes: the JSON body and its framing.
    pub plaintext_size: usize,
    /// The sum of its records' lengths (`TLSCiphertext.length`), bytes.
    pub wire_size: usize,
    /// How many TLS records carried it.
    pub records: usize,
    /// How many replies (TLS messages of the gateway) answered it.
    pub replies: usize,
    /// Digits of the message's number: what makes ε.
    pub message_id_width: usize,
}

/// Simulates a scenario. The same scenario and seed give the same bytes.
///
/// # Errors
/// [`SimulateError::Scenario`] where the scenario is not possible; the others tell of a message that does not fit its
/// framing or of a fault in the simulator.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Simulation, SimulateError> {
    scenario.check()?;
    let simulator = Simulator::new(scenario, seed)?;
    let start_ns = scenario.epoch.as_second() * 1_000_000_000 + i64::from(scenario.epoch.subsec_nanosecond());

    let (learn, end_ns) = simulator.part(Seed::new(seed, 1), start_ns, |home, random| {
        let mut commands = home.experiments(scenario.learn.repeats, random);
        commands.extend((0..scenario.learn.random).map(|_| home.random(scenario, random)));
        commands
    })?;
    // The test begins at the same hour, on the first day on which learning is over.
    let days = (end_ns - start_ns).div_euclid(DAY) + 1;
    let (test, _) = simulator.part(Seed::new(seed, 2), start_ns + days * DAY, |home, random| {
        (0..scenario.test.commands).map(|_| home.random(scenario, random)).collect()
    })?;
    Ok(Simulation { learn, test, inventory: labels::inventory(&scenario.devices)? })
}

impl Simulation {
    /// Writes `learn.pcap`, `learn.csv`, `test.pcap`, `test.csv` and `inventory.toml` into a folder, which is made
    /// where it is missing.
    ///
    /// # Errors
    /// [`SimulateError::File`].
    pub fn write_to(&self, folder: impl AsRef<Path>) -> Result<(), SimulateError> {
        let folder = folder.as_ref();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| SimulateError::File { path, source }
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let files: [(&str, &[u8]); 5] = [
            ("learn.pcap", &self.learn.pcap),
            ("learn.csv", self.learn.labels.as_bytes()),
            ("test.pcap", &self.test.pcap),
            ("test.csv", self.test.labels.as_bytes()),
            ("inventory.toml", self.inventory.as_bytes()),
        ];
        for (name, content) in files {
            let path = folder.join(name);
            fs::write(&path, content).map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// What both parts share.
struct Simulator<'a> {
    scenario: &'a Scenario,
    home: CommandGenerator,
    writer: MessageEncoder,
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
            home: CommandGenerator::new(scenario),
            writer: MessageEncoder::new(scenario),
            hosts: Hosts::new(&scenario.network),
            service: identity(&scenario.network.name, 0)?,
            firmware: identity(FIRMWARE, 1)?,
            website: identity(WEBSITE, 2)?,
        })
    }

    /// Simulates a part; also gives its end.
    fn part(
        &self,
        seed: Seed,
        start_ns: i64,
        commands: impl FnOnce(&CommandGenerator, &mut rand_chacha::ChaCha20Rng) -> Vec<Vec<DeviceAction>>,
    ) -> Result<(SimulatedCapture, i64), SimulateError> {
        let mut random = seed.stream(Purpose::Commands, 0);
        let commands = commands(&self.home, &mut random);
        let plan = Schedule::new(self.scenario, start_ns, commands, &mut random);

        let mut packets = self.surroundings(seed).packets(plan.start_ns, plan.end_ns)?;
        let mut truths = Vec::new();
        for (index, stretch) in (0_u32..).zip(&plan.stretches) {
            let (captured, known) = self.stretch(seed, index, stretch)?;
            packets.extend(captured);
            truths.extend(known);
        }

        let capture = self.scenario.capture;
        let pcap = network::write(packets, capture, plan.start_ns, seed.stream(Purpose::Capture, 0))?;
        let mut random = seed.stream(Purpose::Labels, 0);
        let error = nanoseconds(self.scenario.labels.error);
        let rows: Vec<(i64, &Truth)> =
            truths.iter().map(|truth| (truth.time_ns + random.random_range(-error..=error), truth)).collect();
        let labels = labels::csv(self.scenario, &rows)?;
        Ok((SimulatedCapture { pcap, labels, truths }, plan.end_ns))
    }

    fn surroundings(&self, seed: Seed) -> BackgroundTraffic<'_> {
        let Self { scenario, hosts, firmware, website, .. } = self;
        BackgroundTraffic { scenario, hosts, firmware, website, seed }
    }

    /// One connection of the gateway.
    fn stretch(
        &self,
        seed: Seed,
        index: u32,
        stretch: &PlannedConnection,
    ) -> Result<(Vec<SimulatedPacket>, Vec<Truth>), SimulateError> {
        let Self { scenario, writer, hosts, .. } = self;
        let mut random = seed.stream(Purpose::Script, index);
        let network = &scenario.network;
        let asked_ns = stretch.open_ns - 50 * MILLISECOND;
        let names = self.surroundings(seed).look_up(asked_ns, hosts.gateway, &network.name, &mut random)?;
        let ports = [random.random_range(32_768..=60_999), network.port];
        let opened = OpenConnection::new(ConnectionSetup {
            route: TcpRoute { client: hosts.gateway, server: hosts.service, ports, network },
            identity: &self.service,
            tls: scenario.tls,
            protocol: application::protocol(scenario.session.framing),
            open_ns: stretch.open_ns,
            tls_random: seed.stream(Purpose::Tls, index),
            tcp_random: seed.stream(Purpose::Tcp, index),
        })?;
        let setting = ScriptInput { scenario, writer, stretch, ready_ns: opened.ready_ns };
        let messages = application::write(setting, &mut random)?;
        let conversation = opened.carry(&messages, stretch.close_ns)?;
        let truths = self.truths(stretch, &conversation.sent);
        Ok((names.into_iter().chain(conversation.packets).collect(), truths))
    }

    fn truths(&self, stretch: &PlannedConnection, sent: &[SentMessage]) -> Vec<Truth> {
        let mut replies = vec![0; stretch.commands.len()];
        for sent in sent {
            if let MessageRole::Reply(index) = sent.role
                && let Some(count) = replies.get_mut(index)
            {
                *count += 1;
            }
        }
        let exact = |time_ns: i64| match self.scenario.capture.resolution {
            Resolution::Microsecond => time_ns.div_euclid(1_000) * 1_000,
            Resolution::Nanosecond => time_ns,
        };
        let truth = |sent: &SentMessage| {
            let MessageRole::Command(index) = sent.role else { return None };
            let command = stretch.commands.get(index)?;
            Some(Truth {
                time_ns: exact(sent.first_ns),
                end_ns: exact(sent.last_ns),
                counts: self.home.counts(&command.orders),
                plaintext_size: sent.plaintext_size,
                wire_size: sent.wire_size,
                records: sent.records,
                replies: replies.get(index).copied().unwrap_or(0),
                message_id_width: command.message_id.to_string().len(),
            })
        };
        sent.iter().filter_map(truth).collect()
    }
}
