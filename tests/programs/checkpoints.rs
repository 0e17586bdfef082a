//! Captures that arrive one by one: runs that continue each other by `--state` write the frames of one run over all of
//! them, wherever the files end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::damage;
use support::home;
use support::processors;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_frame::Frame;
use support::home::{Home, run};
use support::programs::{GATEWAY, example, root, sizeleak, stderr};
use support::rotation::{capture, packets};
use support::streams::frames_of;
use tempfile::TempDir;

/// The frames of a stream, and what its stages counted.
#[derive(Debug, Default, PartialEq)]
struct Read {
    frames: Vec<Frame>,
    counters: BTreeMap<(String, String), u64>,
}

impl Read {
    fn add(&mut self, stream: &[u8]) {
        for frame in frames_of(stream) {
            match frame {
                Frame::Hello(_) => {}
                Frame::Summary(summary) => {
                    for stage in summary.stages.into_iter().filter(|stage| stage.stage != "capture") {
                        for (name, count) in stage.counters {
                            let sum = self.counters.entry((stage.stage.clone(), name.clone())).or_default();
                            *sum = if name.starts_with("worst_") { count.max(*sum) } else { *sum + count };
                        }
                    }
                }
                other => self.frames.push(other),
            }
        }
    }
}

/// A capture of a simulated home in which packets are late, repeated and missing.
fn impaired_home() -> Vec<u8> {
    let mut scenario = home::small();
    scenario.test.commands = 300;
    let home = Home::new(&scenario, 5);
    let capture = fs::read(home.path("test.pcap")).unwrap();
    let capture = damage::drop_packets(&capture, 0.01, 1);
    damage::repeat_packets(&damage::delay_packets(&capture, 0.03, 2), 0.01, 3)
}

/// Splits a capture into files before these packets.
fn split(pcap: &[u8], before: &[usize], folder: &Path) -> Vec<PathBuf> {
    let (header, packets) = packets(pcap);
    let mut before = before.to_vec();
    before.sort_unstable();
    let starts = [0].into_iter().chain(before.clone());
    let parts = starts.zip(before.iter().copied().chain([packets.len()])).enumerate().map(|(number, (start, end))| {
        let file = folder.join(format!("{number:03}.pcap"));
        fs::write(&file, capture(&header, &packets[start..end])).unwrap();
        file
    });
    parts.collect()
}

/// A run that continues the state in a folder.
fn continued(folder: &Path) -> Command {
    let mut command = sizeleak("run --quiet --format frames");
    command.args(["--gateway", GATEWAY]).arg("--state").arg(folder.join("state"));
    command
}

