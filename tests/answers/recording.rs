//! Experiments that choose their own commands, on simulated homes with real TLS, in simulated time: how many commands
//! they need, and how often the sizes they find are right.
//! `cargo test --test answers recording:: -- --nocapture` shows the figures.

use std::fs;
use std::path::PathBuf;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_evaluation::experiment::{
    Decision, Experiment, Half, Journal, Knowledge, MAX_COMMANDS, Outcome, PlannedCommand, Recording, Stop, labels_of,
};
use sizeleak_learning::labels::{LabelFile, LabelTimes};
use sizeleak_model::Inventory;
use sizeleak_simulator::scenario::Framing;
use sizeleak_simulator::{CommandedDevice, LiveHome, LiveSession, Scenario};
use tempfile::TempDir;

/// The most commands of an experiment at random.
const MAX_RANDOM: usize = 160;

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_767_600_000 * SECOND;

/// A home that is commanded, and what was captured of it.
struct Bench<'a> {
    session: LiveSession<'a>,
    folder: TempDir,
    capture: Vec<u8>,
    now_ns: i64,
    journal: Journal,
}

impl<'a> Bench<'a> {
    fn new(home: &'a LiveHome, experiment: &Experiment) -> Self {
        Self {
            session: home.open(0, START).unwrap(),
            folder: TempDir::new().unwrap(),
            capture: LiveSession::pcap_header().unwrap(),
            now_ns: START + 10 * SECOND,
            journal: Journal::new(experiment.actions(), 1),
        }
    }

    /// Sends a command, which takes `took_ns`, with its message somewhere between.
    fn send(&mut self, command: &PlannedCommand, took_ns: i64) {
        self.journal.begin(command, self.now_ns);
        let device = |action: &sizeleak_evaluation::experiment::DeviceAction| CommandedDevice {
            device: action.device.clone(),
            index: action.index,
            action: action.action.clone(),
        };
        let devices: Vec<CommandedDevice> = command.devices.iter().map(device).collect();
        self.session.flights(self.now_ns).unwrap();
        self.session.command(self.now_ns + took_ns / 3, &devices).unwrap();
        let step = self.journal.steps.last_mut().unwrap();
        (step.returned_ns, step.outcome) = (Some(self.now_ns + took_ns), Outcome::Sent);
        self.now_ns += took_ns + 3 * SECOND;
        self.session.flights(self.now_ns).unwrap();
        self.capture.extend(self.session.packets(self.now_ns, 0).unwrap());
    }

    fn labels(&self, half: Half) -> LabelFile {
        let path = self.folder.path().join(format!("{half:?}.csv"));
        let labels = labels_of(&self.journal.actions, self.journal.sent(half));
        labels.write(fs::File::create(&path).unwrap()).unwrap();
        LabelFile::read(&path, &LabelTimes::default()).unwrap()
    }

    fn recording(&self, inventory: &Inventory) -> Recording {
        let path: PathBuf = self.folder.path().join("capture.pcap");
        fs::write(&path, &self.capture).unwrap();
        Recording::new(&[path], &["192.168.1.20".to_owned()], inventory, &self.journal.steps).unwrap()
    }
}

/// How an experiment ended.
struct Played {
    stop: Stop,
    commands: usize,
    knowledge: Knowledge,
    explained: [u64; 2],
    /// After how many commands, those held back included, all sizes were right and stayed so.
    right_from: Option<usize>,
}

/// The truth: the bytes of an action among others.
fn sizes(scenario: &Scenario) -> Vec<(String, i64)> {
    let bytes = |action: &sizeleak_simulator::scenario::ActionValue| {
        r#"{"id":"node-01","set":},"#.len() + action.set.to_string().len()
    };
    scenario.actions.iter().map(|action| (action.name.clone(), i64::try_from(bytes(action)).unwrap())).collect()
}

fn found(knowledge: &Knowledge) -> Vec<(String, i64)> {
    knowledge.sizes.iter().map(|size| (size.action.clone(), size.size)).collect()
}

