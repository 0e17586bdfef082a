//! The name of an output chooses its format, and nothing is written under a name that says something else.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout};

fn within(folder: &Path, arguments: &str) -> Command {
    let mut command = sizeleak(arguments);
    command.current_dir(folder);
    command
}

/// The bundled pipeline, run in a folder.
fn run(folder: &Path, arguments: &str) -> Output {
    let pipeline = root().join("pipeline.toml");
    within(folder, &format!("run {} --quiet {arguments}", pipeline.display())).output().unwrap()
}

#[track_caller]
fn assert_refused(output: &Output, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for word in words {
        assert!(said.contains(word), "no {word:?} in: {said}");
    }
}

#[test]
fn run_and_frames_write_what_the_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    for (name, format) in [
        ("x.csv", "csv"),
        ("x.ndjson", "ndjson"),
        ("x.jsonl", "ndjson"),
        ("x.json", "ndjson"),
        ("x.PARQUET", "parquet"),
        ("x.frames", "frames"),
        ("x.txt", "table"),
    ] {
        for flag in ["-o", "-w"] {
            let output = run(folder.path(), &format!("{flag} {name}"));
            assert!(output.status.success(), "{}", stderr(&output));
            let named = run(folder.path(), &format!("--format {format} -o named"));
            assert!(named.status.success());
            // Times of a run are in its frames.
            let is_same = read(name) == read("named") || name == "x.frames";
            assert!(is_same, "{name}");
        }
    }
    assert!(read("x.frames").starts_with(b"\x81\xa5hello"));
    let frames = |arguments: &str| within(folder.path(), &format!("frames x.frames {arguments}")).output().unwrap();
    for name in ["y.csv", "y.parquet"] {
        let written = frames(&format!("--kind identification -o {name}"));
        assert!(written.status.success(), "{}", stderr(&written));
    }
    assert!(read("y.csv") == read("x.csv"));
    assert!(frames("-o y.ndjson").status.success());
    assert!(read("y.ndjson") == read("x.ndjson"));
    assert!(frames("-o y.txt").stdout.is_empty());
    assert!(stdout(&mut within(folder.path(), "frames -r x.frames")) == read("y.txt"));
}

#[test]
fn a_name_that_contradicts_the_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["`--format csv` contradicts the name x.parquet"];
    assert_refused(&run(folder.path(), "--format csv -o x.parquet"), &words);
    assert_refused(&within(folder.path(), "frames - --format table -o x.json").output().unwrap(), &["contradicts"]);
    assert!(run(folder.path(), "--format ndjson -o x.json").status.success());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["x.json"]);
}

#[test]
fn pictures_and_compressed_files_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.svg", "x.png", "x.pdf"] {
        let words = ["write `-o x.frames`, then `sizeleak plot x.frames -o x.svg`"];
        assert_refused(&run(folder.path(), &format!("-o {name}")), &words);
    }
    assert_refused(&run(folder.path(), "-o x.csv.gz"), &["x.csv.gz would not be compressed"]);
    // `plot` may learn to write them; what it writes is then what the name says.
    for name in ["x.png", "x.pdf"] {
        let plotted = within(folder.path(), &format!("plot /dev/null -o {name}")).output().unwrap();
        if plotted.status.code() == Some(2) {
            assert_refused(&plotted, &["`-o x.svg`", "rsvg-convert -f "]);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn figures_are_written_as_the_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let traffic = format!(
        "{} --labels {} --model {} --gateway {GATEWAY} -q",
        example("test.pcap"),
        example("test.csv"),
        example("model.toml")
    );
    let evaluate = |more: &str| sizeleak(&format!("evaluate {traffic} {more}")).output().unwrap();
    let json = evaluate("--json").stdout;
    assert!(json.starts_with(b"{"));
    assert!(json == evaluate("--format json").stdout);
    assert!(evaluate(&format!("-o {}", file("x.json").display())).status.success());
    assert!(fs::read(file("x.json")).unwrap() == json);
    assert_refused(&evaluate("-o x.csv"), &["does not write csv", "it writes table, json"]);
    assert_refused(&evaluate("--json -o x.csv"), &["contradicts"]);

    let compare =
        |more: &str| sizeleak(&format!("compare standard pruner.mode=none {traffic} {more}")).output().unwrap();
    assert!(compare(&format!("-o {}", file("x.csv").display())).status.success());
    assert!(fs::read(file("x.csv")).unwrap() == compare("--format csv").stdout);
    assert_refused(&compare("-o x.parquet"), &["does not write parquet"]);
}

#[test]
fn the_figures_of_the_paper_are_shown_only_where_they_are_asked_for() {
    let traffic = format!("{} --labels {} --gateway {GATEWAY} -q", example("test.pcap"), example("test.csv"));
    let model = example("model.toml");
    for command in [format!("evaluate --model {model}"), "evaluate --folds 3".to_owned()] {
        for json in ["", "--json"] {
            let shows = |more: &str| {
                let text = stdout(&mut sizeleak(&format!("{command} {traffic} {json} {more}")));
                String::from_utf8(text).unwrap().contains(if json.is_empty() { "98.4 %" } else { "\"paper\": {" })
            };
            assert_eq!((shows(""), shows("--published")), (false, true), "{command} {json}");
        }
    }
    let compared = format!("compare standard pruner.mode=paper {traffic} --model {model} --format json");
    let compared: serde_json::Value = serde_json::from_slice(&stdout(&mut sizeleak(&compared))).unwrap();
    assert!(compared["pipelines"][1]["evaluation"]["paper"].is_null(), "{compared}");
}

#[test]
fn reports_have_the_same_option_for_their_format() {
    let folder = tempfile::tempdir().unwrap();
    let print = |format: &str| {
        let mut list = within(folder.path(), &format!("cache list {format}"));
        stdout(list.arg("--cache-dir").arg(folder.path().join("cache")))
    };
    assert_eq!(print("--format json"), print("--json"));
    assert_ne!(print("--format json"), print("--format table"));
    for report in ["learn --help", "check-stage --help", "cache list --help", "evaluate --help"] {
        let help = String::from_utf8(stdout(&mut sizeleak(report))).unwrap();
        assert!(help.contains("--format <FORMAT>") && help.contains("--json"), "{report}");
    }
}
