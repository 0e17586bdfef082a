//! What programs print on stderr: for people or as JSON, at the selected verbosity, and a progress bar that is removed.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::programs::{GATEWAY, example, pipe, program, root, seven, sizeleak, stderr, with, write};

fn said(options: &str) -> String {
    let output = sizeleak(&format!("run pipeline.toml {options}")).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stderr(&output)
}

const NOTICE: &str = "epsilon-corrector: assumed at 2026-01-06T08:07:49.220509Z, flow F";

#[test]
fn verbosity_selects_the_messages() {
    let usual = said("");
    assert_eq!(usual, "sizeleak: flow 4, identification 307, session 4; notices: assumed 1 (-v prints each)\n");
    let verbose = said("-v");
    for line in
        [NOTICE, "capture: reads file=", "sizeleak: the model is read file=", "pruner: has ended frames_out=315"]
    {
        assert!(verbose.lines().any(|shown| shown.starts_with(line)), "no {line} in\n{verbose}");
    }
    assert!(verbose.ends_with("sizeleak: flow 4, identification 307, session 4; notices: assumed 1\n"), "{verbose}");
    assert!(!verbose.contains("configured") && !verbose.contains('\u{1b}'), "{verbose}");
    assert!(said("-vv --set pruner.keep=0.5").contains("pruner: configured options="));
    assert_eq!(said("--quiet"), "");
}

#[test]
fn json_messages_are_one_object_per_line() {
    let lines = said("-v --latency --log-format json");
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let notice = events.iter().find(|event| event["what"] == "assumed").unwrap();
    assert_eq!(
        (&notice["stage"], &notice["time_ns"]),
        (&"epsilon-corrector".into(), &1_767_686_869_220_509_000_i64.into())
    );
    assert!(
        notice["flow"].as_str().is_some_and(|flow| flow.starts_with('F'))
            && notice["bytes"] == 44
            && notice["level"] == "INFO",
        "{notice}"
    );
    assert_eq!(events.iter().filter(|event| event["message"] == "latency").count(), 7);
    let counted = events.iter().find(|event| event["stage"] == "sizeleak" && event["message"] != "latency").unwrap();
    assert_eq!(counted["message"], "flow 4, identification 307, session 4; notices: assumed 1");
}

#[test]
fn errors_are_json_too() {
    for mut command in
        [sizeleak("run no-such.toml --log-format json"), with("capture", "no-such.pcap --log-format json")]
    {
        let output = command.output().unwrap();
        let event: Value = serde_json::from_str(&stderr(&output)).unwrap();
        assert_eq!((output.status.code(), &event["level"]), (Some(1), &"ERROR".into()));
        assert!(event["message"].as_str().unwrap().starts_with("no-such."), "{event}");
    }
}

#[test]
fn program_of_a_pipe_prints_its_notices() {
    let mut commands = seven(&example("test.pcap"));
    commands[4].arg("-v");
    let output = &pipe(commands)[4];
    assert!(stderr(output).lines().any(|line| line.starts_with(NOTICE)), "{}", stderr(output));
    let usual = &pipe(seven(&example("test.pcap")))[4];
    assert_eq!(stderr(usual), "epsilon-corrector: notices: assumed 1 (-v prints each)\n");
}

/// A pipeline with so much output that it waits for its reader.
fn long(folder: &Path) -> PathBuf {
    let fifty: Vec<String> = (0..50).map(|_| root().join(example("test.pcap")).display().to_string()).collect();
    let text = format!(
        "[[stage]]\nrun = \"capture\"\nfiles = {fifty:?}\n[[stage]]\nname = \"mine\"\ncommand = [\"sh\", \
         \"-c\", \"echo I am \
         here >&2; exec cat\"]\n[[stage]]\nrun = \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n"
    );
    write(folder, "long.toml", text)
}

/// What a run writes on a terminal, up to at least this text.
fn on_terminal(awaited: &str, arguments: &str) -> String {
    let mut python = Command::new("python3");
    python.arg(root().join("tests/programs/messages/terminal.py")).arg(awaited).arg(program("sizeleak").get_program());
    let output = python.args(arguments.split_whitespace()).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What remains visible of a line after everything that was written over it, without colours.
fn seen(written: &str) -> Vec<String> {
    let line = |line: &str| {
        let line = line.trim_end_matches('\r').rsplit("\u{1b}[2K").next().unwrap_or_default();
        anstream::adapter::strip_str(line.rsplit('\r').next().unwrap_or_default()).to_string()
    };
    written.split('\n').map(line).collect()
}

#[test]
#[ignore = "second tier: needs python3"]
fn progress_bar_is_drawn_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let run = format!("run {} --format frames", long(folder.path()).display());
    let bar = " of 20.70 MiB, ";
    let written = on_terminal(bar, &format!("{run} --progress always"));
    assert!(written.contains(bar) && written.contains(" left"), "{written:?}");
    assert_eq!(
        seen(&written),
        ["mine: I am here", "sizeleak: flow 4, segments 166900; notices: clock 1 (-v prints each)", ""]
    );
    // By default there is no bar while rows go into a pipe, since they may appear on the same terminal; there is one
    // while they go into a file.
    for without in ["", "--progress never", "--progress always --quiet", "--progress always --log-format json"] {
        let written = on_terminal("here", &format!("{run} {without}"));
        assert!(!written.contains("MiB"), "{without}: {written:?}");
    }
    let file = folder.path().join("rows.frames");
    let written = on_terminal("here", &format!("{run} -o {}", file.display()));
    assert_eq!(
        seen(&written),
        ["mine: I am here", "sizeleak: flow 4, segments 166900; notices: clock 1 (-v prints each)", ""]
    );
}

#[test]
#[ignore = "second tier: needs python3"]
fn messages_are_coloured_only_on_a_terminal() {
    assert!(on_terminal("", "run pipeline.toml").contains("\u{1b}[1msizeleak:\u{1b}[0m flow 4,"));
    let folder = tempfile::tempdir().unwrap();
    let run = format!("run {} --format frames --progress never", long(folder.path()).display());
    assert!(on_terminal("here", &run).contains("\u{1b}[1mmine:\u{1b}[0m I am here"));
}
