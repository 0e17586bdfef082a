//! Labels whose clock is not that of the capture, as a user sees it, on simulated homes.

use std::cell::Cell;
use std::fs;
use std::process::Output;

use serde_json::Value;
use sizeleak_model::Model;
use support::home::{Home, assert_fails, run, small};
use support::programs::{GATEWAY, sizeleak, stderr, unbroken};

/// The labels of a file with other times: those in seconds, from the index and the time of the row.
fn retimed(home: &Home, labels: &str, change: impl Fn(usize, f64) -> f64) {
    let text = fs::read_to_string(home.path(labels)).unwrap();
    let lines = text.lines().enumerate().map(|(at, line)| match line.split_once(',') {
        Some((time, counts)) if at > 0 => {
            format!("{:.3},{counts}\n", change(at - 1, time.parse::<f64>().unwrap()))
        }
        _ => format!("{line}\n"),
    });
    fs::write(home.path("changed.csv"), lines.collect::<String>()).unwrap();
}

fn learn(home: &Home, more: &[&str]) -> Output {
    let mut command = sizeleak("learn");
    command.arg(home.path("learn.pcap")).arg("--labels").arg(home.path("changed.csv"));
    command.args(["--gateway", GATEWAY]).arg("--inventory").arg(home.path("inventory.toml"));
    run(command.arg("-o").arg(home.path("changed.toml")).args(more))
}

fn evaluate(home: &Home, more: &[&str]) -> Output {
    let mut command = sizeleak("evaluate");
    command.arg("--model").arg(home.path("model.toml")).args(["--gateway", GATEWAY, "--format=json"]);
    command.arg(home.path("test.pcap")).arg("--labels").arg(home.path("changed.csv"));
    run(command.args(more))
}

