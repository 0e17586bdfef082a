//! `sizeleak check-stage`: stages that keep the contract pass, and broken rules are reported.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread;
use support::segmenters;

use serde_json::Value;
use support::programs::{self, GATEWAY, example, pipe, program, root, seven, sizeleak, stderr, write};

fn check(arguments: &[&str], command: &[String]) -> Output {
    programs::signals_end_programs();
    // With this variable Python does not buffer its output.
    sizeleak("check-stage").env_remove("PYTHONUNBUFFERED").args(arguments).arg("--").args(command).output().unwrap()
}

/// The names of the checks with this verdict, in order.
fn checks(output: &Output, verdict: &str) -> Vec<String> {
    let json: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)));
    let all = json["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == verdict);
    all.map(|check| check["check"].as_str().unwrap().to_owned()).collect()
}

fn assert_passes(arguments: &[&str], command: &[String]) {
    let output = check(&[arguments, &["--format=json"]].concat(), command);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{command:?}: {text}{}", stderr(&output));
    assert!(checks(&output, "failed").is_empty() && checks(&output, "advised").is_empty(), "{command:?}: {text}");
    assert!(checks(&output, "passed").len() >= if arguments.contains(&"nothing") { 10 } else { 32 }, "{text}");
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn all_seven_stages_pass() {
    let model = example("model.toml");
    let stages = [
        ("nothing", "capture", example("test.pcap")),
        ("packets", "flow-filter", format!("--gateway {GATEWAY} --allow-absent")),
        ("segments", "record-sizer", String::new()),
        ("record", "command-segmenter", String::new()),
        ("record", "command-segmenter", "--algorithm adaptive".to_owned()),
        ("command", "epsilon-corrector", format!("--model {model}")),
        ("correction", "decomposer", format!("--model {model}")),
        ("identification", "pruner", format!("--model {model}")),
    ];
    // They wait most of the time.
    thread::scope(|scope| {
        for (kind, stage, arguments) in stages {
            scope.spawn(move || {
                let path = program(stage).get_program().to_str().unwrap().to_owned();
                assert_passes(&["--kind", kind], &[vec![path, "--quiet".to_owned()], words(&arguments)].concat());
            });
        }
    });
}

#[test]
fn segmenter_in_rust_passes() {
    assert_passes(&[], &segmenters::rust());
    // Also with a stream that a user recorded.
    let folder = tempfile::tempdir().unwrap();
    let mut commands = seven(&example("test.pcap"));
    commands.truncate(3);
    let file = write(folder.path(), "records.frames", &pipe(commands)[2].stdout);
    assert_passes(&["--input", file.to_str().unwrap()], &segmenters::rust());
    let output = check(&["--input", file.to_str().unwrap(), "--kind", "command"], &segmenters::rust());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no frame of kind `command`"), "{}", stderr(&output));
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn stages_in_python_pass() {
    assert_passes(&[], &segmenters::python());
    let document = fs::read_to_string(root().join("docs/frames.md")).unwrap();
    let stage = document.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "long_records.py", stage);
    assert_passes(&[], &words(&format!("python3 {} 100", file.display())));
}

/// The segmenter in Python with one deliberate error.
fn misbehaving(folder: &Path, right: &str, wrong: &str) -> Vec<String> {
    let text = fs::read_to_string(segmenters::folder().join("burst.py")).unwrap();
    assert!(text.contains(right), "{right}");
    let file = write(folder, "burst.py", text.replace(right, wrong));
    words(&format!("python3 {} 40", file.display()))
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn every_broken_rule_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut unexpected = Vec::new();
    for (right, wrong, broken) in [
        ("body[\"upstream\"] + [body[\"stage\"]]", "body[\"upstream\"]", "hello"),
        ("elif kind != \"summary\"", "elif kind != \"summary\" and kind != \"session\"", "passing-on"),
        ("elif kind != \"summary\"", "elif kind in (\"flow\", \"session\", \"notice\")", "unknown-kinds large-values"),
        ("elif kind != \"summary\"", "elif kind not in (\"summary\", \"notice\")", "unknown-kinds"),
        ("rows + [own]", "[own]", "summary"),
        ("frames_in=own[\"frames_in\"] + 1", "frames_in=0", "counts"),
        ("\"end_ns\": end,", "\"end_ns\": end // 10**9,", "meaning times"),
        ("write(\"command\", command)", "write(\"command\", {**command, \"flow\": 1})", "meaning"),
        ("\"size\": size,", "\"size\": os.getpid(),", "repeatable"),
        ("write(kind, body)", "write(kind, body); print()", "whole"),
        ("record.get(key)", "record[key]", "encodings"),
        ("    known = last.get(flow)", "    known = last.get(flow) if sizes else {}[0]", "nulls"),
        ("def take(record):", "def take(record):\n    assert len(record) < 9", "unknown-fields"),
        ("17 << 20", "1 << 20", "large-values"),
        ("17 << 20", "1 << 40", "lying-length"),
        ("why, code = str(error), 3", "rows, code = [], 0", "no-input cut"),
        ("if hello: write(", "if False: write(", "no-input newer-schema"),
        ("emit_before(1 << 63)\nif code", "if code == 0: emit_before(1 << 63)\nif code", ""),
        ("body[\"schema\"] > 1", "body[\"schema\"] > 2", "newer-schema"),
        ("(kind == \"hello\") != (before is None) or", "", "second-hello"),
        (
            "if (kind == \"hello\") != (before is None) or before == \"summary\"",
            "if before != \"summary\" and (kind == \"hello\") != (before is None)",
            "behind-the-end",
        ),
        (
            "except Exception",
            "except ZeroDivisionError",
            "second-hello garbage lying-length wrong-type newer-schema behind-the-end",
        ),
        ("signal.SIGPIPE, signal.SIG_DFL", "signal.SIGPIPE, signal.SIG_IGN", "closed-stdout"),
        ("lambda *_: signal.signal(signal.SIGINT, signal.SIG_DFL)", "signal.SIG_DFL", "sigint"),
    ] {
        let output = check(&["--format=json"], &misbehaving(folder.path(), right, wrong));
        let failed = checks(&output, "failed");
        if failed != words(broken) || output.status.code() != Some(i32::from(!broken.is_empty())) {
            unexpected.push(format!("{wrong}: {} failed, not {broken}", failed.join(" ")));
        }
    }
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    // A broken `should` does not fail.
    for (right, wrong, advised) in [
        ("write(\"notice\", {", "str({", "cut-notice"),
        ("lambda *_: signal.signal(signal.SIGINT, signal.SIG_DFL)", "signal.SIG_IGN", "second-signal"),
        (
            "signal.SIGPIPE, signal.SIG_DFL)",
            "signal.SIGPIPE, signal.SIG_DFL); signal.signal(15, signal.SIG_IGN)",
            "second-signal",
        ),
    ] {
        let output = check(&["--format=json", "--timeout", "3s"], &misbehaving(folder.path(), right, wrong));
        assert_eq!((checks(&output, "advised"), output.status.code()), (words(advised), Some(0)), "{wrong}");
    }
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn missing_flush_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let command = misbehaving(folder.path(), "sys.stdout.flush()", "pass");
    let output = check(&["--format=json", "--timeout", "3s"], &command);
    assert!(checks(&output, "failed").contains(&"prompt".to_owned()), "{}", String::from_utf8_lossy(&output.stdout));
}
