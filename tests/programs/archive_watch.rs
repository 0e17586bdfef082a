//! Archives that are watched, whose captures arrive and grow, and calls that wait or are stopped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::archive_home::{Archive, answers, archive, said, status};
use support::programs::{GATEWAY, interrupt, wait_for, write};

/// The verdicts of the files, by name.
fn verdicts(out: &Path) -> Vec<(String, String)> {
    let files = status(out)["files"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let name = |file: &Value| Path::new(&text(&file["path"])).file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| (name(file), text(&file["verdict"]))).collect()
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    wait_for(|| if is_so() { Ok(()) } else { Err(format!("not so in the end: {what}")) });
}

fn set_modified(path: &Path, time: SystemTime) {
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

fn long_ago() -> SystemTime {
    SystemTime::now() - Duration::from_hours(1)
}

/// The bundled home in four captures that follow each other: `a` to `d`.
struct Captures {
    homes: Archive,
    folder: PathBuf,
}

impl Captures {
    const SOURCES: [(&str, &str); 4] = [("a", "oldest"), ("b", "old.gz"), ("c", "home.pcap.1"), ("d", "home.pcap")];

    fn new(names: &[&str]) -> Self {
        let homes = Archive::new();
        let folder = homes.out("hall");
        fs::create_dir(&folder).unwrap();
        let captures = Self { homes, folder };
        for name in names {
            captures.add(name);
        }
        captures
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn content(&self, name: &str) -> Vec<u8> {
        let (_, source) = Self::SOURCES.into_iter().find(|(known, _)| *known == name).unwrap();
        fs::read(self.homes.point("hall").join(source)).unwrap()
    }

    /// Adds a capture that has settled.
    fn add(&self, name: &str) {
        // As programs do it that copy captures.
        let path = write(&self.folder, &format!(".{name}"), self.content(name));
        set_modified(&path, long_ago());
        fs::rename(path, self.path(name)).unwrap();
    }

    fn out(&self, name: &str) -> PathBuf {
        self.homes.out(name)
    }

    fn archive(&self, out: &str) -> Command {
        archive(&self.folder, &self.out(out), GATEWAY)
    }

    /// The answers of a call that knows nothing.
    fn fresh(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let out = self.out("fresh");
        said(&mut self.archive("fresh"), 0);
        let answers = answers(&out);
        fs::remove_dir_all(out).unwrap();
        answers
    }

    /// Starts to watch; stderr goes to the file `log`.
    fn watch(&self, settle: &str) -> Child {
        let mut command = self.archive("out");
        command
            .args(["--watch", "--every", "100ms", "--settle", settle])
            .stdin(Stdio::null())
            .stderr(File::create(self.out("log")).unwrap())
            .spawn()
            .unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.out("log")).unwrap()
    }

    fn until_said(&self, words: &str) {
        until(&format!("said: {words}"), || self.log().contains(words));
    }
}

#[test]
fn watched_captures_give_what_one_call_gives() {
    let captures = Captures::new(&[]);
    let mut watch = captures.watch("1m");
    captures.until_said("looks for new captures");
    for name in ["d", "a"] {
        captures.add(name);
    }
    captures.until_said("2 of them captures), ");
    // It is still being written.
    write(&captures.folder, "c", &captures.content("c")[..1000]);
    captures.add("b");
    captures.until_said("3 of them captures, 1 still growing), ");
    fs::rename(captures.path("a"), captures.path("a.1")).unwrap();
    until("rotation renames a", || verdicts(&captures.out("out")).contains(&("a.1".to_owned(), "whole".to_owned())));
    let content = captures.content("c");
    fs::write(captures.path("c"), content).unwrap();
    set_modified(&captures.path("c"), long_ago());
    captures.until_said("4 of them captures), ");
    interrupt(&watch);
    assert_eq!(watch.wait().unwrap().code(), Some(130), "{}", captures.log());
    assert!(!captures.log().contains("archive:"), "{}", captures.log());
    let found = answers(&captures.out("out"));
    assert!(!found.is_empty() && found == captures.fresh(), "{}", captures.log());
}

#[test]
fn watching_names_damaged_files_once_and_ends_with_exit_code_1() {
    let captures = Captures::new(&["a"]);
    let whole = captures.content("c");
    let path = write(&captures.folder, "c", &whole[..whole.len() - 5]);
    set_modified(&path, long_ago());
    let mut watch = captures.watch("1m");
    captures.until_said("looks for new captures");
    captures.add("b");
    captures.until_said("3 of them captures");
    kill_process(Pid::from_child(&watch), Signal::TERM).unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(1), "{}", captures.log());
    assert_eq!(captures.log().matches("is cut at byte").count(), 1, "{}", captures.log());
}

#[test]
fn watching_goes_on_when_folders_come_back() {
    let captures = Captures::new(&["a"]);
    let mut watch = captures.watch("1m");
    captures.until_said("looks for new captures");
    fs::rename(&captures.folder, captures.out("away")).unwrap();
    captures.until_said("tried again every");
    fs::rename(captures.out("away"), &captures.folder).unwrap();
    captures.add("b");
    captures.until_said("2 of them captures");
    interrupt(&watch);
    assert_eq!(watch.wait().unwrap().code(), Some(130), "{}", captures.log());
    assert_eq!(captures.log().matches("tried again").count(), 1, "{}", captures.log());
}

#[test]
fn a_second_call_waits_if_asked_to() {
    let captures = Captures::new(&["a"]);
    said(&mut captures.archive("out"), 0);
    let lock = File::open(captures.out("out/.lock")).unwrap();
    lock.lock().unwrap();
    let mut command = captures.archive("out");
    let mut waiting = command.arg("--wait").stderr(File::create(captures.out("log")).unwrap()).spawn().unwrap();
    captures.until_said("waits for another `sizeleak archive`");
    assert!(waiting.try_wait().unwrap().is_none());
    let refused = said(&mut captures.archive("out"), 1);
    assert!(refused.contains("another `sizeleak archive` is writing to") && refused.contains("--wait"), "{refused}");
    lock.unlock().unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(0), "{}", captures.log());
}

#[test]
fn a_signal_ends_a_call_with_whole_results_that_the_next_one_completes() {
    let homes = Archive::new();
    let hall = homes.point("hall");
    let (out, fresh) = (homes.out("out"), homes.out("fresh"));
    let mut child = archive(&hall, &out, GATEWAY).stderr(Stdio::piped()).spawn().unwrap();
    until("it has begun", || out.join(".new").exists());
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!out.join(".new").exists(), "nothing is left half done");
    said(&mut archive(&hall, &out, GATEWAY), 0);
    said(&mut archive(&hall, &fresh, GATEWAY), 0);
    assert!(answers(&out) == answers(&fresh));
}
