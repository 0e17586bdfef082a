//! An output that ends before its time, in every form: nobody reads it, it cannot grow, its input is cut, or the run is stopped.

use std::fs::{self, File};
use std::io::pipe;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::home::Home;
use support::programs::{self, example, feed, seven, sizeleak, stderr, stdout, stop, with};
use support::streams::summary_of;

/// The forms of a run's output.
const FORMS: [&str; 9] = [
    "--format table",
    "--format csv",
    "--format ndjson",
    "--format json",
    "--format zeek",
    "--format parquet",
    "--format frames",
    "--format frames --mode processes",
    "--format table --mode processes",
];

fn run(form: &str) -> Command {
    sizeleak(&format!("run pipeline.toml --quiet {form}"))
}

/// Asserts that an output is whole in its form, although it holds less than was asked for.
fn assert_whole(form: &str, output: &[u8]) {
    let text = || std::str::from_utf8(output).unwrap();
    assert!(!output.is_empty(), "{form}");
    match form.split(' ').nth(1).unwrap() {
        "parquet" => assert!(output.starts_with(b"PAR1") && output.ends_with(b"PAR1")),
        "frames" => assert_eq!(summary_of(output).stages.len(), 7),
        "json" => drop(serde_json::from_slice::<Value>(output).unwrap()),
        "ndjson" => assert!(text().lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", text()),
        "zeek" => assert!(text().lines().last().unwrap().starts_with("#close"), "{}", text()),
        _ => assert!(text().ends_with('\n'), "{form}"),
    }
}

#[test]
fn an_output_that_nobody_reads_ends_quietly() {
    let home = Home::bundled();
    home.text("run pipeline.toml -q -o saved.frames");
    let others = ["frames saved.frames", "frames saved.frames --format parquet --kind session", "plot saved.frames"];
    for mut command in FORMS.map(run).into_iter().chain(others.map(|arguments| home.sizeleak(arguments))) {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let closed = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(closed.status.success() && closed.stderr.is_empty(), "{command:?}: {}", stderr(&closed));
    }
    let mut commands = seven(&example("test.pcap"));
    commands.truncate(3);
    let mut head = Command::new("head");
    head.args(["-c", "10"]);
    commands.push(head);
    for output in programs::pipe(commands) {
        assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    }
}

fn assert_cannot_be_written(command: &Command, output: &Output, words: &str) {
    let said = stderr(output);
    assert!(
        output.status.code() == Some(1) && said.lines().count() == 1 && said.contains(words),
        "{command:?}: {said}"
    );
}

#[test]
fn a_full_disk_is_one_sentence() {
    let Ok(full) = File::options().write(true).open("/dev/full") else { return println!("skipped: no /dev/full") };
    for form in FORMS {
        let mut command = run(form);
        let output = command.stdout(full.try_clone().unwrap()).stderr(Stdio::piped()).output().unwrap();
        assert_cannot_be_written(&command, &output, "cannot be written");
        let mut command = run(form);
        let output = command.args(["-o", "/dev/full"]).output().unwrap();
        assert_cannot_be_written(&command, &output, "output");
    }
    let asked = ["--help", "-h", "--version"].into_iter();
    let stages = asked.clone().flat_map(|asked| ["capture", "detector"].map(|stage| with(stage, asked)));
    let help = asked.chain(["run --help", "archive status -h"]).map(sizeleak);
    for mut command in stages.chain(help) {
        let output = command.stdout(full.try_clone().unwrap()).stderr(Stdio::piped()).output().unwrap();
        assert_cannot_be_written(&command, &output, "the output cannot be written: No space left");
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let closed = command.stdout(writer).output().unwrap();
        assert!(closed.status.success() && closed.stderr.is_empty(), "{command:?}: {}", stderr(&closed));
    }
    let home = Home::of_weeks().0;
    for format in ["table", "ndjson", "csv", "parquet"] {
        let mut command = home.sizeleak(&format!("detect attacked.frames --profile p.toml -q --format {format}"));
        let output = command.stdout(full.try_clone().unwrap()).stderr(Stdio::piped()).output().unwrap();
        assert_cannot_be_written(&command, &output, "the output cannot be written");
    }
}

/// The limit is on the size of any file, as a full disk is on all of them.
#[test]
fn a_file_that_cannot_grow_leaves_the_earlier_one() {
    let home = Home::bundled();
    fs::write(home.path("out"), "earlier").unwrap();
    for form in FORMS {
        let run = run(form);
        let mut limited = Command::new("sh");
        limited
            .args(["-c", "ulimit -f 8; trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(run.get_program())
            .args(run.get_args());
        let output = limited.args(["-o", "out"]).current_dir(home.folder()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{form}: {}", stderr(&output));
        assert!(stderr(&output).contains("File too large"), "{form}: {}", stderr(&output));
        assert_eq!(home.text_of("out"), "earlier");
    }
}

#[test]
fn a_cut_input_makes_a_whole_output_of_what_is_before_the_cut() {
    let stream = stdout(&mut run("--format frames"));
    for form in FORMS.into_iter().filter(|form| !form.contains("frames") && !form.contains("mode")) {
        let half = stream[..stream.len() / 2].to_vec();
        let output = feed(sizeleak(&format!("frames {form} --kind identification")), half);
        assert_eq!(output.status.code(), Some(3), "{form}: {}", stderr(&output));
        if form.contains("zeek") {
            assert!(!String::from_utf8_lossy(&output.stdout).contains("#close"), "a cut log is not closed");
        } else {
            assert_whole(form, &output.stdout);
        }
    }
}

/// Its stdin stays open: without the signal, a run would wait forever.
#[test]
fn a_stopped_run_writes_whole_what_it_has_read() {
    let home = Home::bundled();
    let capture = fs::read(home.path("test.pcap")).unwrap();
    // In bytes; the frames for half of the capture are more.
    let less_than_half = 400_000;
    let records = stdout(&mut home.sizeleak("run pipeline.toml -q --kind record,session,flow --format frames"));
    for form in FORMS {
        let mut command = home.sizeleak(&format!("run pipeline.toml - --quiet {form} -o out"));
        if form.contains("frames") {
            command = home.sizeleak(&format!("run pipeline.toml - --quiet {form}"));
            let stopped = stop(&mut command, capture[..capture.len() / 2].to_vec(), less_than_half, || ());
            assert_eq!(stopped.status.code(), Some(130), "{form}: {}", stderr(&stopped));
            assert_whole(form, &stopped.stdout);
            // A run from a saved stream ends alike.
            let mut replay = home.sizeleak(&format!("run pipeline.toml --from - --quiet {form}"));
            let stopped = stop(&mut replay, records[..records.len() / 2].to_vec(), 1, || ());
            assert_eq!(stopped.status.code(), Some(130), "{form}: {}", stderr(&stopped));
        } else {
            // More than a pipe holds: once it is read, the run has started.
            let mut child = programs::start(&mut command);
            let stdin = programs::supply(&mut child, capture.clone()).join().unwrap();
            programs::interrupt(&child);
            let stopped = child.wait_with_output().unwrap();
            drop(stdin);
            assert_eq!(stopped.status.code(), Some(130), "{form}: {}", stderr(&stopped));
            assert_whole(form, &fs::read(home.path("out")).unwrap());
        }
    }
}

#[test]
fn a_stopped_run_writes_its_output_under_another_name_until_it_is_whole() {
    let home = Home::bundled();
    let mut child = programs::start(&mut home.sizeleak("run pipeline.toml --quiet - --format ndjson -o out.ndjson"));
    let stdin = programs::supply(&mut child, fs::read(home.path("test.pcap")).unwrap()).join().unwrap();
    let is_begun = || {
        assert!(!home.path("out.ndjson").exists(), "it appears when it is whole");
        fs::read_dir(home.folder()).unwrap().any(|entry| {
            let entry = entry.unwrap();
            entry.file_name().to_str().unwrap().starts_with(".out.ndjson.") && entry.metadata().unwrap().len() > 0
        })
    };
    while !is_begun() {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended by itself");
        thread::sleep(Duration::from_millis(5));
    }
    programs::interrupt(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    drop(stdin);
    assert!(home.text_of("out.ndjson").lines().count() > 4);
}
