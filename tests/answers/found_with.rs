//! Homes whose commands the usual options of the segmenter do not find: small ones, ones that answer what the gateway
//! sends, and ones of two messages. `learn` finds out, the model says so, and answers follow it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use sizeleak_frame::{ContentType, Direction, Frame, Record};
use sizeleak_learning::labels::{LabelFile, LabelTimes};
use sizeleak_simulator::Scenario;
use support::home::{Home, run};
use support::programs::{sizeleak, stderr};
use support::streams::{frames_of, stream_of};

const MS: i64 = 1_000_000;

/// The TLS of the simulator adds so many bytes to a record.
const TLS_BYTES: u32 = 24;

/// What becomes of the records of a command.
type Change = fn(&Record) -> Vec<Record>;

/// The same record at another time, with other bytes of content.
fn resized(record: &Record, later_ns: i64, direction: Direction, bytes: u32) -> Record {
    Record {
        time_ns: record.time_ns + later_ns,
        start_ns: record.start_ns + later_ns,
        direction,
        length: bytes + TLS_BYTES,
        plaintext: record.plaintext.map(|_| [bytes.into(); 2]),
        ..record.clone()
    }
}

/// Commands of few bytes, of which those with one action are smaller than keep-alives.
fn small(record: &Record) -> Vec<Record> {
    vec![resized(record, 0, record.direction, record.length - TLS_BYTES - 87)]
}

/// Each command comes 30 ms after a poll of the gateway.
fn polled(record: &Record) -> Vec<Record> {
    vec![resized(record, -30 * MS, Direction::FromGateway, 36), record.clone()]
}

/// Each command is announced 60 ms before.
fn announced(record: &Record) -> Vec<Record> {
    vec![resized(record, -60 * MS, record.direction, 56), record.clone()]
}

/// The service announces each command, and the gateway replies before the command comes.
fn replied(record: &Record) -> Vec<Record> {
    vec![
        resized(record, -60 * MS, record.direction, 56),
        resized(record, -40 * MS, Direction::FromGateway, 45),
        record.clone(),
    ]
}

/// Every fourth command comes behind a reply to what announces it, the others at once.
fn at_times_replied(record: &Record) -> Vec<Record> {
    let is_fourth = record.time_ns / (1_000 * MS) % 4 == 0;
    if is_fourth { replied(record) } else { vec![resized(record, -MS, record.direction, 56), record.clone()] }
}

/// Writes the records of a capture with other commands, those records of the service that have a label.
fn change(home: &Home, name: &str, change: Change) -> PathBuf {
    let labels = LabelFile::read(&home.path(&format!("{name}.csv")), &LabelTimes::default()).unwrap();
    let times: Vec<i64> = labels.labels().rows.iter().map(|row| row.time_ns).collect();
    let stream = fs::read(home.records(&format!("{name}.pcap"))).unwrap();
    let (mut others, mut records) = (Vec::new(), Vec::new());
    let mut last = None;
    for frame in frames_of(&stream) {
        match frame {
            Frame::Record(record) => {
                let has_label = times.iter().any(|time| (time - record.time_ns).abs() < 500 * MS);
                let is_command = record.direction == Direction::ToGateway
                    && record.content_type == ContentType::ApplicationData
                    && record.length > 115;
                records.extend(if has_label && is_command { change(&record) } else { vec![record] });
            }
            Frame::Summary(_) => last = Some(frame),
            other => others.push(other),
        }
    }
    records.sort_by_key(|record| record.time_ns);
    let path = home.path(&format!("{name}.frames"));
    let frames: Vec<Frame> = others.into_iter().chain(records.into_iter().map(Frame::Record)).chain(last).collect();
    fs::write(&path, stream_of(&frames)).unwrap();
    path
}

/// The sizes of actions in a model.
fn sizes(model: &str) -> Vec<i64> {
    let model: toml::Table = model.parse().unwrap();
    model["action"].as_array().unwrap().iter().map(|action| action["size"].as_integer().unwrap()).collect()
}

/// What is learned from a home with other commands, and the figures of its answers.
fn tried(home: &Home, name: &str, changed: Change) -> (String, serde_json::Value) {
    let [learn, test] = ["learn", "test"].map(|capture| change(home, capture, changed));
    let model = home.path("model.toml");
    let path = model.to_str().unwrap();
    let output = program("learn", &learn, &home.path("learn.csv"), &["-o", path]);
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    let output = program("evaluate", &test, &home.path("test.csv"), &["--model", path, "--format=json"]);
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let score = &figures["after_pruning"];
    let count = |key: &str| score[key].as_u64().unwrap();
    println!("{name}: {} of {} first answers right, {}", count("top_1"), count("commands"), score["credible_set"]);
    assert!(score["credible_set"]["coverage"].as_f64().unwrap() >= 0.97, "{name}: {score}");
    (fs::read_to_string(&model).unwrap(), figures)
}

fn program(command: &str, stream: &Path, labels: &Path, more: &[&str]) -> Output {
    run(sizeleak(command).arg(stream).arg("--labels").arg(labels).args(more))
}

#[test]
fn the_model_says_how_its_commands_were_found_and_answers_follow() {
    let home = Home::new(&Scenario::default(), 34_501);
    assert!(home.learn("usual.toml", &[]).status.success());
    let usual = fs::read_to_string(home.path("usual.toml")).unwrap();
    assert!(!usual.contains("found_with"));
    for (name, changed, option) in
        [("small", small as Change, "min-size = 1"), ("polled", polled, "answer-within = \"0ms\"")]
    {
        let (learned, _) = tried(&home, name, changed);
        assert!(learned.contains(&format!("[learned.found_with.command-segmenter]\n{option}\n")), "{name}");
        assert_eq!(sizes(&learned), sizes(&usual), "{name}");
    }
}

/// The model says of which size the messages are that commands go on behind.
#[test]
fn a_command_goes_on_behind_a_reply_of_the_gateway() {
    let home = Home::new(&Scenario::default(), 34_503);
    assert!(home.learn("usual.toml", &[]).status.success());
    let usual = fs::read_to_string(home.path("usual.toml")).unwrap();
    let matched =
        |figures: &serde_json::Value| ["matched", "missed", "spurious"].map(|key| figures[key].as_u64().unwrap());
    for (name, changed) in
        [("announced", announced as Change), ("replied", replied), ("at times replied", at_times_replied)]
    {
        let (learned, figures) = tried(&home, name, changed);
        assert!(learned.contains("\ncontinued = [56]\n") && !learned.contains("found_with"), "{name}");
        assert_eq!(sizes(&learned), sizes(&usual), "{name}");
        println!("{name}: {:?}", matched(&figures));
        let [matched, missed, spurious] = matched(&figures);
        assert_eq!((matched > 0, missed, spurious), (true, 0, 0), "{name}");
    }
}

#[test]
fn other_options_than_the_models_are_said() {
    let home = Home::new(&support::home::small(), 34_502);
    assert!(home.learn("model.toml", &["--set", "command-segmenter.min-size=4"]).status.success());
    let notes = |more: &[&str]| stderr(&home.evaluate("model.toml", more));
    assert!(!notes(&[]).contains("options"));
    let said = notes(&["--set", "command-segmenter.min-size=16"]);
    assert!(said.contains("the model holds for commands found with min-size = 4, and here"), "{said}");
}
