//! `sizeleak learn` as a user runs it, on simulated homes.

use std::fs;
use std::process::Output;

use jiff::SignedDuration;
use serde_json::Value;
use sizeleak_model::{Basis, Model, RecordLayout};
use sizeleak_simulator::Scenario;
use sizeleak_simulator::scenario::{Framing, Suite, Version};
use support::home::{Home, assert_fails, run, small};
use support::programs::{GATEWAY, sizeleak, stderr};

fn learned(home: &Home, more: &[&str]) -> (Model, String) {
    let output = home.learn("model.toml", more);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    (Model::read(&home.path("model.toml")).unwrap(), stderr(&output))
}

/// `learn` with changed labels.
fn with_labels(home: &Home, change: impl Fn(String) -> String) -> Output {
    let labels = fs::read_to_string(home.path("learn.csv")).unwrap();
    fs::write(home.path("changed.csv"), change(labels)).unwrap();
    let mut command = sizeleak("learn");
    command.arg(home.path("learn.pcap")).arg("--labels").arg(home.path("changed.csv"));
    command.args(["--gateway", GATEWAY]).arg("--inventory").arg(home.path("inventory.toml"));
    run(command.arg("-o").arg(home.path("model.toml")))
}

/// The size of a device in a command: `{"id":"node-03","set":"on"}` and a comma.
fn json_size(set: &str) -> i64 {
    i64::try_from(format!("{{\"id\":\"node-03\",\"set\":{set}}},").len()).unwrap()
}

#[test]
fn sizes_equal_those_of_the_messages() {
    let (model, message) = learned(&Home::new(&Scenario::default(), 5), &[]);
    let sizes: Vec<(&str, i64)> = model.actions.iter().map(|action| (&*action.name, action.size)).collect();
    let sets = [
        ("on", "\"on\""),
        ("off", "\"off\""),
        ("toggle", "\"toggle\""),
        ("timer", "{\"on\":300}"),
        ("dim", "{\"level\":40}"),
        ("white", "{\"ct\":2700}"),
        ("colour", "{\"rgb\":\"ffa030\"}"),
    ];
    assert_eq!(sizes, sets.map(|(name, set)| (name, json_size(set))));
    assert!(model.replies.is_informative());
    assert_eq!(model.inventory.unwrap().devices.len(), 2);
    assert_eq!(model.learned.captures[0].name, "learn.pcap");
    assert!(message.contains("learned by a robust fit from 192 of 192 labelled commands"), "{message}");
    assert!(message.contains("replies: ") && message.contains("ε: ") && message.contains("plaintext"), "{message}");
}

