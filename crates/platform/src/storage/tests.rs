//! Tests of `storage`.

use std::fs::{create_dir, hard_link, write};
use std::os::unix::fs::symlink;

use tempfile::{TempDir, tempdir};

use super::*;

/// A folder with a capture, a second name and a link of it, and a model.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(path("a.pcap"), "a capture").unwrap();
    write(path("model.toml"), "a model").unwrap();
    hard_link(path("a.pcap"), path("hard.pcap")).unwrap();
    symlink("a.pcap", path("soft.pcap")).unwrap();
    create_dir(path("below")).unwrap();
    hard_link(path("a.pcap"), path("below/b.pcap")).unwrap();
    folder
}

fn check(folder: &TempDir, inputs: &[&str], outputs: &[&str]) -> Result<(), FileConflict> {
    let mut files = RunFiles::new();
    for name in inputs {
        files.reads("the capture", &folder.path().join(name));
    }
    for name in outputs {
        files.writes("`-o`", &folder.path().join(name));
    }
    files.check()
}

fn says(conflict: &Result<(), FileConflict>, text: &str) -> bool {
    conflict.as_ref().is_err_and(|conflict| conflict.to_string().contains(text))
}

#[test]
fn output_is_never_an_input_under_any_name() {
    let folder = folder();
    for output in ["a.pcap", "hard.pcap", "soft.pcap", "below/../a.pcap", "below/b.pcap"] {
        for input in ["a.pcap", "hard.pcap", "soft.pcap", "below", "."] {
            let conflict = check(&folder, &["model.toml", input], &["new", output]);
            assert!(says(&conflict, ", which this run reads"), "{input} and {output}: {conflict:?}");
        }
        assert_eq!(check(&folder, &["model.toml"], &[output]), Ok(()));
    }
    for output in ["new", "no/such/folder", "model.toml.new"] {
        assert_eq!(check(&folder, &["a.pcap", "model.toml", "below", "missing"], &[output]), Ok(()));
    }
    let error = check(&folder, &["model.toml"], &["model.toml"]).unwrap_err().to_string();
    let path = folder.path().join("model.toml");
    assert_eq!(error, format!("`-o` {} is the capture, which this run reads: name another file", path.display()));
    let error = check(&folder, &["below"], &["soft.pcap"]).unwrap_err().to_string();
    assert!(error.contains("soft.pcap is the capture ") && error.contains("below/b.pcap, which"), "{error}");
}

#[test]
fn output_is_never_among_the_files_of_a_folder_that_is_read() {
    let folder = folder();
    symlink("below", folder.path().join("link")).unwrap();
    for output in ["below/new", "link/new", "link/../below/new"] {
        for input in ["below", "link", "."] {
            let conflict = check(&folder, &[input], &[output]);
            assert!(says(&conflict, "whose files this run reads"), "{input} and {output}: {conflict:?}");
        }
    }
    let error = check(&folder, &["below"], &["below/new"]).unwrap_err().to_string();
    assert!(error.ends_with("below, whose files this run reads: name a file elsewhere"), "{error}");
}

#[test]
fn output_that_is_not_whole_spares_inputs_too() {
    let folder = folder();
    symlink("a.pcap", folder.path().join("out.partial")).unwrap();
    assert!(check(&folder, &["a.pcap"], &["out"]).is_err());
}

#[test]
fn two_outputs_are_two_files() {
    let folder = folder();
    for (one, other) in [("a.pcap", "a.pcap"), ("a.pcap", "soft.pcap"), ("new", "new"), ("new", "below/../new")] {
        let conflict = check(&folder, &[], &["model.toml", one, other]);
        assert!(says(&conflict, "are the same file"), "{one} and {other}: {conflict:?}");
    }
    // Each gets its own file in place of the shared one; and nothing is lost by writing to a device twice.
    assert_eq!(check(&folder, &[], &["a.pcap", "hard.pcap"]), Ok(()));
    assert_eq!(check(&folder, &["/dev/null"], &["/dev/null", "/dev/null"]), Ok(()));
}
