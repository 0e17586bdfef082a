//! Tests of `output_file`.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::thread;

use super::*;

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
    for durability in [Durability::Lasting, Durability::Disposable] {
        let mut pending = PendingFile::create(&target, durability).unwrap();
        pending.file().write_all(b"new").unwrap();
        // Something else has taken its name meanwhile.
        fs::create_dir(&target).unwrap();
        assert_eq!(pending.keep().unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::remove_dir(&target).unwrap();
    }
    assert_eq!(PendingFile::create(&target.join("x"), Durability::Lasting).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn longest_name_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("ä".repeat(127) + "x");
    for _ in 0..3 {
        PendingFile::create(&target, Durability::Lasting).unwrap().keep().unwrap();
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