fn figures(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Spread over ±1.5 s without a pattern.
fn jitter(at: usize) -> f64 {
    (at * 7919 % 3001) as f64 / 1000.0 - 1.5
}

#[test]
fn model_of_shifted_labels_is_that_of_right_ones() {
    let home = Home::new(&small(), 3);
    assert!(home.learn("model.toml", &[]).status.success());
    let right = Model::read(&home.path("model.toml")).unwrap();
    // A label is the time of the click, some milliseconds before the command.
    for (seconds, words) in [
        (-7.0, ["7.0 s behind", "7.1 s behind"]),
        (23.0, ["23.0 s ahead", "22.9 s ahead"]),
        (-3600.0, ["1h behind", "1h 100ms behind"]),
        (86400.0, ["24h ahead", "23h 59m 59s 900ms ahead"]),
    ] {
        retimed(&home, "learn.csv", |_, time| time + seconds);
        let output = learn(&home, &[]);
        assert!(output.status.success(), "{}", unbroken(&output));
        assert!(
            words.iter().any(|words| unbroken(&output).contains(words))
                && unbroken(&output).contains("102 of 102 labels match"),
            "{}",
            unbroken(&output)
        );
        let model = Model::read(&home.path("changed.toml")).unwrap();
        assert_eq!((model.actions, model.overhead), (right.actions.clone(), right.overhead), "{seconds}");
    }
}

#[test]
fn figures_of_shifted_labels_are_those_of_right_ones() {
    let home = Home::new(&small(), 3);
    assert!(home.learn("model.toml", &[]).status.success());
    let right = home.figures("model.toml", &[]);
    assert_eq!(right["clock"], Value::Null);
    retimed(&home, "test.csv", |_, time| time + 23.0);
    let output = evaluate(&home, &[]);
    assert!(stderr(&output).contains("labels are 23.0 s ahead of the capture"), "{}", stderr(&output));
    let shifted = figures(&output);
    assert_eq!((&shifted["after_pruning"], &shifted["matched"]), (&right["after_pruning"], &40.into()));
    let clock = &shifted["clock"];
    assert!((clock["offset_seconds"].as_f64().unwrap() + 23.0).abs() < 1.0 && clock["matched"] == 40, "{clock}");
    assert!(clock["by_chance"].as_f64().unwrap() < 1e-6, "{clock}");
    // Jitter costs no label where commands are far enough apart.
    retimed(&home, "test.csv", |at, time| time - 7.0 + jitter(at));
    let jittered = figures(&evaluate(&home, &[]));
    assert!(jittered["matched"].as_u64().unwrap() >= 36, "{}", jittered["matched"]);
    assert!((jittered["clock"]["offset_seconds"].as_f64().unwrap() - 7.0).abs() < 1.0, "{}", jittered["clock"]);
}

#[test]
fn drifting_labels_are_followed() {
    let home = Home::new(&small(), 3);
    assert!(home.learn("model.toml", &[]).status.success());
    let right = home.figures("model.toml", &[]);
    // From 0 to 10 s over the labels.
    let labels = fs::read_to_string(home.path("test.csv")).unwrap();
    let times: Vec<f64> = labels.lines().skip(1).map(|line| line.split_once(',').unwrap().0.parse().unwrap()).collect();
    let (first, last) = (times[0], times[times.len() - 1]);
    retimed(&home, "test.csv", |_, time| time + 10.0 * (time - first) / (last - first));
    let output = evaluate(&home, &[]);
    assert!(stderr(&output).contains("their clock drifts"), "{}", stderr(&output));
    let drifting = figures(&output);
    assert!(drifting["matched"].as_u64().unwrap() >= 38, "{}", drifting["matched"]);
    let [top, of_right] = [&drifting, &right].map(|figures| figures["after_pruning"]["top_1"].as_u64().unwrap());
    assert!(top + 3 >= of_right, "{top} of {of_right}");
}

#[test]
fn given_offset_is_used_as_it_is() {
    let home = Home::new(&small(), 3);
    retimed(&home, "learn.csv", |_, time| time - 7.0);
    let output = learn(&home, &["--label-offset", "7s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("+7.0 s is added to all times, as given"), "{}", stderr(&output));
    assert_fails(&learn(&home, &["--label-offset=-7s", "--quiet"]), 1, &["changed.csv", "`--label-offset` right?"]);
    assert_eq!(learn(&home, &["--label-offset", "soon"]).status.code(), Some(2));
}

#[test]
fn labels_that_count_from_the_first_packet_name_the_option_for_it() {
    let home = Home::new(&small(), 3);
    assert!(home.learn("model.toml", &[]).status.success());
    let named = ["no capture is as old as that", "`--label-offset start`"];
    // Seconds from the first label, from a minute before, and of a clock that was never set.
    for from in [0.0, 60.0, 3e6] {
        for (labels, run) in [("learn.csv", learn as fn(&Home, &[&str]) -> Output), ("test.csv", evaluate)] {
            let first = Cell::new(f64::NAN);
            retimed(&home, labels, |at, time| {
                first.set(if at == 0 { time } else { first.get() });
                time - first.get() + from
            });
            assert_fails(&run(&home, &["--quiet"]), 1, &named);
        }
    }
    retimed(&home, "learn.csv", |_, time| time - 3e7);
    let old = learn(&home, &["--quiet"]);
    assert!(!stderr(&old).contains(named[0]), "a year before the capture there were captures: {}", stderr(&old));
}

#[test]
fn labels_of_another_time_are_an_error_with_the_reason() {
    let home = Home::new(&small(), 3);
    // Another year: further than any zone.
    retimed(&home, "learn.csv", |_, time| time - 3e7);
    assert_fails(
        &learn(&home, &["--quiet"]),
        1,
        &["none of its 102 labels", "its first label is at 2025-", "captures that cover"],
    );
    // Moments that have nothing to do with the commands.
    let span = 1200.0;
    retimed(&home, "learn.csv", |at, time| time - time % span + (at * 7919 % 1200) as f64 + jitter(at) / 2.0);
    let output = learn(&home, &["--quiet", "--tolerance", "200ms"]);
    assert_fails(&output, 1, &["of its 102 labels are within", "no shift of their clock", "gateway"]);
    assert!(!home.path("changed.toml").exists(), "no model remains");
}
