//! The bundled home is the output of the commands in its README, byte for byte.

use std::fs;
use support::committed_files;

use support::home::run;
use support::programs::{GATEWAY, root, sizeleak, stderr};

const FOLDER: &str = "examples/home";

fn committed(name: &str) -> Vec<u8> {
    fs::read(root().join(FOLDER).join(name)).unwrap()
}

#[test]
fn simulate_writes_the_bundled_captures() {
    let made = tempfile::tempdir().unwrap();
    let scenario = root().join(FOLDER).join("scenario.toml");
    let output = run(sizeleak("simulate").arg("--scenario").arg(scenario).args(["--seed", "1", "-o"]).arg(made.path()));
    assert!(output.status.success(), "{}", stderr(&output));
    let mut names: Vec<_> = fs::read_dir(made.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["inventory.toml", "learn.csv", "learn.pcap", "test.csv", "test.pcap"]);
    for name in names {
        let name = name.to_str().unwrap();
        assert!(fs::read(made.path().join(name)).unwrap() == committed(name), "{name} differs");
    }
}

#[test]
fn learn_writes_the_bundled_model() {
    let file = |name: &str| root().join(FOLDER).join(name);
    let mut command = sizeleak("learn");
    command.arg(file("learn.pcap")).arg("--labels").arg(file("learn.csv"));
    command.args(["--gateway", GATEWAY]).arg("--inventory").arg(file("inventory.toml")).args(["-o", "-"]);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), String::from_utf8(committed("model.toml")).unwrap());
}

#[test]
fn evaluate_finds_the_truth_among_the_candidates() {
    let file = |name: &str| root().join(FOLDER).join(name);
    let mut command = sizeleak("evaluate");
    command.arg("--model").arg(file("model.toml")).arg(file("test.pcap"));
    let output = run(command.arg("--labels").arg(file("test.csv")).args(["--gateway", GATEWAY, "--format=json"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for when in ["before_pruning", "after_pruning"] {
        assert!(figures[when]["precision"].as_f64().unwrap() >= 0.984, "{figures}");
    }
    assert_eq!((&figures["commands"], &figures["missed"], &figures["spurious"]), (&307.into(), &0.into(), &0.into()));
}

#[test]
fn the_folder_is_small_and_its_readme_names_every_file() {
    committed_files::assert_home_is_described(root());
}
