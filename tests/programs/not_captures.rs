//! Files that stand in the place of those that are wanted are named as what they are, with what to do.

use std::path::Path;
use std::process::{Command, Output};
use support::programs;

use support::programs::{GATEWAY, example, feed, program, sizeleak, stderr, with, write};

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
     oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

const PAGE: &str = "\n<!doctype HTML>\n<html><head><title>Sign in</title></head></html>";

/// Files of both kinds, and the words that are to be said about them.
const STAND_INS: [(&str, &str, [&str; 2]); 2] =
    [("pointer", POINTER, ["a Git LFS pointer", "git lfs pull"]), ("page", PAGE, ["a web page", "download"])];

fn assert_says(output: &Output, name: &str, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(name) && words.iter().all(|word| said.contains(word)), "{name} {words:?}: {said}");
}

/// Gives each kind of stand-in to the command that `named` makes of its path.
fn assert_named(named: impl Fn(&Path) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, words) in STAND_INS {
        assert_says(&named(&write(folder.path(), name, content)).output().unwrap(), name, &words);
    }
}

#[test]
fn stand_in_of_a_capture_is_named() {
    assert_named(|file| {
        let mut command = program("capture");
        command.arg(file);
        command
    });
    assert_named(|file| {
        let mut command = sizeleak("run pipeline.toml --input");
        command.arg(file);
        command
    });
    assert_says(&feed(with("capture", "-"), POINTER.into()), "stdin", &["git lfs pull"]);
}

#[test]
fn stand_ins_in_a_folder_are_skipped_unless_they_are_named_like_captures() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "notes", POINTER);
    std::fs::copy(programs::root().join(example("test.pcap")), folder.path().join("good.pcap")).unwrap();
    let recursive = || with("capture", "--recursive").arg(folder.path()).output().unwrap();
    assert_eq!(recursive().status.code(), Some(0));
    write(folder.path(), "event.pcap", POINTER);
    assert_says(&recursive(), "event.pcap", &["git lfs pull"]);
}

#[test]
fn stand_in_of_a_model_is_named() {
    assert_named(|file| {
        let mut command = program("decomposer");
        command.arg("--model").arg(file);
        command
    });
}

#[test]
fn stand_in_of_labels_is_named() {
    assert_named(|file| {
        let mut command = sizeleak("learn --capture");
        command.arg(example("test.pcap")).args(["--gateway", GATEWAY, "-o", "/dev/null", "--labels"]).arg(file);
        command
    });
}

#[test]
fn stand_in_of_a_stream_is_named() {
    assert_named(|file| {
        let mut command = sizeleak("frames");
        command.arg(file);
        command
    });
    assert_named(|file| {
        let mut command = sizeleak("run pipeline.toml --from");
        command.arg(file);
        command
    });
    assert_says(&feed(program("record-sizer"), POINTER.into()), "", &["git lfs pull"]);
}

#[test]
fn empty_files_are_called_empty() {
    let folder = tempfile::tempdir().unwrap();
    let empty = write(folder.path(), "empty", "");
    let mut labels = sizeleak("learn --capture");
    labels.arg(example("test.pcap")).args(["--gateway", GATEWAY, "-o", "/dev/null", "--labels"]).arg(&empty);
    for mut command in [labels, {
        let mut capture = program("capture");
        capture.arg(&empty);
        capture
    }] {
        assert_says(&command.output().unwrap(), "empty", &["is empty"]);
    }
}
