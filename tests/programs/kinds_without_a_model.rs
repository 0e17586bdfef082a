//! `sizeleak run --kind`: no stage runs behind the one that makes the kinds asked for, so none of them needs options.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::home::{assert_fails, run};
use support::programs::{GATEWAY, example, root, sizeleak, stderr};

/// A run over the bundled capture in a folder without a pipeline file.
fn command(folder: &Path, more: &[&str]) -> Command {
    let mut command = sizeleak("run --format ndjson");
    command.current_dir(folder).args(more);
    command
}

fn over_captures(folder: &Path, kinds: &str) -> Output {
    let mut command = command(folder, &["--gateway", GATEWAY, "--kind", kinds]);
    run(command.arg(root().join(example("test.pcap"))))
}

/// How many frames of each kind came out, in order of first appearance.
fn kinds(output: &Output) -> Vec<(String, usize)> {
    assert!(output.status.success(), "{}", stderr(output));
    let mut counts: Vec<(String, usize)> = Vec::new();
    for line in String::from_utf8(output.stdout.clone()).unwrap().lines() {
        let frame: Value = serde_json::from_str(line).unwrap();
        let kind = frame.as_object().unwrap().keys().next().unwrap().clone();
        match counts.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    counts
}

fn of(kind: &str, count: usize) -> (String, usize) {
    (kind.to_owned(), count)
}

#[test]
fn kinds_before_the_model_need_none() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, frame, count) in [
        ("command", "command", 307),
        ("record", "record", 1970),
        ("session", "session", 4),
        ("flow", "flow", 4),
        ("segments", "segment", 3338),
        ("packets", "packet", 3480),
    ] {
        assert_eq!(kinds(&over_captures(folder.path(), kind)), [of(frame, count)], "{kind}");
    }
    assert_eq!(kinds(&over_captures(folder.path(), "flow,record"))[..1], [of("flow", 4)]);
}

#[test]
fn kinds_that_the_model_makes_still_need_it() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["identification", "correction", "notice", "summary", "record,identification"] {
        assert_fails(&over_captures(folder.path(), kind), 2, &["--model FILE"]);
    }
}

#[test]
fn with_a_pipeline_file_the_kinds_end_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = root().join("pipeline.toml");
    let with = |kinds: &str| run(command(folder.path(), &[]).arg(&pipeline).args(["--kind", kinds]));
    assert_eq!(kinds(&with("record")), [of("record", 1970)]);
    assert_eq!(kinds(&with("identification")), [of("identification", 307)]);
    // What all stages emit comes from all of them, as without commands.
    let output = with("summary,flow");
    assert_eq!(kinds(&output), [of("flow", 4), of("summary", 1)]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"pruner\""));
    let output = with("command,summary");
    assert_eq!(kinds(&output), [of("command", 307), of("summary", 1)]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("\"pruner\""));
}

#[test]
fn a_kind_that_a_later_stage_consumes_is_missed_aloud() {
    let folder = tempfile::tempdir().unwrap();
    let output = over_captures(folder.path(), "record,command");
    assert_eq!(kinds(&output), [of("command", 307)]);
    assert!(stderr(&output).contains("no `record` comes out"), "{}", stderr(&output));
}

#[test]
fn saved_streams_go_on_to_the_kind() {
    let folder = tempfile::tempdir().unwrap();
    let mut save = command(folder.path(), &["--gateway", GATEWAY, "--kind", "record"]);
    save.arg(root().join(example("test.pcap"))).args(["--set", "record-sizer.save=records.frames"]);
    assert_eq!(kinds(&run(&mut save)), [of("record", 1970)]);
    let from = |kinds: &str| run(&mut command(folder.path(), &["--from", "records.frames", "--kind", kinds]));
    assert_eq!(kinds(&from("command")), [of("command", 307)]);
    assert_eq!(kinds(&from("flow")), [of("flow", 4)]);
    assert_eq!(kinds(&from("record")), [of("record", 1970)]);
}

#[test]
fn saves_of_later_stages_are_made_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let model = root().join(example("model.toml"));
    let mut save = command(folder.path(), &["--gateway", GATEWAY, "--kind", "flow"]);
    save.arg(root().join(example("test.pcap"))).args(["--set", "decomposer.save=answers.frames"]);
    let output = run(save.arg("--model").arg(model));
    assert_eq!(kinds(&output), [of("flow", 4)]);
    assert!(folder.path().join("answers.frames").exists());
}

#[test]
fn a_stream_of_some_kinds_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let answers = |input: &Path| {
        let mut command = command(folder.path(), &["--kind", "identification", "--gateway", GATEWAY]);
        let output = run(command.arg(input).arg("--model").arg(root().join(example("model.toml"))));
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    let of_capture = answers(&root().join(example("test.pcap")));
    for kind in ["record", "command", "segments", "packets"] {
        let stream = folder.path().join(format!("{kind}.frames"));
        let mut command = sizeleak("run --kind");
        command
            .current_dir(folder.path())
            .args([kind, "--gateway", GATEWAY, "-o"])
            .arg(&stream)
            .arg(root().join(example("test.pcap")));
        assert!(run(&mut command).status.success());
        let shown = run(sizeleak("frames --format ndjson --kind").arg(kind).arg(&stream));
        assert!(shown.status.success(), "{kind}: {}", stderr(&shown));
        assert_eq!(answers(&stream), of_capture, "{kind}");
    }
}
