//! Tests of `storage`.

use std::fs::{create_dir, hard_link, write};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;

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

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replacing_keeps_links_and_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink("model.toml", path("link.toml")).unwrap();
    symlink(path("link.toml"), path("second.toml")).unwrap();
    replace(&path("second.toml"), b"one").unwrap();
    assert_eq!(fs::read_to_string(path("model.toml")).unwrap(), "one", "a link to nothing is followed too");
    for mode in [0o640, 0o666, 0o400] {
        fs::set_permissions(path("model.toml"), Permissions::from_mode(mode)).unwrap();
        replace(&path("link.toml"), format!("{mode}").as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(path("model.toml")).unwrap(), format!("{mode}"));
        assert_eq!(path("model.toml").metadata().unwrap().permissions().mode() & 0o777, mode);
    }
    assert!(path("link.toml").is_symlink() && path("second.toml").is_symlink());
    assert_eq!(names(folder.path()), ["link.toml", "model.toml", "second.toml"], "no temporary file remains");
    symlink("circle", path("circle")).unwrap();
    let error = replace(&path("circle"), b"x").unwrap_err().to_string();
    assert!(error.ends_with("circle cannot be written: its links are a circle"), "{error}");
}

#[test]
fn output_that_is_not_kept_leaves_the_earlier_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    replace(&path, b"earlier").unwrap();
    let mut output = OutputFile::create(&path).unwrap();
    output.writer().unwrap().write_all(b"a part").unwrap();
    drop(output);
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"earlier".to_vec(), vec!["out.csv".to_owned()]));
    assert_eq!(OutputFile::create(&path).unwrap().keep_partial().unwrap(), None, "nothing was written");
    let mut output = OutputFile::create(&path).unwrap();
    output.writer().unwrap().write_all(b"a part").unwrap();
    assert_eq!(output.keep_partial().unwrap(), Some(folder.path().join("out.csv.partial")));
    assert_eq!(fs::read(&path).unwrap(), b"earlier");
    assert_eq!(fs::read(folder.path().join("out.csv.partial")).unwrap(), b"a part");
    assert_eq!(names(folder.path()), ["out.csv", "out.csv.partial"]);
}

#[test]
fn devices_and_pipes_are_written_to_and_not_replaced() {
    replace(Path::new("/dev/null"), b"gone").unwrap();
    assert!(!Path::new("/dev/null").is_file());
    let full = replace(Path::new("/dev/full"), b"x").unwrap_err().to_string();
    assert!(full.starts_with("/dev/full cannot be written: No space left"), "{full}");
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    replace(&fifo, b"through the pipe").unwrap();
    assert_eq!(reader.join().unwrap(), b"through the pipe");
    assert_eq!(names(folder.path()), ["fifo"]);
}

#[test]
fn numbered_descriptor_of_a_file_is_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, "before ").unwrap();
    let mut open = File::options().append(true).read(true).open(&path).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    replace(Path::new(&format!("/dev/fd/{number}")), b"after").unwrap();
    let mut text = String::new();
    std::io::Seek::rewind(&mut open).unwrap();
    open.read_to_string(&mut text).unwrap();
    assert_eq!(text, "before after", "the file behind the descriptor is still the same");
}

#[test]
fn faults_are_sentences_that_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("file"), "").unwrap();
    for (name, fault) in [
        ("no/model.toml", "there is no such folder"),
        ("file/model.toml", "a part of its path is not a folder"),
        (".", "it is a folder"),
    ] {
        let error = replace(&path(name), b"x").unwrap_err().to_string();
        assert_eq!(error, format!("{} cannot be written: {fault}", path(name).display()));
    }
}

#[test]
fn a_rename_that_fails_leaves_the_earlier_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let mut output = OutputFile::create(&target).unwrap();
    output.writer().unwrap().write_all(b"new").unwrap();
    // Something else has taken its name meanwhile.
    fs::create_dir(&target).unwrap();
    assert!(output.keep().unwrap_err().to_string().ends_with("it is a folder"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(OutputFile::create(&target.join("no/x")).unwrap_err().to_string().ends_with("there is no such folder"));
}

#[test]
fn longest_name_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("ä".repeat(127) + "x");
    for _ in 0..3 {
        OutputFile::create(&target).unwrap().keep().unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