/// Plays an experiment to its end. With `is_random`, commands to learn from are not chosen.
fn play(scenario: &Scenario, seed: u64, is_random: bool) -> Played {
    let home = LiveHome::new(scenario.clone(), seed).unwrap();
    let inventory = Inventory::from_toml(&home.inventory().unwrap()).unwrap();
    let max_commands = if is_random { MAX_RANDOM } else { MAX_COMMANDS };
    let mut experiment = Experiment::new(inventory.clone(), max_commands, seed).unwrap();
    let mut bench = Bench::new(&home, &experiment);
    let (truth, mut right_from) = (sizes(scenario), None);
    loop {
        let mut command = match experiment.next() {
            Decision::Stop(stop) => {
                let explained = experiment.held_out().map_or([0, 0], |held| [held.explained, held.commands]);
                let (commands, knowledge) = (experiment.commands(), experiment.knowledge().unwrap().clone());
                return Played { stop, commands, knowledge, explained, right_from };
            }
            Decision::Send(command) => command,
        };
        if is_random && command.half == Half::Learn {
            command = at_random(&inventory, experiment.actions(), seed << 32 | experiment.commands() as u64);
        }
        bench.send(&command, SECOND / 5);
        experiment.add(command.half, Some(&command.counts));
        if command.half == Half::Learn && experiment.wants_check() {
            let recording = bench.recording(&inventory);
            let learned = recording.learn(&bench.labels(Half::Learn)).unwrap().ok();
            let knowledge = learned.as_ref().map(|learned| learned.knowledge.clone());
            let is_right = knowledge.as_ref().is_some_and(|knowledge| {
                let found = found(knowledge);
                truth.iter().all(|action| found.contains(action))
            });
            right_from = right_from.filter(|_| is_right).or(is_right.then_some(experiment.commands()));
            experiment.learned(knowledge);
            if let Some(learned) = learned.filter(|_| experiment.wants_test()) {
                experiment.tested(recording.test(&learned, &bench.labels(Half::Test)).unwrap().unwrap().held_out);
            }
        }
    }
}

/// What a person would command who does not plan: some devices, each with one of its actions.
fn at_random(inventory: &Inventory, actions: &[String], seed: u64) -> PlannedCommand {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let mut devices: Vec<(String, u32, &Vec<String>)> = inventory
        .devices
        .iter()
        .flat_map(|device| (0..device.count).map(|index| (device.name.clone(), index, &device.actions)))
        .collect();
    devices.shuffle(&mut random);
    // As the simulator's own commands: n + 1 actions are three quarters as likely as n.
    let more = (0..devices.len() - 1).take_while(|_| random.random_bool(0.75)).count();
    devices.truncate(1 + more);
    let devices: Vec<sizeleak_evaluation::experiment::DeviceAction> = devices
        .into_iter()
        .map(|(device, index, actions)| {
            let mut actions = actions.clone();
            actions.shuffle(&mut random);
            sizeleak_evaluation::experiment::DeviceAction { device, index, action: actions.remove(0) }
        })
        .collect();
    let count = |name: &String| devices.iter().filter(|device| device.action == *name).count() as u32;
    let counts = actions.iter().map(count).collect();
    PlannedCommand { counts, devices, half: Half::Learn, why: "at random".to_owned() }
}

fn home(framing: Framing) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.session.framing = framing;
    scenario
}

/// Plays with several seeds. Returns how many were right, the median number of commands, and the median after which sizes
/// were right and stayed so.
fn played(scenario: &Scenario, seeds: std::ops::Range<u64>, is_random: bool) -> (usize, usize, usize) {
    let (mut right, mut commands, mut needed) = (0, Vec::new(), Vec::new());
    let all = seeds.end - seeds.start;
    for seed in seeds {
        let played = play(scenario, seed, is_random);
        let found = found(&played.knowledge);
        let is_right = sizes(scenario).iter().all(|action| found.contains(action));
        println!(
            "seed {seed}: {} commands, {:?}, right {is_right} from {:?}, certainty {:.3}, held out {:?}",
            played.commands, played.stop, played.right_from, played.knowledge.certainty, played.explained
        );
        right += usize::from(is_right);
        commands.push(played.commands);
        needed.push(played.right_from.unwrap_or(usize::MAX));
    }
    let [median, needed] = [commands, needed].map(|mut counts| {
        counts.sort_unstable();
        counts[counts.len() / 2]
    });
    let framing = scenario.session.framing;
    println!(
        "{framing:?}, random {is_random}: {right} of {all} right, median {median} commands, right from {needed} on"
    );
    (right, median, needed)
}

#[test]
fn an_experiment_finds_the_sizes_of_a_home_by_itself() {
    for framing in [Framing::Websocket, Framing::Mqtt] {
        let (right, median, _) = played(&home(framing), 1..3, false);
        assert_eq!(right, 2);
        assert!(median <= 80, "{median} commands");
    }
}

/// Fifty experiments that choose, and ten of the same homes that do not.
fn fifty_are_right_with_fewer_commands(framing: Framing) {
    let (right, _, chosen) = played(&home(framing), 1..51, false);
    assert!(right >= 49, "{framing:?}: {right} of 50");
    let (_, _, random) = played(&home(framing), 1..11, true);
    assert!(chosen < random, "{framing:?}: {chosen} commands chosen, {random} at random");
}

#[test]
#[ignore = "second tier: takes minutes"]
fn fifty_experiments_over_a_websocket_are_right_with_fewer_commands_than_random_ones() {
    fifty_are_right_with_fewer_commands(Framing::Websocket);
}

#[test]
#[ignore = "second tier: takes minutes"]
fn fifty_experiments_over_mqtt_are_right_with_fewer_commands_than_random_ones() {
    fifty_are_right_with_fewer_commands(Framing::Mqtt);
}
