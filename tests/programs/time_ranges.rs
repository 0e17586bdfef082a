//! `--since` and `--until` with labelled captures, as a user sees them. Answers have theirs in `profiles`.

use std::fs;

use serde_json::Value;
use sizeleak_text::utc;
use support::home::{Home, assert_fails, run, small};
use support::programs::{GATEWAY, sizeleak, stderr, unbroken};

/// The times of the rows of labels in nanoseconds, in order, and a time between the middle two.
fn times(home: &Home, labels: &str) -> (Vec<i64>, String) {
    let text = fs::read_to_string(home.path(labels)).unwrap();
    let seconds = |line: &str| line.split(',').next().unwrap().parse::<f64>().unwrap();
    let mut times: Vec<i64> = text.lines().skip(1).map(|line| (seconds(line) * 1e9) as i64).collect();
    times.sort_unstable();
    let half = times.len() / 2;
    let between = utc(times[half - 1] / 2 + times[half] / 2);
    (times, between)
}

/// The header of labels, and the rows that are to be kept, with `shift` seconds added to their times.
fn cut(home: &Home, labels: &str, shift: f64, keep: impl Fn(i64) -> bool) {
    let text = fs::read_to_string(home.path(labels)).unwrap();
    let line = |line: &str| {
        let Some((seconds, counts)) = line.split_once(',').filter(|(time, _)| *time != "time") else {
            return Some(format!("{line}\n"));
        };
        let seconds: f64 = seconds.parse().unwrap();
        keep((seconds * 1e9) as i64).then(|| format!("{:.6},{counts}\n", seconds + shift))
    };
    fs::write(home.path("cut.csv"), text.lines().filter_map(line).collect::<String>()).unwrap();
}

fn evaluate(home: &Home, labels: &str, more: &[&str]) -> Value {
    let mut command = sizeleak("evaluate --format=json");
    command.arg(home.path("test.pcap")).arg("--model").arg(home.path("model.toml")).args(["--gateway", GATEWAY]);
    let output = run(command.arg("--labels").arg(home.path(labels)).args(more));
    assert!(output.status.success(), "{}", stderr(&output));
    let mut figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The others have no label there, and are no commands of the time here.
    figures["spurious"] = Value::Null;
    figures
}

#[test]
fn figures_of_a_time_are_those_of_labels_cut_by_hand() {
    let home = Home::new(&small(), 3);
    assert!(home.learn("model.toml", &[]).status.success());
    let (times, between) = times(&home, "test.csv");
    let half = times.len() / 2;
    let (first, second) = (["--until", &between], ["--since", &between]);
    cut(&home, "test.csv", 0.0, |time| time < times[half]);
    let by_hand = evaluate(&home, "cut.csv", &[]);
    assert_eq!(by_hand["commands"], half);
    assert_eq!(evaluate(&home, "test.csv", &first), by_hand);
    cut(&home, "test.csv", 0.0, |time| time >= times[half]);
    assert_eq!(evaluate(&home, "test.csv", &second), evaluate(&home, "cut.csv", &[]));
    // The time is that of the capture, whatever the clock of the labels.
    cut(&home, "test.csv", -3725.0, |_| true);
    let late = evaluate(&home, "cut.csv", &first);
    assert_eq!((&late["matched"], &late["after_pruning"]), (&by_hand["matched"], &by_hand["after_pruning"]));
    let output = home.evaluate("model.toml", &second);
    let rest = times.len() - half;
    let said = unbroken(&output);
    assert!(said.contains(&format!("{rest} of {} labels are from {between} on", times.len())), "{said}");
    let folded = home.path("test.csv");
    let mut command = sizeleak("evaluate --folds 2 --format=json");
    command.arg(home.path("test.pcap")).arg("--labels").arg(folded).args(["--gateway", GATEWAY]).args(second);
    let folded: Value = serde_json::from_slice(&run(&mut command).stdout).unwrap();
    assert_eq!(folded["commands"], rest);
    let none = home.evaluate("model.toml", &["--since", "2100-01-01"]);
    assert!(none.status.code() == Some(1) && stderr(&none).contains("none of the 40 commands is from 2100"));
    assert_fails(&home.evaluate("model.toml", &["--since", &between, "--until", &between]), 2, &["`--until`"]);
    for wrong in ["yesterday", "2026-02-30", "2026-01-06T08:00:00"] {
        let said = stderr(&home.evaluate("model.toml", &["--until", wrong]));
        assert!(said.contains("'--until <TIME>': write it like 2026-01-06 or 2026-01-06T08:00:00Z"), "{said}");
    }
}

#[test]
fn a_model_of_a_time_is_learned_from_its_labels_alone() {
    let home = Home::new(&small(), 3);
    let (times, between) = times(&home, "learn.csv");
    let output = home.learn("first.toml", &["--until", &between]);
    assert!(output.status.success(), "{}", stderr(&output));
    let half = times.len() / 2;
    assert!(unbroken(&output).contains(&format!("from {half} of {half} labelled commands")), "{}", unbroken(&output));
    let said = |more: &[&str]| {
        let mut command = sizeleak("evaluate");
        command.arg(home.path("learn.pcap")).arg("--labels").arg(home.path("learn.csv")).args(["--gateway", GATEWAY]);
        unbroken(&run(command.arg("--model").arg(home.path("first.toml")).args(more)))
    };
    assert!(said(&[]).contains("it has seen these commands"));
    assert!(!said(&["--since", &between]).contains("it has seen these commands"), "the others are new to it");
}
