//! The examples in help texts are command lines that work: none is refused as wrong usage.

use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use sizeleak_simulator::Scenario;
use support::home::{Home, small};
use support::programs::{root, shell, sizeleak, stdout, with};

use crate::help::listed;

/// What an example cannot be tried without: an interface, another machine, or minutes.
const NOT_HERE: [&str; 10] = [
    "my-pruner",
    "burst.py",
    "deviations.ndjson",
    "2026-0[1-3]",
    "eth1",
    "ssh router",
    "--watch",
    "--detect",
    "larger-home.toml",
    "POINT",
];

/// The examples of the long help of a command, of which the first program of each pipe.
fn examples(words: &str) -> Vec<String> {
    let mut help = with("sizeleak", &format!("{words} --help"));
    let help = String::from_utf8(stdout(help.env("COLUMNS", "60000"))).unwrap();
    let lines = help.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
    let lines = lines.take_while(|line| !line.is_empty()).map(str::trim);
    let of_ours = lines.filter(|line| line.starts_with("sizeleak "));
    let tried = of_ours.filter(|line| !NOT_HERE.iter().any(|words| line.contains(words)));
    tried.map(|line| line.split(['|', '>', '#']).next().unwrap().trim().to_owned()).collect()
}

/// A home of few commands and devices: examples of it are soon over.
fn home() -> Home {
    let mut scenario: Scenario = small();
    for device in &mut scenario.devices {
        device.count = 2;
    }
    scenario.command.most_actions = 4;
    Home::learned(&scenario, 1)
}

/// A folder with the files that examples name.
fn folder() -> tempfile::TempDir {
    let (home, folder) = (home(), tempfile::tempdir().unwrap());
    let put = |from: &str, name: &str| fs::copy(home.path(from), folder.path().join(name)).map(drop).unwrap();
    for name in ["test.pcap", "home.pcap", "today.pcap", "monday.pcap", "tuesday.pcap", "09h.pcap", "january.pcap"] {
        put("test.pcap", name);
    }
    for name in ["learn.pcap", "week.pcap"] {
        put("learn.pcap", name);
    }
    for (from, name) in [
        ("test.csv", "test.csv"),
        ("test.csv", "labels.csv"),
        ("test.csv", "truth.csv"),
        ("test.csv", "both.csv"),
        ("learn.csv", "learn.csv"),
        ("model.toml", "model.toml"),
        ("model.toml", "paper.toml"),
        ("model.toml", "other.toml"),
        ("inventory.toml", "inventory.toml"),
        ("inventory.toml", "home.toml"),
    ] {
        put(from, name);
    }
    for name in ["monday.pcap.gz", "tuesday.pcap.gz"] {
        let mut file = flate2::write::GzEncoder::new(
            fs::File::create(folder.path().join(name)).unwrap(),
            flate2::Compression::default(),
        );
        file.write_all(&fs::read(home.path("test.pcap")).unwrap()).unwrap();
        file.finish().unwrap();
    }
    for below in ["captures/2026-01", "archive"] {
        fs::create_dir_all(folder.path().join(below)).unwrap();
        put("test.pcap", &format!("{below}/home.pcap"));
    }
    let pipeline = fs::read_to_string(root().join("pipeline.toml")).unwrap().replace("examples/home/", "");
    fs::write(folder.path().join("pipeline.toml"), pipeline).unwrap();
    stdout(&mut shell(folder.path(), "sizeleak run test.pcap --model model.toml --quiet -o saved.frames"));
    for name in ["today.frames", "january.frames", "february.frames", "08h.frames", "commands.frames"] {
        fs::copy(folder.path().join("saved.frames"), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn the_examples_in_help_texts_are_not_refused_as_wrong_usage() {
    // What is wrong usage is nearly always said before any work.
    try_examples(Duration::from_millis(500));
}

#[test]
#[ignore = "second tier: takes minutes"]
fn the_examples_in_help_texts_end_without_being_refused() {
    try_examples(Duration::MAX);
}

/// Runs each example for so long.
fn try_examples(limit: Duration) {
    let help = String::from_utf8(stdout(&mut sizeleak("-h"))).unwrap();
    let names = listed(&help);
    let folder = folder();
    let model = fs::read(folder.path().join("model.toml")).unwrap();
    let (mut tried, mut worked) = (0, 0);
    for line in names.iter().flat_map(|name| examples(name)) {
        // Some examples write another one, of which audits take long.
        fs::write(folder.path().join("model.toml"), &model).unwrap();
        let works = ended_within(shell(folder.path(), &line), limit).is_none_or(|(status, said)| {
            assert!(status.code().is_some_and(|code| code != 2), "{line}\n{said}");
            status.success()
        });
        (tried, worked) = (tried + 1, worked + usize::from(works));
    }
    assert!(tried > 55 && worked * 3 > tried * 2, "{worked} of {tried} worked");
}

/// How a program ended and what it said; `None` if it was still at work after this time, and was ended with its children.
fn ended_within(mut command: Command, limit: Duration) -> Option<(ExitStatus, String)> {
    // A file takes whatever it says without being read meanwhile.
    let mut said = tempfile::tempfile().unwrap();
    command.process_group(0).stdout(Stdio::null()).stderr(said.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let mut text = Vec::new();
            said.rewind().unwrap();
            said.read_to_end(&mut text).unwrap();
            return Some((status, String::from_utf8_lossy(&text).into_owned()));
        }
        if start.elapsed() >= limit {
            kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
