//! From a scenario and a seed to captures, labels and ground truth; and these to files.

use std::fs;
use std::path::Path;

use rand::RngExt;
use rand_chacha::ChaCha20Rng;
use sizeleak_platform::storage::replace;

use crate::application::{Message, MessagePadding, MessageRole, PushSession, poll_messages};
use crate::command_generator::{CapturePart, WantedCommand};
use crate::home_life::{AttackTime, HomeLife};
use crate::live_home::{LiveHome, inventory_file};
use crate::network::{self, SimulatedPacket};
use crate::random_streams::{DAY, MICROSECOND, MILLISECOND, Purpose, SECOND, Seed, nanoseconds};
use crate::scenario::{Framing, Resolution};
use crate::schedule::{PlannedConnection, Schedule, ScheduleRandom};
use crate::tls::ServerIdentity;
use crate::tls_connection::{self, SentMessage, flow_frames};
use crate::{Scenario, SimulateError};

/// A simulated home, captured while its commands are labelled and again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// The capture to learn from: the paper's experiments, then random commands.
    pub learn: SimulatedCapture,
    /// The capture to test on: random commands.
    pub test: SimulatedCapture,
    /// What happened in the capture to test on beside the life of the home.
    pub attacks: Vec<AttackTime>,
    /// The devices, as an inventory file: TOML, `[[device]]` with name, count and actions.
    pub inventory: String,
    form: TestForm,
}

/// What the traffic to test on is made as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestForm {
    /// A capture, with real TLS.
    Capture,
    /// The commands alone, as a stream of frames, with the sizes that they have in a capture. A year takes a minute.
    Frames,
}

impl TestForm {
    fn file(self) -> &'static str {
        match self {
            Self::Capture => "test.pcap",
            Self::Frames => "test.frames",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedCapture {
    /// The capture, a pcap file; or a stream of frames ([`TestForm::Frames`]).
    pub bytes: Vec<u8>,
    /// The labels as a person wrote them down, with inexact times: a CSV file, `time,<action>,…`, a row for each
    /// command.
    pub labels: String,
    /// The commands as they were sent, in the order of the labels, without dummies.
    pub truths: Vec<Truth>,
}

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
    pub records: usize,
    /// The number of replies: TLS messages of the gateway that answer it.
    pub replies: usize,
    /// Digits of the message id, which make ε.
    pub message_id_width: usize,
}

/// Simulates a scenario. The same scenario and seed produce the same bytes.
///
/// # Errors
/// [`SimulateError`], if the scenario is invalid, or a message does not fit its framing,
/// or a bug of the simulator.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Simulation, SimulateError> {
    simulate_as(scenario, seed, TestForm::Capture)
}

/// Simulates a scenario, with the traffic to test on in this form. The same scenario and seed produce the same bytes.
pub fn simulate_as(scenario: &Scenario, seed: u64, form: TestForm) -> Result<Simulation, SimulateError> {
    let simulator = Simulator::new(scenario, seed)?;
    let start_ns = scenario.epoch.as_second() * SECOND + i64::from(scenario.epoch.subsec_nanosecond());

    let learn_seed = Seed::new(seed, 1);
    let mut random = ScheduleRandom::new(learn_seed);
    let experiments = simulator.home.generator.experiments(scenario.learn.repeats, &mut random.commands);
    let mut commands: Vec<WantedCommand> =
        experiments.into_iter().map(|actions| WantedCommand::new(None, actions)).collect();
    commands.extend((0..scenario.learn.random).map(|_| simulator.usual_command(&mut random)));
    let (learn, end_ns) =
        simulator.part(CapturePart::Learn, TestForm::Capture, learn_seed, start_ns, commands, random)?;
    // The test starts at the same time of day, on the first day after the end of learning.
    let days = (end_ns - start_ns).div_euclid(DAY) + 1;
    let (test_ns, test_seed) = (start_ns + days * DAY, Seed::new(seed, 2));
    let mut random = ScheduleRandom::new(test_seed);
    let (commands, attacks) = simulator.test_commands(test_ns, test_seed, &mut random)?;
    let (test, _) = simulator.part(CapturePart::Test, form, test_seed, test_ns, commands, random)?;
    let inventory = inventory_file(&scenario.devices)?;
    Ok(Simulation { learn, test, attacks, inventory, form })
}

