//! A large archive: hundreds of rotated files of twenty gateways give the answers of one run over one capture, whatever
//! happens on the way.

mod rotated;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use rotated::{GATEWAYS, Rotated};
use support::programs::{sizeleak, stderr};
use support::rotation::tree;

/// A network of all gateways.
const NETWORK: &str = "192.168.1.0/24";

fn archive(rotated: &Rotated, out: &Path) -> Command {
    let mut command = sizeleak("archive --format ndjson --quiet");
    command.arg(rotated.captures()).arg("-o").arg(out);
    command.args(["--gateway", NETWORK, "--model"]).arg(rotated.model());
    command
}

/// Runs a command that says that a capture is damaged.
fn damaged(mut command: Command) {
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert!(output.status.code() == Some(1) && said.contains("is cut at byte"), "{said}");
}

/// All answers in a folder of results, sorted.
fn answers(out: &Path) -> Vec<String> {
    let parts = tree(&out.join("identifications"));
    let texts = parts.into_iter().map(|(_, text)| String::from_utf8(text).unwrap());
    let mut lines: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.sort();
    lines
}

/// The answers of one run over the whole capture, sorted.
fn expected(rotated: &Rotated) -> Vec<String> {
    let mut run = sizeleak("run --kind identification --format ndjson --quiet");
    run.arg(rotated.whole()).args(["--gateway", NETWORK, "--model"]).arg(rotated.model());
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
#[ignore = "second tier: takes minutes"]
fn answers_of_hundreds_of_files_are_those_of_one_run_over_one_capture() {
    let rotated = Rotated::by_one_tap();
    let out = rotated.path().join("out");
    damaged(archive(&rotated, &out));
    let (found, expected) = (answers(&out), expected(&rotated));
    let different = found.iter().zip(&expected).find(|(found, expected)| found != expected);
    assert!(found == expected, "{} and {}: {different:?}", found.len(), expected.len());
    assert!(found.len() > 20 * GATEWAYS, "{} answers", found.len());
    let answered = found.iter().filter(|answer| !answer.contains("\"candidates\":[]")).count();
    assert!(answered * 10 > found.len() * 9, "{answered} of {} have candidates", found.len());
    let gateways = fs::read_dir(out.join("identifications")).unwrap().count();
    assert_eq!(gateways, GATEWAYS);
    assert!(tree(&rotated.captures()).len() >= 300);

    let first = tree(&out);
    damaged(archive(&rotated, &out));
    assert!(tree(&out) == first, "a second call changes nothing");
    let again = rotated.path().join("again");
    damaged(with_jobs(archive(&rotated, &again)));
    assert!(tree(&again) == first, "nor do two jobs");
}

fn with_jobs(mut command: Command) -> Command {
    command.args(["--jobs", "2"]);
    command
}

#[test]
#[ignore = "second tier: takes minutes"]
fn a_file_that_appears_late_gives_the_bytes_of_a_fresh_call() {
    let rotated = Rotated::by_one_tap();
    let [out, fresh] = ["out", "fresh"].map(|name| rotated.path().join(name));
    let aside = rotated.path().join("aside");
    fs::rename(rotated.late(), &aside).unwrap();
    damaged(archive(&rotated, &out));
    let without = answers(&out);
    fs::rename(&aside, rotated.late()).unwrap();
    damaged(archive(&rotated, &out));
    damaged(archive(&rotated, &fresh));
    assert!(tree(&out) == tree(&fresh) && answers(&out) != without);
}

#[test]
#[ignore = "second tier: takes minutes"]
fn calls_that_are_killed_twenty_times_leave_the_bytes_of_one_that_was_not() {
    let rotated = Rotated::by_one_tap();
    let [out, whole] = ["out", "whole"].map(|name| rotated.path().join(name));
    let start = Instant::now();
    damaged(archive(&rotated, &whole));
    let took = start.elapsed();
    let mut killed = 0;
    for part in 1..=20 {
        let mut call = archive(&rotated, &out).stderr(Stdio::null()).spawn().unwrap();
        // Each call gets further than the one before, if only by a little.
        thread::sleep(took * part / 40);
        call.kill().unwrap();
        killed += u32::from(call.wait().unwrap().code().is_none());
    }
    assert!(killed >= 5, "some were killed before their end: {killed}");
    damaged(archive(&rotated, &out));
    assert!(tree(&out) == tree(&whole));
}
