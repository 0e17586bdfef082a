//! The forms of labels, as a user writes them, on simulated homes.

use std::fmt::Write;
use std::fs;
use std::process::Output;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use support::home::{Home, assert_fails, run, small};
use support::programs::{self, GATEWAY, sizeleak, stderr};

/// Learns from labels that are written in another form; the model's text.
fn model(home: &Home, labels: &str, more: &[&str]) -> String {
    let output = learn(home, labels, more);
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read_to_string(home.path("changed.toml")).unwrap()
}

fn learn(home: &Home, labels: &str, more: &[&str]) -> Output {
    fs::write(home.path("changed.csv"), labels).unwrap();
    let mut command = sizeleak("learn");
    command.arg(home.path("learn.pcap")).arg("--labels").arg(home.path("changed.csv"));
    command.args(["--gateway", GATEWAY]).arg("--inventory").arg(home.path("inventory.toml"));
    run(command.arg("-o").arg(home.path("changed.toml")).args(more))
}

/// The labels with times written by a function from their nanoseconds.
fn with_times(labels: &str, write: impl Fn(i64) -> String) -> String {
    let lines = labels.lines().enumerate().map(|(at, line)| match line.split_once(',') {
        Some((time, counts)) if at > 0 => format!("{},{counts}\n", write(nanoseconds(time))),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

fn nanoseconds(time: &str) -> i64 {
    let (whole, decimals) = time.split_once('.').unwrap_or((time, ""));
    format!("{whole}{decimals:0<9}").parse().unwrap()
}

#[test]
fn every_form_of_the_same_labels_gives_the_same_model() {
    let home = Home::new(&small(), 3);
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    let expected = model(&home, &labels, &[]);
    let units: [(i64, &str); 3] = [(1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
    for (unit, name) in units {
        assert_eq!(model(&home, &with_times(&labels, |time| (time / unit).to_string()), &[]), expected, "{name}");
    }
    let instant = |time: i64| Timestamp::from_nanosecond(time.into()).unwrap();
    assert_eq!(model(&home, &with_times(&labels, |time| instant(time).to_string()), &[]), expected);
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let local = |time: i64| instant(time).to_zoned(berlin.clone()).datetime().to_string().replace('T', " ");
    let in_berlin = with_times(&labels, local);
    assert_eq!(model(&home, &in_berlin, &["--label-zone", "Europe/Berlin"]), expected);
    assert_eq!(model(&home, &in_berlin, &["--label-zone", "+01:00"]), expected);
    // The wrong zone is corrected.
    assert_eq!(model(&home, &in_berlin, &["--label-zone", "UTC"]), expected);
    let output = learn(&home, &in_berlin, &[]);
    assert_fails(&output, 1, &["changed.csv", "line 2", "no time zone", "`--label-zone`"]);
    // What takes no option of labels says which command converts them.
    for command in ["measure test.pcap", "report test.pcap", "plot test.pcap"] {
        let given = ["--labels", "changed.csv", "--gateway", GATEWAY];
        let output = run(sizeleak(command).args(given).current_dir(home.path(".")));
        assert_fails(&output, 1, &["`sizeleak labels changed.csv --label-zone … -o labels.csv`"]);
    }
    let convert = "labels changed.csv --label-zone Europe/Berlin --label-offset 7s -o plain.csv";
    assert!(run(sizeleak(convert).current_dir(home.path("."))).status.success());
    let plain = fs::read_to_string(home.path("plain.csv")).unwrap();
    assert_eq!(model(&home, &plain, &["--label-offset=-7s"]), expected);
}

#[test]
fn list_of_actions_gives_the_same_model_as_columns() {
    let home = Home::new(&small(), 3);
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    let actions: Vec<&str> = labels.lines().next().unwrap().split(',').skip(1).collect();
    let mut list = "time,action,count\n".to_owned();
    for line in labels.lines().skip(1) {
        let (time, counts) = line.split_once(',').unwrap();
        for (action, count) in actions.iter().zip(counts.split(',')).filter(|(_, count)| *count != "0") {
            writeln!(list, "{time},{action},{count}").unwrap();
        }
    }
    // The first labels are each action alone, in the order of the columns.
    assert_eq!(model(&home, &list, &[]), model(&home, &labels, &[]));
}

#[test]
fn labels_to_the_minute_match_within_a_minute_and_a_half() {
    let mut scenario = small();
    scenario.command.interval.min = jiff::SignedDuration::from_secs(200);
    scenario.command.interval.max = jiff::SignedDuration::from_secs(400);
    let home = Home::new(&scenario, 3);
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    let to_the_minute = with_times(&labels, |time| (time / 60_000_000_000 * 60).to_string());
    let output = learn(&home, &to_the_minute, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("no seconds") && stderr(&output).contains("1m 30s"), "{}", stderr(&output));
    assert!(stderr(&output).contains("of 102 labelled commands"), "{}", stderr(&output));
}

/// docs/learning.md: each file of labels that it shows, and what the program says of it.
#[test]
fn the_page_of_forms_holds() {
    let page = fs::read_to_string(programs::root().join("docs/learning.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut consoles = 0;
    for block in page.split("```").skip(1).step_by(2) {
        let (head, body) = block.split_once('\n').unwrap();
        let Some((language, name)) = head.split_once(' ') else { continue };
        if language != "console" {
            fs::write(folder.path().join(name), body).unwrap();
            continue;
        }
        let (line, expected) = body.split_once('\n').unwrap();
        let arguments = line.strip_prefix("$ sizeleak ").unwrap();
        let output = run(sizeleak(arguments).current_dir(folder.path()));
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        assert_eq!(said, expected, "{line}");
        consoles += 1;
    }
    assert!(consoles > 6, "{consoles}");
}

#[test]
fn logs_and_times_from_the_start_give_the_same_model() {
    let home = Home::new(&small(), 3);
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    let sizes = |model: &str| -> Vec<String> {
        let lines = model.lines().filter(|line| line.starts_with("size = ") || line.starts_with("overhead = "));
        lines.map(str::to_owned).collect()
    };
    let expected = model(&home, &labels, &[]);
    // The capture begins before the first label, by how much its first packet says.
    let first = fs::read(home.path("learn.pcap")).unwrap();
    let number = |at: usize| i64::from(u32::from_le_bytes(first[at..at + 4].try_into().unwrap()));
    let start = number(24) * 1_000_000_000 + number(28) * 1_000;
    let since = with_times(&labels, |time| format!("{:.9}", (time - start) as f64 / 1e9));
    assert_eq!(sizes(&model(&home, &since, &["--label-offset", "start"])), sizes(&expected));

    let actions: Vec<&str> = labels.lines().next().unwrap().split(',').skip(1).collect();
    let mut log = String::new();
    for row in labels.lines().skip(1) {
        let mut fields = row.split(',');
        let time = Timestamp::from_nanosecond(nanoseconds(fields.next().unwrap()).into()).unwrap();
        for (action, count) in actions.iter().zip(fields) {
            for device in 0..count.parse().unwrap() {
                writeln!(log, "{{\"when\": \"{time}\", \"entity_id\": \"plug.{device}\", \"state\": \"{action}\"}}")
                    .unwrap();
            }
        }
        writeln!(log, "{{\"when\": \"{time}\", \"entity_id\": \"sensor.power\", \"state\": \"{}\"}}", log.len())
            .unwrap();
    }
    let mut map = "time = \"when\"\nentity = [\"entity_id\"]\nstate = \"state\"\n[actions.\"plug.*\"]\n".to_owned();
    for action in &actions {
        writeln!(map, "{action} = \"{action}\"").unwrap();
    }
    fs::write(home.path("map.toml"), map).unwrap();
    let map = home.path("map.toml");
    assert_eq!(sizes(&model(&home, &log, &["--label-map", map.to_str().unwrap()])), sizes(&expected));
    assert_fails(&learn(&home, &log, &[]), 1, &["changed.csv", "a log of events", "sizeleak labels", "--label-map"]);
    let converted = run(sizeleak("labels changed.csv --label-map map.toml -o plain.csv").current_dir(home.path(".")));
    assert!(converted.status.success() && stderr(&converted).contains("102 commands"), "{}", stderr(&converted));
    let plain = fs::read_to_string(home.path("plain.csv")).unwrap();
    assert_eq!(sizes(&model(&home, &plain, &[])), sizes(&expected));
}
