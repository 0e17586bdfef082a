//! A capture gives the same bytes through threads, processes and a Unix pipe, on one processor and on all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::processors;
use support::programs::{GATEWAY, STAGES, built, example, pipe, root, write};
use support::timeless::without_summary;
use support::traffic::{Connections, Shape, Traffic};

/// How large the generated captures are.
const BYTES: u64 = 4_000_000;

/// Captures to be read together.
struct Captures {
    name: &'static str,
    files: Vec<PathBuf>,
    /// How many stages run: all where the bundled model fits, else four.
    stages: usize,
}

fn all(folder: &Path) -> Vec<Captures> {
    let connections = Connections { flows: 256, at_once: 256 };
    let write = |name: &str, shape, seed, begins| {
        let file = folder.join(format!("{name}.pcap"));
        Traffic::new(shape, seed, connections, begins).write(File::create(&file).unwrap(), BYTES).unwrap();
        file
    };
    let [mtu, small, records] = [("mtu", Shape::Mtu), ("small", Shape::Small), ("records", Shape::Records)]
        .map(|(name, shape)| write(name, shape, 1, 1_767_600_000));
    let overlapping = write("overlapping", Shape::Mtu, 2, 1_767_600_000);
    let later = write("later", Shape::Records, 3, 1_767_800_000);
    let compressed = folder.join("compressed.pcap.zst");
    zstd::stream::copy_encode(File::open(&later).unwrap(), File::create(&compressed).unwrap(), 1).unwrap();
    let damaged = folder.join("damaged.pcap");
    let whole = fs::read(&mtu).unwrap();
    fs::write(&damaged, &whole[..whole.len() - 1]).unwrap();
    let [test, learn] = ["test.pcap", "learn.pcap"].map(|name| root().join(example(name)));
    let captures = |name, files: &[&PathBuf], stages| {
        let files = files.iter().map(|file| (*file).clone()).collect();
        Captures { name, files, stages }
    };
    vec![
        captures("home", &[&test], 7),
        captures("home, both captures", &[&test, &learn], 7),
        captures("small packets", &[&small], 4),
        captures("overlapping captures", &[&mtu, &overlapping, &records], 4),
        captures("captures that follow each other", &[&small, &compressed], 4),
        captures("damaged capture among others", &[&damaged, &later], 4),
    ]
}

/// A program with arguments, split at spaces, pinned to one processor if so asked.
fn on(one_processor: bool, arguments: &str) -> Command {
    let mut words = arguments.split_whitespace();
    let program = built().join(words.next().unwrap());
    let mut command = if one_processor { Command::new("taskset") } else { Command::new("env") };
    if one_processor {
        command.args(["-c", &processors::first(1)]);
    }
    command.arg(program).args(words).current_dir(root());
    command
}

/// The output of each way to run the stages over captures, as far as it can be read and without its summary.
fn ways(Captures { files, stages, .. }: &Captures, folder: &Path) -> Vec<(String, Vec<u8>)> {
    let pipeline = STAGES[..*stages].iter().map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n"));
    let pipeline = write(folder, "stages.toml", pipeline.collect::<String>()).display().to_string();
    let model = if *stages == 7 { "--model examples/home/model.toml" } else { "" };
    let mut ways = Vec::new();
    for one_processor in [true, false] {
        let way = |name: &str| format!("{name}, one processor: {one_processor}");
        for mode in ["threads", "processes"] {
            let arguments =
                format!("sizeleak run {pipeline} --gateway {GATEWAY} {model} --quiet --format frames --mode {mode}");
            let output = on(one_processor, &arguments).args(files).output().unwrap();
            ways.push((way(mode), without_summary(&output.stdout)));
        }
        let stage = |at: usize| {
            let arguments = match at {
                1 => format!("--gateway {GATEWAY}"),
                3.. => model.to_owned(),
                _ => String::new(),
            };
            on(one_processor, &format!("{} --quiet {arguments}", STAGES[at]))
        };
        let mut commands: Vec<Command> = (0..*stages).map(stage).collect();
        commands[0].args(files);
        ways.push((way("Unix pipe"), without_summary(&pipe(commands).pop().unwrap().stdout)));
    }
    ways
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn every_way_to_run_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for captures in all(folder.path()) {
        let ways = ways(&captures, folder.path());
        assert!(ways[0].1.len() > 1_000, "{}", captures.name);
        for (way, frames) in &ways {
            assert!(*frames == ways[0].1, "{}: {way} and {} differ", captures.name, ways[0].0);
        }
    }
}