impl Simulation {
    /// The names of the files that [`Simulation::write_to`] writes.
    pub fn files(scenario: &Scenario, form: TestForm) -> Vec<&'static str> {
        let attacks = (!scenario.habits.attacks.is_empty()).then_some("attacks.csv");
        ["learn.pcap", "learn.csv", form.file(), "test.csv", "inventory.toml"].into_iter().chain(attacks).collect()
    }

    /// Writes the captures, their labels, the inventory and the times of attacks into a folder, which is created if it does
    /// not exist.
    pub fn write_to(&self, folder: impl AsRef<Path>) -> Result<(), SimulateError> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder)
            .map_err(|error| SimulateError(format!("{} cannot be created: {error}", folder.display())))?;
        let attacks = attacks_csv(&self.attacks);
        let contents: [(&str, &[u8]); 6] = [
            ("learn.pcap", &self.learn.bytes),
            ("learn.csv", self.learn.labels.as_bytes()),
            (self.form.file(), &self.test.bytes),
            ("test.csv", self.test.labels.as_bytes()),
            ("inventory.toml", self.inventory.as_bytes()),
            ("attacks.csv", attacks.as_bytes()),
        ];
        for (name, content) in contents {
            if name != "attacks.csv" || !self.attacks.is_empty() {
                replace(&folder.join(name), content)?;
            }
        }
        Ok(())
    }
}

/// The names of the services of background traffic.
pub(crate) const FIRMWARE: &str = "updates.example";
pub(crate) const WEBSITE: &str = "www.example";

/// What both captures share.
pub(crate) struct Simulator {
    pub(crate) home: LiveHome,
    pub(crate) firmware: ServerIdentity,
    pub(crate) website: ServerIdentity,
}

impl Simulator {
    fn new(scenario: &Scenario, seed: u64) -> Result<Self, SimulateError> {
        let home = LiveHome::new(scenario.clone(), seed)?;
        let identity =
            |name: &str, index| ServerIdentity::new(name, &mut home.seed.stream(Purpose::Certificate, index));
        Ok(Self { firmware: identity(FIRMWARE, 1)?, website: identity(WEBSITE, 2)?, home })
    }

    fn usual_command(&self, random: &mut ScheduleRandom) -> WantedCommand {
        WantedCommand::new(None, self.home.generator.usual_command(&mut random.commands, &mut random.variation))
    }

    /// The commands to test on: those of the home's life, if it has one.
    fn test_commands(
        &self,
        start_ns: i64,
        seed: Seed,
        random: &mut ScheduleRandom,
    ) -> Result<(Vec<WantedCommand>, Vec<AttackTime>), SimulateError> {
        let LiveHome { scenario, generator, .. } = &self.home;
        let played = scenario.played_commands(start_ns);
        if !played.is_empty() {
            return Ok((played, Vec::new()));
        }
        if scenario.habits.days == 0 {
            return Ok(((0..scenario.test.commands).map(|_| self.usual_command(random)).collect(), Vec::new()));
        }
        let (lived, attacks) = HomeLife::new(scenario, generator, start_ns, seed)?.live();
        let wanted = lived.into_iter().map(|lived| WantedCommand::new(Some(lived.time_ns), lived.actions));
        Ok((wanted.collect(), attacks))
    }

    /// Simulates the traffic of some commands. Returns it with its end, in nanoseconds since the epoch.
    fn part(
        &self,
        part: CapturePart,
        form: TestForm,
        seed: Seed,
        start_ns: i64,
        commands: Vec<WantedCommand>,
        mut random: ScheduleRandom,
    ) -> Result<(SimulatedCapture, i64), SimulateError> {
        let LiveHome { scenario, generator, hosts, .. } = &self.home;
        let mut sent = generator.add_dummies(commands, scenario.command.dummies, &mut random.variation);
        generator.draw_parameters(&mut sent, &mut random.variation);
        let schedule = Schedule::new(scenario, part, start_ns, sent, &mut random);
        let (mut packets, mut frames, mut truths) = (Vec::new(), Vec::new(), Vec::new());
        for (index, connection) in (0_u32..).zip(&schedule.connections) {
            let sent = match form {
                TestForm::Capture => {
                    let (of_connection, sent) = self.connection(seed, index, connection)?;
                    packets.extend(of_connection);
                    sent
                }
                TestForm::Frames => {
                    let random = seed.stream(Purpose::Messages, index);
                    let messages = self.messages(seed, index, connection, connection.open_ns, random)?;
                    let alone = |message| SentMessage::without_packets(message, scenario.tls);
                    let sent: Vec<SentMessage> = messages.iter().map(alone).collect();
                    frames.extend(flow_frames(index, connection, &sent, hosts, scenario.network.port));
                    sent
                }
            };
            truths.extend(self.truths(connection, &sent));
        }
        let bytes = match form {
            TestForm::Capture => {
                let mut all = self.background(seed, start_ns, schedule.end_ns)?;
                all.extend(packets);
                let random = seed.stream(Purpose::Capture, 0);
                let captured = network::captured(all, scenario.capture, start_ns, random);
                network::pcap_file(&captured, scenario.capture.resolution)?
            }
            TestForm::Frames => tls_connection::frame_stream(&frames)?,
        };
        let mut random = seed.stream(Purpose::Labels, 0);
        let error = nanoseconds(scenario.labels.error);
        let labels = truths
            .iter()
            .map(|truth: &Truth| (truth.time_ns + random.random_range(-error..=error), truth.counts.as_slice()));
        let labels = labels_csv(scenario, labels)?;
        Ok((SimulatedCapture { bytes, labels, truths }, schedule.end_ns))
    }

