//! Commands of real gateways, found without labels: what the default segmenter makes of tables of sizes, with every
//! flow. `cargo test --test answers polls_without_a_model:: -- --nocapture` shows the figures.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use support::programs::{root, sizeleak, stdout, write};
use support::size_table::SizeTable;

/// The commands found in a table: the second they came at, and their size on the wire.
fn commands(name: &str) -> Vec<(f64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let stream = folder.path().join("sizes.frames");
    let table = SizeTable::read(&root().join("tests/answers/real_gateways").join(format!("{name}.sizes.csv")));
    table.write(fs::File::create(&stream).unwrap());
    let stages = ["capture", "flow-filter", "record-sizer", "command-segmenter"];
    let pipeline: String = stages.iter().map(|stage| ["[[stage]]\nrun = \"", stage, "\"\n"].concat()).collect();
    let pipeline = write(folder.path(), "pipeline.toml", pipeline);
    let mut run = sizeleak("run");
    run.arg(pipeline).arg("--from").arg(stream).args(["--quiet", "--format", "ndjson", "--kind", "command"]);
    let lines = stdout(&mut run);
    let lines = String::from_utf8(lines).unwrap();
    let command = |line: &str| serde_json::from_str::<Value>(line).unwrap()["command"].take();
    lines
        .lines()
        .map(command)
        .map(|command| (command["time_ns"].as_f64().unwrap() / 1e9, command["size"].as_u64().unwrap()))
        .collect()
}

/// How many labels have a command within 1.5 s.
fn labels_found(name: &str, commands: &[(f64, u64)]) -> (usize, usize) {
    let path = root().join("tests/answers/real_gateways").join(format!("{name}.labels.csv"));
    let text = fs::read_to_string(path).unwrap();
    let times: Vec<f64> = text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    let is_found = |time: &&f64| commands.iter().any(|(at, _)| (at - **time).abs() <= 1.5);
    (times.iter().filter(is_found).count(), times.len())
}

/// Five commands of the app through the cloud, which have labels, and five of a second hub in the same network, which
/// have none: one of each of open, colour, dim, on and off. 24 and more polls, answers and keep-alives are none.
#[test]
fn a_bridge_whose_polls_and_keep_alives_outnumber_commands() {
    for (name, of_second_hub) in
        [("hue-cloud-base-firewall", [114, 114, 118, 129, 153]), ("hue-cloud-no-firewall", [114, 115, 118, 129, 155])]
    {
        let found = commands(name);
        println!("{name}: {found:?}");
        assert_eq!(labels_found(name, &found), (5, 5), "{name}");
        let size = |size: u64| found.iter().filter(|command| command.1 == size).count();
        assert!(of_second_hub.iter().all(|of| size(*of) >= 1), "{name}: {found:?}");
        // Ten, and the first words on the connection of the second hub.
        assert_eq!(found.len(), 11, "{name}: {found:?}");
    }
}

/// 569 events; the publisher sorted what happens within one by direction.
#[test]
fn a_hub_whose_answers_come_before_their_requests_in_the_stream() {
    let name = "smartthings-hue";
    let found = commands(name);
    assert_eq!(labels_found(name, &found), (211, 211));
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, size) in &found {
        *sizes.entry(*size).or_default() += 1;
    }
    println!("{} commands: {sizes:?}", found.len());
    // Each of the 569 events has one message of 443 to 486 bytes. The others are answers.
    let of_events = found.iter().filter(|(_, size)| (443..=486).contains(size)).count();
    assert_eq!(of_events, 569);
    assert!(of_events * 100 >= found.len() * 97, "{of_events} of {}", found.len());
}

#[test]
fn a_lock_whose_schedule_is_no_poll() {
    let found = commands("ultraloq-headers");
    let of_lock = found.iter().filter(|(_, size)| *size == 208).count();
    println!("{of_lock} of {}", found.len());
    assert_eq!(of_lock, 176);
    assert!(of_lock * 100 >= found.len() * 90);
}
