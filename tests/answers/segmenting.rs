//! How many commands the real program finds in simulated homes: those missed, spurious, and found with another size.
//! `cargo test --test answers segmenting:: -- --nocapture` shows the figures.

use std::fs;

use jiff::SignedDuration;
use serde_json::Value;
use sizeleak_simulator::scenario::{DurationRange, Framing, QualityOfService, ReplyMode, Suite, Version};
use sizeleak_simulator::{Scenario, Truth, simulate};
use support::home::{Home, run};
use support::programs::{GATEWAY, sizeleak, stderr};

const FRAMINGS: [Framing; 3] = [Framing::Websocket, Framing::Mqtt, Framing::Http];

const ALGORITHMS: [&str; 4] = ["record", "gap", "adaptive", "learned"];

/// A packet that is late by up to 5 ms moves its command by as much.
const LATE: i64 = 6_000_000;

/// The outcome for the commands of a capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    commands: usize,
    missed: usize,
    spurious: usize,
    /// Found, but not with its size.
    resized: usize,
    /// Found, but not with as many replies as were sent.
    other_replies: usize,
}

impl Found {
    fn wrong(self) -> usize {
        self.missed + self.spurious + self.resized
    }
}

fn commands(home: &Home, algorithm: &str) -> Vec<Value> {
    let pipeline = home.path("pipeline.toml");
    let stages = format!(
        "[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"flow-filter\"\n[[stage]]\nrun = \"record-sizer\"\n\
         [[stage]]\nrun = \"command-segmenter\"\nalgorithm = \"{algorithm}\"\nmodel = \"model.toml\"\n"
    );
    fs::write(&pipeline, stages).unwrap();
    let mut command = sizeleak("run");
    command.arg(&pipeline).arg(home.path("test.pcap")).args(["--gateway", GATEWAY]);
    let output = run(command.args(["--format", "ndjson", "--kind", "command"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["command"].take()).collect()
}

/// Compares what was found with what was sent, both in order of time.
fn compare(commands: &[Value], truths: &[Truth]) -> Found {
    let mut found = Found { commands: truths.len(), ..Found::default() };
    let mut rest = commands.iter().peekable();
    let time_of = |command: &Value| command["time_ns"].as_i64().unwrap();
    for truth in truths {
        while rest.next_if(|command| time_of(command) < truth.time_ns - LATE).is_some() {
            found.spurious += 1;
        }
        let Some(command) = rest.next_if(|command| time_of(command).abs_diff(truth.time_ns) <= LATE.unsigned_abs())
        else {
            found.missed += 1;
            continue;
        };
        let size = match &command["plaintext"][0] {
            Value::Null => command["size"].as_u64().unwrap() == truth.wire_size as u64,
            plaintext => plaintext.as_u64().unwrap() == truth.plaintext_size as u64,
        };
        found.resized += usize::from(!size);
        found.other_replies += usize::from(command["replies"].as_u64().unwrap() != truth.replies as u64);
    }
    found.spurious += rest.count();
    found
}

/// What each algorithm finds in a home, shown under a name; `learned` by a model of the part to learn from.
fn figures(name: &str, scenario: &Scenario, seed: u64) -> [Found; 4] {
    let home = Home::learned(scenario, seed);
    let truths = simulate(scenario, seed).unwrap().test.truths;
    ALGORITHMS.map(|algorithm| {
        let found = compare(&commands(&home, algorithm), &truths);
        let Found { commands, missed, spurious, resized, other_replies } = found;
        eprintln!(
            "{name}, {algorithm}: of {commands} commands {missed} missed, {resized} with another size, \
             {other_replies} with another number of replies; {spurious} spurious"
        );
        found
    })
}

/// A home with `count` commands.
fn home_of(framing: Framing, count: u32) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.session.framing = framing;
    (scenario.learn.repeats, scenario.learn.random, scenario.test.commands) = (2, 40, count);
    scenario
}

/// Two commands an hour apart; between them keep-alives, polls and telemetry alone.
#[test]
fn no_commands_are_found_in_an_hour_without_any() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_001..) {
        for (version, suite) in [(Version::Tls12, Suite::ChaCha20Poly1305), (Version::Tls13, Suite::Aes128Gcm)] {
            let mut scenario = home_of(framing, 2);
            (scenario.tls.version, scenario.tls.suite) = (version, suite);
            // A day is enough to learn from.
            (scenario.learn.repeats, scenario.learn.random) = (1, 10);
            scenario.command.interval =
                DurationRange { min: SignedDuration::from_hours(1), max: SignedDuration::from_hours(1) };
            let [_, _, adaptive, learned] =
                figures(&format!("an hour apart, {framing:?}, {version:?}"), &scenario, seed);
            assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
        }
    }
}

