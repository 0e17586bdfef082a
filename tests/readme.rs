//! The commands of the README and of the guide run unchanged, one block after another, and print what is shown there.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod programs;
mod tool;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use programs::root;

/// Lines that contain one of these cannot be run here: they need captures and interfaces that only the reader has.
const NOT_HERE: [&str; 3] = ["archive/", "eth1", "cargo test"];

/// A block of code, with the language it is marked as.
struct Block {
    language: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut parts = document.split("```");
    parts.next();
    let mut blocks = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, text) = block.split_once('\n').unwrap();
        blocks.push(Block { language: language.to_owned(), text: text.to_owned() });
    }
    blocks
}

/// A block of commands as it runs here: instead of building, it uses the programs that Cargo has built.
fn script(block: &str) -> String {
    let line = |line: &str| {
        let line = line.replace("cargo run --release --", "sizeleak");
        if NOT_HERE.iter().any(|words| line.contains(words)) { String::new() } else { line + "\n" }
    };
    block.lines().map(line).collect()
}

/// Copies the files that the commands read, since they also write files.
fn copy(to: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("-R").args(["examples", "pipeline.toml"].map(|name| root().join(name))).arg(to);
    assert!(copy.status().unwrap().success());
}

/// Runs a script; returns all that it printed, and the folder that it ended in.
fn run(script: &str, folder: &Path) -> (String, PathBuf) {
    let programs = Path::new(env!("CARGO_BIN_EXE_sizeleak")).parent().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&path))).unwrap();
    let end = tempfile::NamedTempFile::new().unwrap();
    // Not the user's own cache.
    let cache = tempfile::tempdir().unwrap();
    let whole = format!("exec 2>&1\nset -e\n{script}pwd > {}\n", end.path().display());
    let mut shell = Command::new("sh");
    let output = shell
        .args(["-c", &whole])
        .env("PATH", path)
        .env("SIZELEAK_CACHE_DIR", cache.path())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{text}");
    (text, fs::read_to_string(end.path()).unwrap().trim_end().into())
}

/// Checks that the lines shown are printed, in this order; `…` stands for any number of others.
fn assert_shows(printed: &str, shown: &str) {
    let mut lines = printed.lines().map(str::trim_end);
    for wanted in shown.lines().map(str::trim_end).filter(|line| *line != "…" && !line.is_empty()) {
        assert!(lines.any(|line| line == wanted), "not printed, or not there: {wanted}\n{printed}");
    }
}

/// Runs the commands of a document, and compares what they print with the text blocks behind them.
fn check(test: &str, document: &str) {
    if !tool::are_here(test, &["sh", "cp", "jq"]) || !tool::python_has(test, "msgpack") {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    copy(temporary.path());
    let (mut folder, mut printed) = (temporary.path().to_owned(), None);
    let (mut ran, mut compared) = (0, 0);
    for Block { language, text } in blocks(&fs::read_to_string(root().join(document)).unwrap()) {
        match (language.as_str(), printed.take()) {
            ("sh", _) => {
                let (output, end) = run(&script(&text), &folder);
                ran += 1;
                (folder, printed) = (end, Some(output));
            }
            ("text", Some(output)) => {
                assert_shows(&output, &text);
                compared += 1;
            }
            _ => {}
        }
    }
    assert!(ran >= 4 && compared >= 2, "{document}: {ran} blocks were run, {compared} compared");
}

#[test]
fn the_commands_of_the_readme_print_what_it_shows() {
    check("the_commands_of_the_readme_print_what_it_shows", "README.md");
}

#[test]
fn the_commands_of_the_guide_print_what_it_shows() {
    check("the_commands_of_the_guide_print_what_it_shows", "docs/guide.md");
}

#[test]
#[should_panic(expected = "not printed")]
fn a_line_that_is_not_printed_fails_the_test() {
    assert_shows("one\ntwo\nthree\n", "one\n…\ntwo two\n");
}
