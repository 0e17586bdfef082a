//! On a single processor the stages up to `record-sizer` share a thread with the output. That changes nothing: not the
//! bytes, not what is said, and not how a run ends.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod processors;
mod programs;
mod timeless;
mod tool;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use programs::{GATEWAY, example, feed, root, start, stderr, stdout, supply};
use timeless::timeless;

const TEST: &str = "one_processor";

/// What a run is held to, so that it has one processor, and so that it has several, if there are.
fn holds() -> [String; 2] {
    [format!("taskset -c {}", processors::first(1)), "env".to_owned()]
}

/// Bytes; what half the home's capture comes to is more.
const LESS_THAN_HALF: usize = 100_000;

fn can_hold() -> bool {
    tool::are_here(TEST, &["taskset", "env"])
}

/// A run of the first so many of three stages.
fn run_of(stages: usize, hold: &str) -> Command {
    let mut hold = hold.split(' ');
    let mut command = Command::new(hold.next().unwrap());
    command.args(hold).args([env!("CARGO_BIN_EXE_sizeleak"), "run"]);
    command.arg(format!("tests/processors/{stages}.toml")).args(["--format", "frames", "--gateway", GATEWAY]);
    command.current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A run of all three over a capture.
fn run(hold: &str, capture: &Path, arguments: &str) -> Command {
    let mut command = run_of(3, hold);
    command.arg("--input").arg(capture).args(arguments.split_whitespace());
    command
}

fn home() -> std::path::PathBuf {
    root().join(example("test.pcap"))
}

/// What both runs come to, which is the same: the first one's.
fn alike(run: impl Fn(&str) -> Output) -> Output {
    let [alone, several] = holds().map(|hold| run(&hold));
    assert_eq!(alone.status, several.status);
    assert_eq!(stderr(&alone), stderr(&several));
    alone
}

#[test]
fn a_whole_capture() {
    if !can_hold() {
        return;
    }
    let [alone, several] = holds().map(|hold| run(&hold, &home(), "--quiet").output().unwrap());
    assert!(alone.status.success() && alone.stderr.is_empty(), "{}", stderr(&alone));
    assert_eq!(timeless(&alone.stdout), timeless(&several.stdout));
    // As one line a kind, for people.
    let alone = alike(|hold| run(hold, &home(), "-o /dev/null").output().unwrap());
    assert!(stderr(&alone).contains("record "), "{}", stderr(&alone));
}

#[test]
fn a_capture_that_is_cut_and_one_without_the_gateway() {
    if !can_hold() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(home()).unwrap();
    let cut = programs::write(folder.path(), "cut.pcap", &whole[..whole.len() / 2 + 5]);
    let ended = alike(|hold| run(hold, &cut, "--quiet").output().unwrap());
    assert!(!ended.status.success() && ended.stdout.len() > 1000, "{}", stderr(&ended));
    let absent = alike(|hold| run(hold, &home(), "--quiet --set flow-filter.gateway=[\"10.9.9.9\"]").output().unwrap());
    assert!(!absent.status.success() && stderr(&absent).contains("10.9.9.9"), "{}", stderr(&absent));
}

#[test]
fn an_output_that_is_closed_and_one_that_is_full() {
    if !can_hold() {
        return;
    }
    let closed = alike(|hold| {
        let mut child = run(hold, &home(), "--quiet").spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    });
    assert!(closed.status.success() && closed.stderr.is_empty(), "{}", stderr(&closed));
    if Path::new("/dev/full").exists() {
        let full = alike(|hold| run(hold, &home(), "--quiet -o /dev/full").output().unwrap());
        assert_eq!((full.status.code(), stderr(&full).lines().count()), (Some(1), 1), "{}", stderr(&full));
    }
}

#[test]
fn the_user_stops_it_while_it_waits_for_packets() {
    if !can_hold() {
        return;
    }
    let capture = std::fs::read(home()).unwrap();
    let stopped = alike(|hold| {
        let mut child = start(&mut run(hold, Path::new("-"), "--quiet"));
        let stdin = supply(&mut child, capture[..capture.len() / 2].to_vec());
        // What was read is out, although more may come.
        let mut stdout = vec![0; LESS_THAN_HALF];
        child.stdout.as_mut().unwrap().read_exact(&mut stdout).unwrap();
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        child.stdout.as_mut().unwrap().read_to_end(&mut stdout).unwrap();
        let mut output = child.wait_with_output().unwrap();
        drop(stdin);
        output.stdout = timeless(&stdout);
        output
    });
    assert_eq!(stopped.status.code(), Some(130), "{}", stderr(&stopped));
    assert!(stopped.stdout.len() > LESS_THAN_HALF / 2);
}

#[test]
fn a_stream_of_segments_that_was_recorded() {
    if !can_hold() {
        return;
    }
    let segments = stdout(run_of(2, "env").arg("--input").arg(home()).arg("--quiet"));
    let [alone, several] = holds().map(|hold| {
        let mut command = run_of(3, &hold);
        command.args(["--from", "-", "--quiet"]);
        feed(command, segments.clone())
    });
    assert!(alone.status.success(), "{}", stderr(&alone));
    assert_eq!(timeless(&alone.stdout), timeless(&several.stdout));
}