#[test]
fn chunked_messages_are_found_whole() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_011..) {
        for chunk in [64, 100, 512] {
            let mut scenario = home_of(framing, 150);
            scenario.tls.chunk = chunk;
            let [_, _, adaptive, learned] = figures(&format!("chunks of {chunk}, {framing:?}"), &scenario, seed);
            assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
        }
    }
}

#[test]
fn commands_are_found_despite_reordering_and_a_start_in_mid_stream() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_021..) {
        let mut scenario = home_of(framing, 150);
        scenario.capture.reordering = 0.15;
        let [_, _, adaptive, learned] = figures(&format!("15 % out of order, {framing:?}"), &scenario, seed);
        assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
        scenario.capture.mid_stream = true;
        let [_, _, adaptive, learned] = figures(&format!("and from the middle, {framing:?}"), &scenario, seed);
        assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
    }
}

#[test]
fn commands_are_found_across_reconnects() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_031..) {
        let mut scenario = home_of(framing, 150);
        scenario.session.reconnect_after = SignedDuration::from_mins(2);
        let [_, _, adaptive, learned] =
            figures(&format!("a connection every two minutes, {framing:?}"), &scenario, seed);
        assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
    }
}

/// The next command comes while the last one's replies do.
#[test]
fn commands_close_together_are_found_separately() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_041..) {
        for quality in [QualityOfService::AtLeastOnce, QualityOfService::AtMostOnce] {
            if framing != Framing::Mqtt && quality == QualityOfService::AtMostOnce {
                continue;
            }
            let mut scenario = home_of(framing, 300);
            scenario.session.quality_of_service = quality;
            scenario.command.interval = DurationRange::from_millis(50, 1_500);
            scenario.telemetry.period = SignedDuration::from_secs(5);
            let [_, _, adaptive, learned] =
                figures(&format!("close together, {framing:?}, {quality:?}"), &scenario, seed);
            assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
        }
    }
}

#[test]
fn commands_without_replies_are_found() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_051..) {
        let mut scenario = home_of(framing, 150);
        scenario.replies.mode = ReplyMode::None;
        scenario.telemetry.period = SignedDuration::from_secs(7);
        let [_, _, adaptive, learned] = figures(&format!("no replies, {framing:?}"), &scenario, seed);
        assert_eq!((adaptive.wrong(), learned.wrong()), (0, 0));
    }
}

/// Answers take longer than `answer-within` says; firmware's single answers, from which nothing can be learned, are
/// left out.
#[test]
fn commands_of_a_distant_service_are_found() {
    for (framing, seed) in FRAMINGS.into_iter().zip(61_061..) {
        let mut scenario = home_of(framing, 150);
        scenario.network.round_trip = SignedDuration::from_millis(200);
        scenario.noise.firmware_period = SignedDuration::ZERO;
        let [_, _, adaptive, learned] = figures(&format!("200 ms away, {framing:?}"), &scenario, seed);
        // Without labels the first answers show how long answers take; some wait longer than the look-ahead for that.
        assert_eq!((adaptive.missed, adaptive.resized, learned.wrong()), (0, 0, 0));
        assert!(adaptive.spurious <= 2);
    }
}

/// Where the gateway polls, only the algorithms that learn, with or without labels, distinguish noise from commands.
#[test]
fn only_learning_algorithms_ignore_polls() {
    let mut scenario = home_of(Framing::Http, 3);
    scenario.command.interval =
        DurationRange { min: SignedDuration::from_mins(15), max: SignedDuration::from_mins(20) };
    let home = Home::learned(&scenario, 61_071);
    let settings = ALGORITHMS.map(|algorithm| format!("command-segmenter.algorithm={algorithm}"));
    let figures = home.compare("model.toml", &settings);
    let compared = figures["pipelines"].as_array().unwrap();
    let shown: Vec<&str> = compared.iter().map(|one| one["pipeline"].as_str().unwrap()).collect();
    assert_eq!(shown, settings);
    let count = |key: &str| compared.iter().map(|one| one["evaluation"][key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((count("matched"), count("missed")), (vec![3; 4], vec![0; 4]));
    assert!(
        count("spurious")[..2].iter().all(|spurious| *spurious > 50) && count("spurious")[2..] == [0, 0],
        "{figures}"
    );
    let by_default = home.figures("model.toml", &["--quiet"]);
    assert_eq!(by_default, compared[3]["evaluation"], "`learned` is the default for a model with noise");
}
