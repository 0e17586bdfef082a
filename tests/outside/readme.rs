//! The commands of the README, of the guide, of the method and of the examples run unchanged, one block after another.
//! They print what is shown there, and leave the tree as it was.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::committed_files;
use support::programs;

use support::programs::root;

/// Lines that contain one of these cannot be run here: they need captures and interfaces that only the reader has.
/// Cargo is not run by a test.
const NOT_HERE: [&str; 4] = ["archive/", "eth1", "cargo test", "cargo run --release --example"];

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
        if NOT_HERE.iter().any(|words| line.contains(words)) {
            return String::new();
        }
        line.replace("cargo run --release -- ", "sizeleak ") + "\n"
    };
    block.lines().map(line).collect()
}

/// Copies the files that the commands read, since they also write files, into a repository of its own.
fn copy(to: &Path) {
    let mut copy = Command::new("cp");
    copy.arg("-R").args(["examples", "pipeline.toml", ".gitignore"].map(|name| root().join(name))).arg(to);
    assert!(copy.status().unwrap().success());
    committed_files::add_all(to);
}

/// Runs a script; returns all that it printed, and the folder that it ended in.
fn run(script: &str, folder: &Path) -> (String, PathBuf) {
    let programs = Path::new(env!("CARGO_BIN_EXE_sizeleak")).parent().unwrap();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([programs.to_owned()].into_iter().chain(env::split_paths(&path))).unwrap();
    let end = tempfile::NamedTempFile::new().unwrap();
    let whole = format!("exec 2>&1\nset -e\n{script}pwd > {}\n", end.path().display());
    let mut shell = Command::new("sh");
    let output =
        shell.args(["-c", &whole]).env("PATH", path).current_dir(folder).stdin(Stdio::null()).output().unwrap();
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

/// How many blocks of a document were run, and how many were compared with what they print.
struct Checked {
    ran: usize,
    compared: usize,
}

/// Runs the commands of a document, the first of them in `start`, compares what they print with the text blocks behind
/// them, and checks that they leave the tree as it was.
fn check(document: &str, start: &str) -> Checked {
    let temporary = tempfile::tempdir().unwrap();
    let tree = temporary.path();
    copy(tree);
    let (mut folder, mut printed) = (tree.join(start), None);
    let mut checked = Checked { ran: 0, compared: 0 };
    for Block { language, text } in blocks(&fs::read_to_string(root().join(document)).unwrap()) {
        match (language.as_str(), printed.take()) {
            ("sh", _) => {
                let (output, end) = run(&script(&text), &folder);
                checked.ran += 1;
                (folder, printed) = (end, Some(output));
            }
            ("text", Some(output)) => {
                assert_shows(&output, &text);
                checked.compared += 1;
            }
            _ => {}
        }
    }
    assert_eq!(committed_files::changes(tree), Vec::<String>::new(), "{document} changes the tree");
    committed_files::assert_home_is_described(tree);
    checked
}

#[test]
#[ignore = "second tier: needs jq, git and python3 with msgpack"]
fn the_commands_of_the_readme_print_what_it_shows_and_leave_the_tree_as_it_was() {
    let Checked { ran, compared } = check("README.md", "");
    assert!(ran >= 4 && compared >= 2, "{ran} blocks were run, {compared} compared");
}

#[test]
#[ignore = "second tier: needs jq, git and python3 with msgpack"]
fn the_commands_of_the_guide_print_what_it_shows_and_leave_the_tree_as_it_was() {
    let Checked { ran, compared } = check("docs/guide.md", "");
    assert!(ran >= 6 && compared >= 4, "{ran} blocks were run, {compared} compared");
}

#[test]
#[ignore = "second tier: needs jq, git and python3 with msgpack"]
fn the_commands_of_the_method_print_what_it_shows_and_leave_the_tree_as_it_was() {
    let Checked { ran, compared } = check("docs/method.md", "");
    assert!(ran >= 1 && compared >= 1, "{ran} blocks were run, {compared} compared");
}

#[test]
#[ignore = "second tier: needs jq, git and python3 with msgpack"]
fn the_commands_of_the_examples_run_and_leave_the_tree_as_it_was() {
    for (document, start) in [("examples/home/README.md", ""), ("examples/segmenters/README.md", "examples/segmenters")]
    {
        let Checked { ran, .. } = check(document, start);
        assert_eq!(ran, 3, "{document}");
    }
}

#[test]
#[ignore = "second tier: needs git"]
fn a_file_outside_of_a_results_folder_is_a_change_of_the_tree() {
    let temporary = tempfile::tempdir().unwrap();
    let tree = temporary.path();
    copy(tree);
    let home = tree.join("examples/home");
    fs::create_dir_all(home.join("results")).unwrap();
    for ignored in ["results/commands.frames", "results/timeline.svg"] {
        programs::write(&home, ignored, "");
    }
    assert_eq!(committed_files::changes(tree), Vec::<String>::new());
    programs::write(&home, "commands.frames", "");
    programs::write(tree, "pipeline.toml", "");
    assert_eq!(committed_files::changes(tree), ["examples/home/commands.frames", "pipeline.toml"]);
    // A file of the user's own is none of the bundled ones.
    committed_files::assert_home_is_described(tree);
}

#[test]
#[should_panic(expected = "not printed")]
fn a_line_that_is_not_printed_fails_the_test() {
    assert_shows("one\ntwo\nthree\n", "one\n…\ntwo two\n");
}
