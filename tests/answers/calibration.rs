//! What the probabilities promise: the pruner keeps the truth as often as `keep` says, from few labels on; missed commands
//! count; replies tell actions apart under a block cipher too. Simulated homes with real TLS.
//! `cargo test --test answers calibration:: -- --nocapture` shows the figures.

use std::fs;

use serde_json::Value;
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::{ReplyPadding, Suite};
use support::home::{Home, run, small};
use support::programs::{sizeleak, stderr};

/// The default of `pruner.keep`.
const KEEP: f64 = 0.999;

/// A home whose lamps' actions have replies of their own sizes.
fn home_of_classes(mut scenario: Scenario, padding: [u32; 3]) -> Scenario {
    for (action, padding) in scenario.actions.iter_mut().skip(4).zip(padding) {
        action.replies = Some(vec![ReplyPadding { min: padding, max: padding }]);
    }
    scenario
}

fn number(figures: &Value, keys: [&str; 2]) -> f64 {
    figures[keys[0]][keys[1]].as_f64().unwrap()
}

#[test]
fn the_pruner_keeps_what_it_promises_from_twenty_labels_on() {
    let mut scenario = home_of_classes(Scenario::default(), [6, 4, 10]);
    scenario.test.commands = 700;
    let (mut listed, mut lost) = (0.0, 0.0);
    for seed in [91_101, 91_102] {
        let home = Home::new(&scenario, seed);
        let [learned, tested] = ["learn.pcap", "test.pcap"].map(|capture| home.records(capture));
        let text = fs::read_to_string(home.path("learn.csv")).unwrap();
        for labels in [20, 40, 80] {
            let few: Vec<&str> = text.lines().take(labels + 1).collect();
            fs::write(home.path("few.csv"), few.join("\n") + "\n").unwrap();
            let mut learn = sizeleak("learn --quiet");
            learn.arg(&learned).arg("--labels").arg(home.path("few.csv")).arg("-o").arg(home.path("few.toml"));
            let output = run(learn.arg("--inventory").arg(home.path("inventory.toml")));
            assert!(output.status.success(), "{}", stderr(&output));
            let mut evaluate = sizeleak("evaluate --format=json --quiet");
            evaluate.arg(&tested).arg("--labels").arg(home.path("test.csv")).arg("--model").arg(home.path("few.toml"));
            let figures: Value = serde_json::from_slice(&run(&mut evaluate).stdout).unwrap();
            let [before, after] = ["before_pruning", "after_pruning"].map(|when| number(&figures, [when, "among"]));
            eprintln!("seed {seed}, {labels} labels: {before} before pruning, {after} after it");
            (listed, lost) = (listed + before, lost + before - after);
        }
    }
    let promised = (1.0 - KEEP) * listed;
    assert!(listed > 1000.0 && lost <= promised + 3.0 * promised.sqrt(), "{lost} of {listed} are lost");
}

#[test]
fn a_missed_command_counts_as_a_certain_answer_that_is_wrong() {
    let home = Home::learned(&small(), 91_110);
    let labels = fs::read_to_string(home.path("test.csv")).unwrap();
    let complete = home.figures("model.toml", &[]);
    let last = labels.trim_end().lines().last().unwrap();
    let (_, counts) = last.split_once(',').unwrap();
    // Half a day after everything else.
    let time = labels.lines().nth(1).and_then(|line| line.split(',').next()).unwrap();
    let later = time.parse::<f64>().map_or_else(
        |_| time.parse::<jiff::Timestamp>().unwrap().as_second() + 43_200,
        |seconds| seconds as i64 + 43_200,
    );
    fs::write(home.path("test.csv"), format!("{labels}{later},{counts}\n")).unwrap();
    let missing = home.figures("model.toml", &[]);
    let error = |figures: &Value, key: &str| figures["after_pruning"]["calibration"][key].as_f64().unwrap();
    assert_eq!((&complete["missed"], &missing["missed"]), (&0.into(), &1.into()));
    assert!((error(&complete, "expected_error_with_missed") - error(&complete, "expected_error")).abs() < 1e-12);
    let expected = (40.0 * error(&complete, "expected_error") + 1.0) / 41.0;
    assert!((error(&missing, "expected_error") - error(&complete, "expected_error")).abs() < 1e-12);
    assert!((error(&missing, "expected_error_with_missed") - expected).abs() < 1e-12, "{missing}");
}

#[test]
fn single_replies_tell_actions_apart_under_a_block_cipher() {
    let mut scenario = home_of_classes(Scenario::default(), [20, 40, 60]);
    scenario.tls.suite = Suite::Aes128CbcSha;
    let home = Home::learned(&scenario, 91_120);
    let model = fs::read_to_string(home.path("model.toml")).unwrap();
    let mut without: toml::Table = model.parse().unwrap();
    assert!(without.remove("single_replies").is_some(), "{model}");
    fs::write(home.path("without.toml"), toml::to_string(&without).unwrap()).unwrap();
    let top_1 = |model: &str| number(&home.figures(model, &[]), ["after_pruning", "top_1"]) / 307.0;
    let (with, without) = (top_1("model.toml"), top_1("without.toml"));
    eprintln!("first candidates right under CBC: {with:.3} with single replies, {without:.3} with their number");
    assert!(with > without + 0.05, "{with} {without}");
}
