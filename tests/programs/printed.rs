//! What the commands print of the bundled home.

use support::programs::{GATEWAY, example, sizeleak};
use support::transcript::Transcript;

/// Runs commands, split at spaces, and compares what they print with a snapshot.
fn assert_printed<const COMMANDS: usize>(name: &str, commands: [&str; COMMANDS]) {
    let mut said = Transcript::default();
    let test = format!("{} --labels {} --gateway {GATEWAY}", example("test.pcap"), example("test.csv"));
    let learn = format!("{} --labels {} --gateway {GATEWAY}", example("learn.pcap"), example("learn.csv"));
    for command in commands {
        let command = command.replace("TEST", &test).replace("LEARN", &learn).replace("HOME", "examples/home");
        said.run(&mut sizeleak(&command));
    }
    said.assert_shown(name);
}

#[test]
fn learning_is_reported() {
    assert_printed(
        "learn",
        [
            "learn LEARN --inventory HOME/inventory.toml -o /dev/null",
            "learn LEARN --inventory HOME/inventory.toml --method paper -o /dev/null",
        ],
    );
}

#[test]
fn evaluation_is_reported() {
    assert_printed("evaluate", ["evaluate TEST --model HOME/model.toml", "evaluate TEST --folds 3"]);
}

#[test]
fn comparison_is_reported() {
    assert_printed("compare", ["evaluate standard pruner.mode=none TEST --model HOME/model.toml"]);
}

#[test]
fn survey_is_reported() {
    assert_printed("survey", ["survey HOME/test.pcap"]);
}

#[test]
fn reports_on_tunnels_are_what_they_were() {
    assert_printed(
        "tunnel",
        [
            "audit --model HOME/model.toml --tunnel wireguard --background 5:HOME/test.pcap",
            "audit --model HOME/model.toml --tunnel esp-cbc --format markdown",
            "pad --model HOME/model.toml --tunnel wireguard --budget 20%",
            "pad --model HOME/model.toml --tunnel esp-gcm --format=csv",
            "pad --model HOME/model.toml --tunnel wireguard --policy random:32",
            "pad --model HOME/model.toml --tunnel wireguard --countermeasures",
            "audit --model HOME/model.toml --background 5:HOME/test.pcap",
            "audit --model HOME/model.toml --tunnel wireguard --background 5",
            "audit --model HOME/model.toml --tunnel vpn",
        ],
    );
}

#[test]
fn a_run_is_shown() {
    assert_printed("run", ["run pipeline.toml --kind session,notice -o -"]);
}
