//! On a single processor the stages up to `record-sizer` share a thread with the output. That changes nothing: not the
//! bytes, not what is said, and not how a run ends.
//!
//! With two processors two threads have the three stages, and the second one the output too; a stage alone has one, and
//! the output another.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod processors;
mod programs;
mod timeless;
mod tool;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use programs::{GATEWAY, example, feed, root, stderr, stdout, stop};

const TEST: &str = "one_processor";

/// How many of the stages run.
const STAGES: [usize; 2] = [1, 3];

/// Bytes; what half the home's capture comes to is more.
const LESS_THAN_HALF: usize = 100_000;

/// What a run is held to, so that it has one processor, and so that it has several.
fn holds() -> [String; 2] {
    [format!("taskset -c {}", processors::first(1)), "env".to_owned()]
}

fn can_hold() -> bool {
    tool::are_here(TEST, &["taskset", "env"]) && (processors::are(2) || tool::skip(TEST, "two processors"))
}

/// A run of the first so many of three stages over a capture.
fn run(stages: usize, hold: &str, capture: &Path, arguments: &str) -> Command {
    let mut command = run_of(stages, hold);
    command.arg("--input").arg(capture).args(arguments.split_whitespace());
    command
}

fn run_of(stages: usize, hold: &str) -> Command {
    let mut hold = hold.split(' ');
    let mut command = Command::new(hold.next().unwrap());
    command.args(hold).args([env!("CARGO_BIN_EXE_sizeleak"), "run"]);
    command.arg(format!("tests/processors/{stages}.toml")).args(["--format", "frames"]);
    if stages > 1 {
        command.args(["--gateway", GATEWAY]);
    }
    command.current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn home() -> PathBuf {
    root().join(example("test.pcap"))
}

/// What both runs come to, which is the same: the first one's.
fn alike(run: impl Fn(&str) -> Output) -> Output {
    let [alone, several] = holds().map(|hold| run(&hold));
    assert_eq!(alone.status, several.status);
    assert_eq!(stderr(&alone), stderr(&several));
    assert!(alone.stdout == several.stdout, "other bytes");
    alone
}

/// What a run of so many stages comes to, without its latencies.
fn ended(stages: usize, mut output: Output) -> Output {
    let (stdout, summed_up) = timeless::with_stages(&output.stdout);
    assert_eq!(summed_up, stages);
    output.stdout = stdout;
    output
}

#[test]
fn a_whole_capture() {
    if !can_hold() {
        return;
    }
    for stages in STAGES {
        let whole = alike(|hold| ended(stages, run(stages, hold, &home(), "--quiet").output().unwrap()));
        assert!(whole.status.success() && whole.stderr.is_empty(), "{}", stderr(&whole));
    }
    // As one line a kind, for people.
    let told = alike(|hold| run(3, hold, &home(), "-o /dev/null").output().unwrap());
    assert!(stderr(&told).contains("record "), "{}", stderr(&told));
}

#[test]
fn a_capture_that_is_cut_and_one_without_the_gateway() {
    if !can_hold() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(home()).unwrap();
    let cut = programs::write(folder.path(), "cut.pcap", &whole[..whole.len() / 2 + 5]);
    for stages in STAGES {
        let cut = alike(|hold| run(stages, hold, &cut, "--quiet").output().unwrap());
        assert!(!cut.status.success() && cut.stdout.len() > LESS_THAN_HALF, "{}", stderr(&cut));
    }
    let elsewhere = "--quiet --set flow-filter.gateway=[\"10.9.9.9\"]";
    let absent = alike(|hold| run(3, hold, &home(), elsewhere).output().unwrap());
    assert!(!absent.status.success() && stderr(&absent).contains("10.9.9.9"), "{}", stderr(&absent));
}

#[test]
fn an_output_that_is_closed_and_one_that_is_full() {
    if !can_hold() {
        return;
    }
    for stages in STAGES {
        let closed = alike(|hold| {
            let mut child = run(stages, hold, &home(), "--quiet").spawn().unwrap();
            drop(child.stdout.take());
            child.wait_with_output().unwrap()
        });
        assert!(closed.status.success() && closed.stderr.is_empty(), "{}", stderr(&closed));
        if Path::new("/dev/full").exists() {
            let full = alike(|hold| run(stages, hold, &home(), "--quiet -o /dev/full").output().unwrap());
            assert_eq!((full.status.code(), stderr(&full).lines().count()), (Some(1), 1), "{}", stderr(&full));
        }
    }
}

#[test]
fn the_user_stops_it_while_it_waits_for_packets() {
    if !can_hold() {
        return;
    }
    let capture = std::fs::read(home()).unwrap();
    let half = &capture[..capture.len() / 2];
    for stages in STAGES {
        for hold in holds() {
            // What was read is out, although more may come.
            let mut waiting = run(stages, &hold, Path::new("-"), "--quiet");
            let stopped = ended(stages, stop(&mut waiting, half.to_vec(), LESS_THAN_HALF, || ()));
            assert_eq!(stopped.status.code(), Some(130), "{hold}: {}", stderr(&stopped));
            assert_eq!(stderr(&stopped), "sizeleak: stopped; what was read until then is processed\n", "{hold}");
        }
    }
}

#[test]
fn a_stream_of_segments_that_was_recorded() {
    if !can_hold() {
        return;
    }
    let segments = stdout(&mut run(2, "env", &home(), "--quiet"));
    let recorded = alike(|hold| {
        let mut command = run_of(3, hold);
        command.args(["--from", "-", "--quiet"]);
        ended(3, feed(command, segments.clone()))
    });
    assert!(recorded.status.success(), "{}", stderr(&recorded));
}
