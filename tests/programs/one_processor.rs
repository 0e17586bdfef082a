//! On a single processor the stages up to `record-sizer` share a thread with the output. This changes neither the bytes
//! nor the messages nor how a run ends.
//!
//! With two processors, two threads run the three stages, and the second one writes the output too; a single stage has
//! one thread, and the output another.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::processors;
use support::programs;
use support::timeless;

use support::programs::{GATEWAY, example, feed, root, stderr, stdout, stop};

/// How many of the stages run.
const STAGES: [usize; 2] = [1, 3];

/// In bytes; the output for half of the home's capture is longer.
const LESS_THAN_HALF: usize = 100_000;

/// The commands that pin a run: to one processor, and to none in particular.
fn pins() -> [String; 2] {
    [format!("taskset -c {}", processors::first(1)), "env".to_owned()]
}

/// A run of the first `stages` of three stages over a capture.
fn run(stages: usize, pin: &str, capture: &Path, arguments: &str) -> Command {
    let mut command = run_of(stages, pin);
    command.arg(capture).args(arguments.split_whitespace());
    command
}

fn run_of(stages: usize, pin: &str) -> Command {
    let mut pin = pin.split(' ');
    let mut command = Command::new(pin.next().unwrap());
    command.args(pin).args([env!("CARGO_BIN_EXE_sizeleak"), "run"]);
    command.arg(format!("tests/programs/processors/{stages}.toml")).args(["--format", "frames"]);
    if stages > 1 {
        command.args(["--gateway", GATEWAY]);
    }
    command.current_dir(root()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn home() -> PathBuf {
    root().join(example("test.pcap"))
}

/// The result of both runs, which must be the same.
fn alike(run: impl Fn(&str) -> Output) -> Output {
    let [alone, several] = pins().map(|pin| run(&pin));
    assert_eq!(alone.status, several.status);
    assert_eq!(stderr(&alone), stderr(&several));
    assert!(alone.stdout == several.stdout, "other bytes");
    alone
}

/// The result of a run of this many stages, without its latencies.
fn ended(stages: usize, mut output: Output) -> Output {
    let (stdout, summed_up) = timeless::with_stages(&output.stdout);
    assert_eq!(summed_up, stages);
    output.stdout = stdout;
    output
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn whole_capture_has_the_same_output_on_one_processor() {
    for stages in STAGES {
        let whole = alike(|pin| ended(stages, run(stages, pin, &home(), "--quiet").output().unwrap()));
        assert!(whole.status.success() && whole.stderr.is_empty(), "{}", stderr(&whole));
    }
    // For people, one line per kind.
    let printed = alike(|pin| run(3, pin, &home(), "-o /dev/null").output().unwrap());
    assert!(stderr(&printed).contains("record "), "{}", stderr(&printed));
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn cut_capture_and_absent_gateway_are_reported_alike_on_one_processor() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(home()).unwrap();
    let cut = programs::write(folder.path(), "cut.pcap", &whole[..whole.len() / 2 + 5]);
    for stages in STAGES {
        let cut = alike(|pin| run(stages, pin, &cut, "--quiet").output().unwrap());
        assert!(!cut.status.success() && cut.stdout.len() > LESS_THAN_HALF, "{}", stderr(&cut));
    }
    let elsewhere = "--quiet --set flow-filter.gateway=[\"10.9.9.9\"]";
    let absent = alike(|pin| run(3, pin, &home(), elsewhere).output().unwrap());
    assert!(!absent.status.success() && stderr(&absent).contains("10.9.9.9"), "{}", stderr(&absent));
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn closed_and_full_outputs_end_the_run_alike_on_one_processor() {
    for stages in STAGES {
        let closed = alike(|pin| {
            let mut child = run(stages, pin, &home(), "--quiet").spawn().unwrap();
            drop(child.stdout.take());
            child.wait_with_output().unwrap()
        });
        assert!(closed.status.success() && closed.stderr.is_empty(), "{}", stderr(&closed));
        if Path::new("/dev/full").exists() {
            let full = alike(|pin| run(stages, pin, &home(), "--quiet -o /dev/full").output().unwrap());
            assert_eq!((full.status.code(), stderr(&full).lines().count()), (Some(1), 1), "{}", stderr(&full));
        }
    }
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn interrupt_ends_the_wait_for_packets_on_one_processor() {
    let capture = std::fs::read(home()).unwrap();
    let half = &capture[..capture.len() / 2];
    for stages in STAGES {
        for pin in pins() {
            // Everything read is written, although more may come.
            let mut waiting = run(stages, &pin, Path::new("-"), "--quiet");
            let stopped = ended(stages, stop(&mut waiting, half.to_vec(), LESS_THAN_HALF, || ()));
            assert_eq!(stopped.status.code(), Some(130), "{pin}: {}", stderr(&stopped));
            assert_eq!(stderr(&stopped), "sizeleak: stopped; everything read until then is processed\n", "{pin}");
        }
    }
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn recorded_segments_have_the_same_output_on_one_processor() {
    let segments = stdout(&mut run(2, "env", &home(), "--quiet"));
    let recorded = alike(|pin| {
        let mut command = run_of(3, pin);
        command.args(["--from", "-", "--quiet"]);
        ended(3, feed(command, segments.clone()))
    });
    assert!(recorded.status.success(), "{}", stderr(&recorded));
}
