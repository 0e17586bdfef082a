//! Files that stand in the place of those that are wanted are named as what they are, with what to do.

use std::path::Path;
use std::process::Command;

use support::programs::{GATEWAY, example, feed, program, root, sizeleak, with, write};
use support::transcript::Transcript;

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
     oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

const PAGE: &str = "\n<!doctype HTML>\n<html><head><title>Sign in</title></head></html>";

/// Commands that take a file in each of the ways there are.
fn commands(file: &Path) -> [Command; 6] {
    let learn = format!("learn {} --gateway {GATEWAY} -o /dev/null --labels", example("test.pcap"));
    let given = |mut command: Command| {
        command.arg(file);
        command
    };
    [
        program("capture"),
        sizeleak("run pipeline.toml"),
        with("decomposer", "--model"),
        sizeleak(&learn),
        sizeleak("frames"),
        sizeleak("run pipeline.toml --from"),
    ]
    .map(given)
}

#[test]
fn stand_ins_and_empty_files_are_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Transcript::of_folder(folder.path(), "[folder]");
    for (name, content) in [("pointer", POINTER), ("page", PAGE), ("empty", "")] {
        let file = write(folder.path(), name, content);
        for mut command in commands(&file) {
            let output = command.output().unwrap();
            said.add_fault(&command, &output);
            assert!(matches!(output.status.code(), Some(1 | 3)), "{command:?}");
        }
    }
    for command in [with("capture", "-"), program("record-sizer")] {
        let line = Command::new(command.get_program());
        said.add_fault(&line, &feed(command, POINTER.into()));
    }
    said.assert_shown("not-captures");
}

#[test]
fn stand_ins_in_a_folder_are_skipped_unless_they_are_named_like_captures() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "notes", POINTER);
    std::fs::copy(root().join(example("test.pcap")), folder.path().join("good.pcap")).unwrap();
    let recursive = || with("capture", "--recursive").arg(folder.path()).output().unwrap();
    assert_eq!(recursive().status.code(), Some(0));
    write(folder.path(), "event.pcap", POINTER);
    let output = recursive();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("event.pcap"), "{output:?}");
}
