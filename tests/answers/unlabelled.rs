//! Models of commands without labels, or with seven: simulated homes with real TLS.
//! `cargo test --test answers unlabelled:: -- --nocapture` shows the figures.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use sizeleak_simulator::scenario::{Framing, Suite, Version};
use sizeleak_simulator::{Scenario, bayes_limit};
use support::home::{Home, assert_fails, run, tell_actions_apart_by_replies};
use support::programs::{GATEWAY, sizeleak, stderr};

/// A home of each action alone, on one device and on two, and of `commands` random commands to learn from, whose actions have replies of six sizes.
fn scenario(framing: Framing, commands: u32) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.session.framing = framing;
    scenario.learn.repeats = 1;
    scenario.learn.random = commands;
    scenario.test.commands = 500;
    tell_actions_apart_by_replies(&mut scenario);
    scenario
}

/// `learn` from the home's captures without labels; `more` are further arguments.
fn learn(home: &Home, model: &str, more: &[&str]) -> std::process::Output {
    let mut command = sizeleak("learn");
    command.arg(home.path("learn.pcap")).args(["--gateway", GATEWAY]);
    run(command.arg("-o").arg(home.path(model)).args(more))
}

/// The first label of each action alone, as a file.
fn write_singles(home: &Home) -> String {
    let text = fs::read_to_string(home.path("learn.csv")).unwrap();
    let mut lines = text.lines();
    let mut kept = vec![lines.next().unwrap()];
    let mut seen = BTreeSet::new();
    for line in lines {
        let counts: Vec<u32> = line.split(',').skip(1).map(|count| count.parse().unwrap()).collect();
        if counts.iter().sum::<u32>() == 1 && seen.insert(counts) {
            kept.push(line);
        }
    }
    assert_eq!(kept.len(), 8, "a label of each action");
    let path = home.path("singles.csv");
    fs::write(&path, kept.join("\n") + "\n").unwrap();
    path.to_str().unwrap().to_owned()
}

/// The overhead of a model and its actions with their sizes.
fn sizes(home: &Home, model: &str) -> (i64, Vec<(String, i64)>) {
    let model: toml::Value = toml::from_str(&fs::read_to_string(home.path(model)).unwrap()).unwrap();
    let action =
        |action: &toml::Value| (action["name"].as_str().unwrap().to_owned(), action["size"].as_integer().unwrap());
    let overhead = model["overhead"].as_integer().unwrap();
    (overhead, model["action"].as_array().unwrap().iter().map(action).collect())
}

support::tests_of! { sizes_are_those_that_labels_give {
    sizes_in_websocket_frames_are_those_that_labels_give(Framing::Websocket, Suite::Aes128Gcm, Version::Tls12, 22_301);
    sizes_in_mqtt_messages_are_those_that_labels_give(Framing::Mqtt, Suite::ChaCha20Poly1305, Version::Tls12, 22_302);
    sizes_in_http_messages_are_those_that_labels_give(Framing::Http, Suite::Aes128Gcm, Version::Tls13, 22_303);
} }

/// Without a label, and seven labels name them.
fn sizes_are_those_that_labels_give(framing: Framing, suite: Suite, version: Version, seed: u64) {
    let mut scenario = scenario(framing, 400);
    (scenario.tls.suite, scenario.tls.version) = (suite, version);
    let home = Home::new(&scenario, seed);
    let labelled = home.learn("labelled.toml", &[]);
    assert!(labelled.status.success(), "{}", stderr(&labelled));
    let (overhead, mut truth) = sizes(&home, "labelled.toml");
    truth.sort_by_key(|(_, size)| *size);

    let output = learn(&home, "none.toml", &[]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("sizes were found without labels"), "{said}");
    assert!(said.contains("7 of 7 actions have no name"), "{said}");
    let (found_overhead, found) = sizes(&home, "none.toml");
    let found_sizes: Vec<i64> = found.iter().map(|(_, size)| *size).collect();
    let true_sizes: Vec<i64> = truth.iter().map(|(_, size)| *size).collect();
    assert_eq!((found_overhead, found_sizes), (overhead, true_sizes), "{framing:?}: {said}");
    assert!(found.iter().all(|(name, _)| name.starts_with("action-")), "{found:?}");

    let singles = write_singles(&home);
    let output = learn(&home, "singles.toml", &["--labels", &singles]);
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, mut named) = sizes(&home, "singles.toml");
    named.sort_by_key(|(_, size)| *size);
    assert_eq!(named, truth, "{framing:?}: {}", stderr(&output));

    let share = of_limit(&home.figures("singles.toml", &[]), &scenario);
    eprintln!("{framing:?}, seven labels: {share:.3} of the limit");
    assert!(share >= 0.95, "{framing:?}: {share}");
}

/// The share of the best possible first answers that was reached.
fn of_limit(figures: &Value, scenario: &Scenario) -> f64 {
    let top_1 = figures["after_pruning"]["top_1"].as_f64().unwrap() / figures["commands"].as_f64().unwrap();
    top_1 / bayes_limit(scenario).unwrap().top_1_with_replies
}

#[test]
fn sizes_that_commands_do_not_tell_are_refused_in_one_sentence() {
    let mut few = scenario(Framing::Websocket, 10);
    (few.learn.repeats, few.test.commands) = (0, 1);
    let home = Home::new(&few, 22_311);
    assert_fails(&learn(&home, "model.toml", &["--quiet"]), 1, &["commands", "without labels"]);
    assert!(!home.path("model.toml").exists());

    let mut blocks = scenario(Framing::Websocket, 200);
    blocks.tls.suite = Suite::Aes128CbcSha;
    let home = Home::new(&blocks, 22_312);
    assert_fails(&learn(&home, "model.toml", &["--quiet"]), 1, &["block cipher", "--labels"]);
    assert!(!home.path("model.toml").exists());
}

#[test]
fn options_that_need_labels_say_so() {
    let home = Home::new(&scenario(Framing::Websocket, 10), 22_321);
    for option in [&["--labelled-only"][..], &["--labels-are-complete"], &["--method", "paper"]] {
        assert_fails(&learn(&home, "model.toml", option), 2, &[option[0], "needs labels"]);
    }
}

#[test]
fn labels_alone_are_learned_from_if_asked() {
    let home = Home::new(&scenario(Framing::Websocket, 250), 22_331);
    let singles = write_singles(&home);
    let output = learn(&home, "model.toml", &["--labels", &singles, "--labelled-only"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("learned by a robust fit from 7 of 7 labelled commands"), "{said}");
    assert!(!said.contains("sizes were found"), "{said}");
}
