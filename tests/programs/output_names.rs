//! The name of an output chooses its format, and nothing is written under a name that says something else.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout};
use support::transcript::Transcript;

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

#[test]
fn run_and_frames_write_what_the_name_says() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(run(folder.path(), "--set pruner.save=saved.frames --format csv").status.success());
    let run = |arguments: &str| run(folder.path(), &format!("--from saved.frames {arguments}"));
    for (name, format) in [
        ("x.csv", "csv"),
        ("x.ndjson", "ndjson"),
        ("x.jsonl", "ndjson"),
        ("x.json", "json"),
        ("x.PARQUET", "parquet"),
        ("x.frames", "frames"),
        ("x.txt", "table"),
    ] {
        assert!(run(&format!("--format {format} -o named")).status.success());
        for flag in ["-o", "-w"] {
            let output = run(&format!("{flag} {name}"));
            assert!(output.status.success(), "{}", stderr(&output));
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
    assert!(stdout(&mut within(folder.path(), "frames x.frames")) == read("y.txt"));
}

#[test]
fn names_that_nothing_can_be_written_under_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = root().join("pipeline.toml").display().to_string();
    let mut said = Transcript::of_folder(root(), "[root]");
    for arguments in [
        format!("run {pipeline} --format csv -o x.parquet"),
        "frames - --format table -o x.json".to_owned(),
        format!("run {pipeline} -o x.svg"),
        format!("run {pipeline} -o x.png"),
        format!("run {pipeline} -o x.html"),
        format!("run {pipeline} -o x.parquet.gz"),
        "plot /dev/null -o x.jpg".to_owned(),
    ] {
        assert_eq!(said.run(&mut within(folder.path(), &arguments)).status.code(), Some(2), "{arguments}");
    }
    let traffic = format!(
        "examples/home/test.pcap --labels {} --model {} --gateway {GATEWAY} -q",
        example("test.csv"),
        example("model.toml")
    );
    for arguments in [
        format!("evaluate {traffic} -o x.xlsx"),
        format!("evaluate {traffic} --format=json -o x.csv"),
        format!("evaluate standard pruner.mode=none {traffic} -o x.parquet"),
    ] {
        assert_eq!(said.run(&mut sizeleak(&arguments)).status.code(), Some(2), "{arguments}");
    }
    said.assert_shown("refused-output-names");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn text_is_compressed_where_the_name_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| fs::read(folder.path().join(name)).unwrap();
    for name in ["x.csv", "x.csv.gz", "x.csv.zst"] {
        assert!(run(folder.path(), &format!("-o {name}")).status.success());
    }
    let mut unpacked = Vec::new();
    // One stream, which readers of a single one read whole.
    flate2::read::GzDecoder::new(&*file("x.csv.gz")).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == file("x.csv") && zstd::decode_all(&*file("x.csv.zst")).unwrap() == unpacked);
    let model = example("model.toml");
    for name in ["a.json", "a.json.gz"] {
        let path = folder.path().join(name);
        assert!(sizeleak(&format!("audit --model {model} -o {}", path.display())).output().unwrap().status.success());
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*file("a.json.gz")).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == file("a.json"));
}

#[test]
fn reports_are_csv_and_markdown_where_the_name_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let written = |arguments: &str, name: &str| {
        let path = folder.path().join(name);
        let output = sizeleak(&format!("{arguments} -o {}", path.display())).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        fs::read_to_string(path).unwrap()
    };
    let model = example("model.toml");
    let audit = written(&format!("audit --model {model}"), "audit.csv");
    assert!(audit.starts_with("figure,value\nschema,1\n") && audit.contains("\nby_size.command.named,0.6"), "{audit}");
    let audit = written(&format!("audit --model {model}"), "audit.md");
    assert!(audit.contains("\n| by size, V | 62.1 % | 98.4 % | 78.3 % |\n"), "{audit}");
    let curve = written(&format!("pad --model {model}"), "curve.csv");
    assert!(curve.starts_with("policy,added_bytes,") && curve.lines().count() > 20, "{curve}");
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
    let json = evaluate("--format json").stdout;
    assert!(json.starts_with(b"{"));
    assert!(evaluate(&format!("-o {}", file("x.json").display())).status.success());
    assert!(fs::read(file("x.json")).unwrap() == json);

    let compare =
        |more: &str| sizeleak(&format!("evaluate standard pruner.mode=none {traffic} {more}")).output().unwrap();
    assert!(compare(&format!("-o {}", file("x.csv").display())).status.success());
    assert!(fs::read(file("x.csv")).unwrap() == compare("--format csv").stdout);
}