    fn connection(
        &self,
        seed: Seed,
        index: u32,
        connection: &PlannedConnection,
    ) -> Result<(Vec<SimulatedPacket>, Vec<SentMessage>), SimulateError> {
        let LiveHome { scenario, hosts, .. } = &self.home;
        let mut random = seed.stream(Purpose::Messages, index);
        let query_ns = connection.open_ns - 50 * MILLISECOND;
        let named = (&*scenario.network.name, hosts.service);
        let mut packets = self.dns_look_up(query_ns, hosts.gateway, named, &mut random)?.to_vec();
        let tls = self.home.connect(seed, index, connection.open_ns, &mut random)?;
        let messages = self.messages(seed, index, connection, tls.ready_ns, random)?;
        let (of_connection, sent) = tls.carry(&messages, connection.close_ns)?;
        packets.extend(of_connection);
        Ok((packets, sent))
    }

    fn messages(
        &self,
        seed: Seed,
        index: u32,
        connection: &PlannedConnection,
        ready_ns: i64,
        random: ChaCha20Rng,
    ) -> Result<Vec<Message>, SimulateError> {
        let mut key = self.home.seed.stream(Purpose::Padding, 0);
        let padded = seed.stream(Purpose::Padding, index);
        let mut padding = MessagePadding::new(&self.home.scenario, &connection.commands, &mut key, padded);
        let input = self.home.input(connection, ready_ns);
        if input.scenario.session.framing == Framing::Http {
            return poll_messages(input, &mut padding, random);
        }
        PushSession::begin(input, random)?.all_messages(input, &mut padding)
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
        let captured = |time_ns: i64| match self.home.scenario.capture.resolution {
            Resolution::Microsecond => time_ns.div_euclid(MICROSECOND) * MICROSECOND,
            Resolution::Nanosecond => time_ns,
        };
        let truth = |message: &SentMessage| {
            let MessageRole::Command(index) = message.role else { return None };
            let command = connection.commands.get(index).filter(|command| !command.is_dummy)?;
            Some(Truth {
                time_ns: captured(message.first_ns),
                end_ns: captured(message.last_ns),
                counts: self.home.generator.counts(&command.actions),
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

/// Labels as CSV: `time` in seconds since the epoch with decimals, then a column for each action. A label has the time
/// that a person wrote down, in nanoseconds since the epoch, and how often each action occurs.
fn labels_csv<'a>(
    scenario: &Scenario,
    labels: impl Iterator<Item = (i64, &'a [u32])>,
) -> Result<String, SimulateError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = std::iter::once("time").chain(scenario.action_names());
    writer.write_record(header).map_err(SimulateError::encoding("labels"))?;
    for (time_ns, counts) in labels {
        let time = seconds(time_ns, scenario.capture.resolution);
        let counts = counts.iter().map(u32::to_string);
        writer.write_record(std::iter::once(time).chain(counts)).map_err(SimulateError::encoding("labels"))?;
    }
    let bytes = writer.into_inner().map_err(SimulateError::encoding("labels"))?;
    String::from_utf8(bytes).map_err(SimulateError::encoding("labels"))
}

/// The times of attacks as CSV: `time` in seconds since the epoch with decimals, and what happened.
fn attacks_csv(attacks: &[AttackTime]) -> String {
    let row = |AttackTime { kind, start_ns }: &AttackTime| {
        format!("{},{kind}\n", seconds(*start_ns, Resolution::Microsecond))
    };
    std::iter::once("time,attack\n".to_owned()).chain(attacks.iter().map(row)).collect()
}

fn seconds(time_ns: i64, resolution: Resolution) -> String {
    let (seconds, rest) = (time_ns.div_euclid(SECOND), time_ns.rem_euclid(SECOND));
    match resolution {
        Resolution::Microsecond => format!("{seconds}.{:06}", rest / 1_000),
        Resolution::Nanosecond => format!("{seconds}.{rest:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_the_resolution_of_the_capture() {
        let label = (1_767_600_000_012_345_678, &[1, 0, 2, 0, 0, 0, 0][..]);
        let text = labels_csv(&Scenario::default(), [label].into_iter()).unwrap();
        assert_eq!(text, "time,on,off,toggle,timer,dim,white,colour\n1767600000.012345,1,0,2,0,0,0,0\n");
        assert_eq!(seconds(1_000_000_001, Resolution::Nanosecond), "1.000000001");
    }
}
