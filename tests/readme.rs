//! The commands of the README run as they stand, one block after another, and print what the README shows.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod programs;
mod tool;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use programs::root;

/// What stands in a block that cannot be run here: captures and interfaces that only the reader has.
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

/// What a block of commands comes to here: those of Cargo are the programs that Cargo has built.
fn script(block: &str) -> String {
    let line = |line: &str| {
        let line = line.replace("cargo run --release --", "sizeleak");
        if NOT_HERE.iter().any(|words| line.contains(words)) { String::new() } else { line + "\n" }
    };
    block.lines().map(line).collect()
}

/// A copy of what the README works on, since its commands write files.
fn copy(to: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("-R").args(["examples", "pipeline.toml"].map(|name| root().join(name))).arg(to);
    assert!(copy.status().unwrap().success());
}

/// Runs a script; gives all that it printed, and where it ended.
fn run(script: &str, folder: &Path) -> (String, PathBuf) {
    let programs = Path::new(env!("CARGO_BIN_EXE_sizeleak")).parent().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&path))).unwrap();
    let told = tempfile::NamedTempFile::new().unwrap();
    // Not the user's.
    let cache = tempfile::tempdir().unwrap();
    let whole = format!("exec 2>&1\nset -e\n{script}pwd > {}\n", told.path().display());
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
    (text, fs::read_to_string(told.path()).unwrap().trim_end().into())
}

/// Checks that the lines shown are printed, in this order; `…` stands for any number of others.
fn assert_shows(printed: &str, shown: &str) {
    let mut lines = printed.lines().map(str::trim_end);
    for wanted in shown.lines().map(str::trim_end).filter(|line| *line != "…" && !line.is_empty()) {
        assert!(lines.any(|line| line == wanted), "not printed, or not there: {wanted}\n{printed}");
    }
}

#[test]
fn its_commands_print_what_it_shows() {
    let test = "its_commands_print_what_it_shows";
    if !tool::are_here(test, &["sh", "cp", "jq"]) || !tool::python_has(test, "msgpack") {
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    copy(temporary.path());
    let (mut folder, mut printed) = (temporary.path().to_owned(), None);
    let (mut ran, mut compared) = (0, 0);
    for Block { language, text } in blocks(&fs::read_to_string(root().join("README.md")).unwrap()) {
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
    assert!(ran >= 5 && compared >= 3, "{ran} blocks were run, {compared} compared");
}

#[test]
#[should_panic(expected = "not printed")]
fn what_is_not_printed_is_found() {
    assert_shows("one\ntwo\nthree\n", "one\n…\ntwo two\n");
}
