//! What programs print on a terminal: messages in colours, and a progress bar that is removed.

use std::path::{Path, PathBuf};
use std::process::Command;

use support::programs::{GATEWAY, example, program, root, stderr, write};

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