/// The output of a run that ended well.
fn output(command: &mut Command) -> Vec<u8> {
    let output = run(command);
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

/// What one run reads out of a capture.
fn at_once(capture: &Path) -> Read {
    let mut command = sizeleak("run --quiet --format frames --kind hello,flow,session,record,notice,summary");
    let mut read = Read::default();
    read.add(&output(command.arg(capture).args(["--gateway", GATEWAY])));
    read
}

#[test]
fn runs_that_continue_each_other_write_the_frames_of_one_run_wherever_files_end() {
    let folder = TempDir::new().unwrap();
    let capture = impaired_home();
    let whole = folder.path().join("whole.pcap");
    fs::write(&whole, &capture).unwrap();
    let expected = at_once(&whole);
    let notices = expected.frames.iter().filter(|frame| matches!(frame, Frame::Notice(_))).count();
    assert!(notices > 10 && expected.frames.len() > 500, "{notices} of {}", expected.frames.len());
    let count = packets(&capture).1.len();
    let mut random = ChaCha20Rng::seed_from_u64(7);
    for files in [1, 2, 9, 25] {
        let before: Vec<usize> = (1..files).map(|_| random.random_range(0..count)).collect();
        let parts = TempDir::new().unwrap();
        let mut read = Read::default();
        for file in split(&capture, &before, parts.path()) {
            read.add(&output(continued(parts.path()).arg(file)));
        }
        read.add(&output(continued(parts.path()).arg("--finish")));
        assert!(read == expected, "{files} files, before packets {before:?}");
        assert!(!parts.path().join("state").exists(), "the flows are over");
    }
}

/// A capture that is read a second time, and one that begins inside what was read, add nothing that came out before.
#[test]
fn packets_that_the_state_has_seen_are_passed_over_and_that_is_said() {
    let folder = TempDir::new().unwrap();
    let capture = fs::read(root().join(example("test.pcap"))).unwrap();
    let whole = folder.path().join("whole.pcap");
    fs::write(&whole, &capture).unwrap();
    let middle = packets(&capture).1.len() / 2;
    let first = &split(&capture, &[middle], folder.path())[0];
    let mut read = Read::default();
    read.add(&output(continued(folder.path()).arg(first)));

    let mut again = sizeleak("run --format frames");
    again.arg(first).args(["--gateway", GATEWAY]).arg("--state").arg(folder.path().join("state"));
    let repeated = run(&mut again);
    assert!(repeated.status.success(), "{}", stderr(&repeated));
    let said = stderr(&repeated);
    assert!(said.contains("are passed over: an earlier run has read as far as that"), "{said}");
    let mut nothing = Read::default();
    nothing.add(&repeated.stdout);
    assert!(
        matches!(&nothing.frames[..], [Frame::Notice(notice)] if notice.what == "repeated"),
        "{:?}",
        nothing.frames
    );
    let passed_over = |read: &Read| read.counters[&("flow-filter".to_owned(), "repeated_packets".to_owned())];
    // Packets of others are not even looked at.
    let counts = middle as u64 * 9 / 10..=middle as u64;
    assert!(counts.contains(&passed_over(&nothing)), "{}", passed_over(&nothing));

    let mut rest = Read::default();
    rest.add(&output(continued(folder.path()).arg(&whole).arg("--finish")));
    assert_eq!(passed_over(&rest), passed_over(&nothing));
    read.frames.extend(
        rest.frames.into_iter().filter(|frame| !matches!(frame, Frame::Notice(notice) if notice.what == "repeated")),
    );
    assert_eq!(read.frames, at_once(&whole).frames);
}

#[test]
fn the_last_capture_may_end_the_flows() {
    let folder = TempDir::new().unwrap();
    let capture = impaired_home();
    let whole = folder.path().join("whole.pcap");
    fs::write(&whole, &capture).unwrap();
    let mut read = Read::default();
    let files = split(&capture, &[packets(&capture).1.len() / 2], folder.path());
    read.add(&output(continued(folder.path()).arg(&files[0])));
    read.add(&output(continued(folder.path()).arg(&files[1]).arg("--finish")));
    assert!(read == at_once(&whole));
}

#[test]
fn the_same_state_has_the_same_bytes_on_one_processor_and_on_two() {
    let capture = fs::read(root().join(example("test.pcap"))).unwrap();
    let states = [1, 2].map(|cores| {
        let folder = TempDir::new().unwrap();
        for file in split(&capture, &[900, 2000], folder.path()) {
            let plain = continued(folder.path());
            let mut command = Command::new("taskset");
            command.args(["-c", &processors::first(cores)]).arg(plain.get_program()).args(plain.get_args());
            output(command.arg(file));
        }
        fs::read(folder.path().join("state")).unwrap()
    });
    assert!(states[0] == states[1]);
    assert!(states[0].len() < 4096, "{} bytes", states[0].len());
}

#[test]
fn a_run_that_loses_too_much_leaves_the_state() {
    let folder = TempDir::new().unwrap();
    let capture = damage::drop_packets(&fs::read(root().join(example("test.pcap"))).unwrap(), 0.3, 1);
    let half = packets(&capture).1.len() / 2;
    let files = split(&capture, &[half], folder.path());
    output(continued(folder.path()).args(["--max-loss", "100"]).arg(&files[0]));
    let mut lossy = continued(folder.path());
    let failed = run(lossy.arg(&files[1]).arg("--finish").args(["--max-loss", "1"]));
    assert!(!failed.status.success() && stderr(&failed).contains("--max-loss"), "{}", stderr(&failed));
    assert!(folder.path().join("state").exists());
    let said = stderr(&failed).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("state stays as it was: this run again, with a greater `--max-loss`, continues"), "{said}");
}
