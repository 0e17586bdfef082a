//! The bundled home is the output of the commands in its README, byte for byte.

use std::fs;
use support::committed_files;

use support::home::run;
use support::programs::{root, sizeleak, stderr};

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
fn the_folder_is_small_and_its_readme_names_every_file() {
    committed_files::assert_home_is_described(root());
}