#[test]
fn sizes_do_not_depend_on_the_cipher_suite() {
    let mut scenario = small();
    let home = |scenario: &Scenario| learned(&Home::new(scenario, 3), &[]).0;
    let aes = home(&scenario);
    (scenario.tls.version, scenario.tls.suite) = (Version::Tls13, Suite::ChaCha20Poly1305);
    let chacha = home(&scenario);
    assert_eq!((&aes.actions, aes.overhead), (&chacha.actions, chacha.overhead));
    let suite = |model: &Model| match &model.learned.basis {
        Basis::Plaintext { cipher_suite, record_overhead } => (cipher_suite.clone(), *record_overhead),
        Basis::Wire => panic!("{model:?}"),
    };
    assert_eq!(suite(&aes), ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".into(), [24, 24]));
    assert_eq!(suite(&chacha), ("TLS_CHACHA20_POLY1305_SHA256".into(), [17, 17]));
}

#[test]
fn sizes_without_a_handshake_are_those_on_the_wire_unless_the_suite_is_given() {
    let mut scenario = small();
    let seen = learned(&Home::new(&scenario, 3), &[]).0;
    scenario.capture.mid_stream = true;
    let home = Home::new(&scenario, 3);
    let (wire, message) = learned(&home, &[]);
    assert_eq!(wire.learned.basis, Basis::Wire);
    assert!(message.contains("no session shows its cipher suite") && message.contains("--cipher"), "{message}");
    assert_eq!(wire.overhead, seen.overhead + 24);
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let (message, _) = learned(&home, &["--cipher", suite]);
    assert_eq!(message.learned.basis, seen.learned.basis);
    assert_eq!((message.overhead, &message.actions), (seen.overhead, &seen.actions));
    let unknown = home.learn("none.toml", &["--cipher", "ROT13"]);
    assert_fails(&unknown, 2, &["ROT13", "IANA"]);
}

#[test]
fn custom_pipeline_finds_the_commands() {
    let home = Home::new(&small(), 3);
    let (standard, _) = learned(&home, &[]);
    let stages = ["capture", "flow-filter", "record-sizer", "command-segmenter", "epsilon-corrector"];
    let stages = stages.map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n")).concat();
    let stages = stages.replace("\"flow-filter\"\n", &format!("\"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n"));
    fs::write(home.path("pipeline.toml"), stages).unwrap();
    let mut command = sizeleak("learn");
    command.arg(home.path("learn.pcap")).arg("--labels").arg(home.path("learn.csv"));
    command.arg(home.path("pipeline.toml")).arg("--inventory").arg(home.path("inventory.toml"));
    let output = run(command.args(["-o", "-"]));
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(Model::from_toml(&String::from_utf8(output.stdout).unwrap()), Ok(standard));
    let mismatched = home.learn("apart.toml", &["--set", "command-segmenter.min-size=100"]);
    assert!(stderr(&mismatched).contains("labels have no command within 2s"), "{}", stderr(&mismatched));
}

/// The output of `evaluate` without a model.
fn evaluate(home: &Home, more: &[&str]) -> Output {
    let mut command = sizeleak("evaluate");
    command.arg(home.path("learn.pcap")).arg("--labels").arg(home.path("learn.csv")).args(["--gateway", GATEWAY]);
    run(command.arg("--inventory").arg(home.path("inventory.toml")).arg("--quiet").args(more))
}

/// The figures of `evaluate --curve`.
fn curve(home: &Home, more: &[&str]) -> Value {
    let output = evaluate(home, &[&["--format=json"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A home without experiments, only everyday commands.
fn of_everyday_commands() -> Home {
    let mut scenario = small();
    (scenario.learn.repeats, scenario.learn.random) = (0, 120);
    Home::new(&scenario, 3)
}

#[test]
fn curve_shows_precision_by_number_of_labels() {
    let home = of_everyday_commands();
    let figures = curve(&home, &["--curve"]);
    assert_eq!((&figures["schema"], &figures["drawn_from"], &figures["tested"]), (&2.into(), &80.into(), &40.into()));
    let points = figures["points"].as_array().unwrap();
    let count = |point: &Value, key: &str| point[key].as_u64().unwrap();
    let of_points = |key: &str| points.iter().map(|point| count(point, key)).collect::<Vec<_>>();
    assert_eq!(of_points("labels"), [7, 14, 28, 56, 80]);
    assert_eq!(of_points("draws"), [5, 5, 5, 5, 1]);
    let share = |point: &Value, key: &str| {
        let share = &point["after_pruning"][key];
        ["low", "high"].map(|end| share["interval"][end].as_f64().unwrap() - share["median"].as_f64().unwrap())
    };
    for point in points.iter().filter(|point| count(point, "learned") > 0) {
        for key in ["precision", "top_1", "top_5"] {
            let [low, high] = share(point, key);
            assert!(low <= 0.0 && high >= 0.0 && high - low > 0.05, "{point}");
        }
        assert!(count(point, "warned") + count(point, "of_kinds") <= 2 * count(point, "learned"), "{point}");
    }
    let last = points.last().unwrap();
    assert_eq!(
        (&last["sizes"], &last["refusals"], count(last, "learned")),
        (&7.0.into(), &Value::Array(Vec::new()), 1)
    );
    assert!(last["before_pruning"]["precision"]["median"].as_f64().unwrap() >= 0.95, "{last}");
    // So few labels do not name every action, and some samples of them name kinds of command, and no sizes.
    let first = &points[0];
    assert!(count(first, "warned") == count(first, "learned") && count(first, "of_kinds") > 0, "{first}");
    let mut warnings =
        first["warnings"].as_array().unwrap().iter().map(|warning| warning["sentence"].as_str().unwrap());
    assert!(warnings.any(|warning| warning.contains("no labelled command has")), "{first}");
    let right = |point: &Value| point["after_pruning"]["top_1"]["median"].as_f64().unwrap();
    assert!(right(first) < right(last), "{first} {last}");
    assert_eq!(
        curve(&home, &["--curve=7,80"])["points"],
        Value::from([first, last].map(Value::clone)),
        "the same again"
    );
}

#[test]
fn samples_of_labels_that_no_model_can_be_learned_from_are_in_their_row_with_the_reason() {
    let home = Home::new(&small(), 3);
    let options = ["--method", "paper", "--curve=7"];
    let figures = curve(&home, &options);
    let point = &figures["points"][0];
    let refused: u64 = point["draws"].as_u64().unwrap() - point["learned"].as_u64().unwrap();
    let reasons = point["refusals"].as_array().unwrap();
    let of_reasons: u64 = reasons.iter().map(|reason| reason["draws"].as_u64().unwrap()).sum();
    assert!(refused > 0 && refused == of_reasons, "{point}");
    let table = String::from_utf8(evaluate(&home, &options).stdout).unwrap();
    assert!(
        table.contains(&format!("\n7       {} of 5  ", 5 - refused)) && table.contains("samples: no model: "),
        "{table}"
    );
}

/// Pushed readings and answered polls are noise.
#[test]
fn noise_is_learned_despite_inexact_labels() {
    let mut scenario = small();
    scenario.session.framing = Framing::Http;
    scenario.labels.error = SignedDuration::from_millis(1_900);
    let home = Home::new(&scenario, 21);
    let (model, message) = learned(&home, &[]);
    let noise = model.noise.unwrap();
    assert_eq!((noise.commands, noise.written), (102, RecordLayout::Whole));
    // "HTTP/1.1 204 No Content" and a date.
    let nothing = noise.to_gateway.iter().find(|kind| kind.size == 64).unwrap();
    assert!(nothing.answers > 50 && nothing.commands == 0, "{nothing:?}");
    assert!(
        nothing.alone == 0 || nothing.after_silence_ms.is_some_and(|time| time.abs_diff(25_000) < 100),
        "{nothing:?}"
    );
    assert!(message.contains("noise: besides commands"), "{message}");

    // A third of the labels is late.
    let late = |labels: String| {
        let lines = labels.lines().enumerate().map(|(at, line)| match line.split_once(',') {
            Some((time, rest)) if at % 3 == 1 => format!("{},{rest}\n", time.parse::<f64>().unwrap() + 3.5),
            _ => format!("{line}\n"),
        });
        lines.collect()
    };
    let output = with_labels(&home, late);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures = home.figures("model.toml", &["--quiet", "--set", "command-segmenter.algorithm=learned"]);
    assert_eq!((&figures["missed"], &figures["ambiguous"], &figures["spurious"]), (&0.into(), &0.into(), &0.into()));
}

#[test]
fn model_learned_with_a_given_algorithm_has_no_noise() {
    let home = Home::new(&small(), 22);
    let (model, message) = learned(&home, &["--set", "command-segmenter.algorithm=gap"]);
    assert!(model.noise.is_none() && !message.contains("noise"), "{message}");
    let output = home.evaluate("model.toml", &["--set", "command-segmenter.algorithm=learned"]);
    assert_fails(&output, 1, &["command-segmenter", "model.toml", "no [noise]", "learn it again"]);
    assert!(home.evaluate("model.toml", &[]).status.success(), "`gap` is used with it");
}
