//! Archives whose captures arrive, grow, and are chosen by patterns and times.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::archive_home::{Archive, answers, archive, said, status};
use support::programs::{GATEWAY, interrupt, sizeleak, stdout, write};

/// The longest wait for something that happens in a moment.
const PATIENCE: Duration = Duration::from_mins(1);

/// The verdicts of the files, by name.
fn verdicts(out: &Path) -> Vec<(String, String)> {
    let files = status(out)["files"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let name = |file: &Value| Path::new(&text(&file["path"])).file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|file| (name(file), text(&file["verdict"]))).collect()
}

/// Files that have one of two verdicts.
fn expected(names: &[(&str, &str)]) -> Vec<(String, String)> {
    names.iter().map(|(name, verdict)| ((*name).to_owned(), (*verdict).to_owned())).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
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
    fn fresh(&self, more: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
        let out = self.out("fresh");
        said(self.archive("fresh").args(more), 0);
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
    assert!(!found.is_empty() && found == captures.fresh(&[]), "{}", captures.log());
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
fn growing_captures_are_left_for_a_later_call_and_are_no_failure() {
    let captures = Captures::new(&["a", "c"]);
    // Between both in time.
    write(&captures.folder, "b", captures.content("b"));
    let out = captures.out("out");
    let text = said(captures.archive("out").args(["--settle", "1h"]), 0);
    assert!(text.contains("2 of them captures, 1 still growing"), "{text}");
    assert_eq!(verdicts(&out), expected(&[("a", "whole"), ("b", "growing"), ("c", "whole")]));
    let table = String::from_utf8(stdout(sizeleak("archive status").arg(&out))).unwrap();
    assert!(table.contains("Growing:") && table.contains("hall/b: was modified within 3600 s"), "{table}");
    said(&mut captures.archive("out"), 0);
    let all = answers(&out);
    assert!(all == captures.fresh(&[]), "what was made without it is made again");
    // One that is in the results grows again.
    set_modified(&captures.path("b"), long_ago());
    let file = write(&captures.folder, "c", captures.content("d"));
    said(captures.archive("out").args(["--settle", "1h"]), 0);
    assert!(answers(&out) == all);
    let waits = status(&out)["points"][0]["waits"].as_str().unwrap().to_owned();
    assert!(waits.contains("hall/c, which is in the results, has changed again"), "{waits}");
    set_modified(&file, SystemTime::now() + Duration::from_hours(9));
    captures.add("d");
    fs::remove_file(&file).unwrap();
    let gone = said(&mut captures.archive("out"), 1);
    assert!(gone.contains("1 of its captures is gone"), "{gone}");
}

#[test]
fn captures_outside_of_the_range_are_not_processed_and_nothing_is_dropped_silently() {
    let captures = Captures::new(&["a", "b", "c", "d"]);
    let out = captures.out("out");
    said(&mut captures.archive("out"), 0);
    let all = answers(&out);
    let time = |at: usize, field: &str| status(&out)["files"][at][field].as_i64().unwrap();
    let (since, until) = (utc(time(1, "first_ns")), utc(time(3, "first_ns")));
    let range = ["--since", &since, "--until", &until];
    let text = said(captures.archive("out").args(range), 1);
    assert!(text.contains("2 of its captures are outside of the range of time") && text.contains("--forget"), "{text}");
    assert!(text.contains("points are not complete") && !text.contains("damaged"), "no file is: {text}");
    assert!(answers(&out) == all, "its results are as they were");
    let chosen = captures.fresh(&range);
    said(captures.archive("out").args([&range[..], &["--forget"]].concat()), 0);
    assert!(answers(&out) == chosen && chosen != all);
    let kept = [("a", "outside"), ("b", "whole"), ("c", "whole"), ("d", "outside")];
    assert_eq!(verdicts(&out), expected(&kept));
    said(captures.archive("out").args(["--since", &since]), 0);
    assert!(answers(&out) == captures.fresh(&["--since", &since]));
    said(&mut captures.archive("out"), 0);
    assert!(answers(&out) == all);
}

/// A time of RFC 3339, to the microsecond before or at it.
fn utc(time_ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(time_ns)).unwrap().to_string()
}

#[test]
fn patterns_choose_captures() {
    let captures = Captures::new(&["a", "b", "c", "d"]);
    let (out, pattern) = (captures.out("out"), |text: &str| captures.out(text));
    let text = said(&mut archive(&pattern("*/[ab]"), &out, GATEWAY), 0);
    assert!(text.contains("1 point, 2 files (2 of them captures"), "{text}");
    assert_eq!(verdicts(&out), expected(&[("a", "whole"), ("b", "whole")]));
    assert!(status(&out)["points"][0]["point"].as_str().unwrap().ends_with("+hall"));
    let none = captures.out("none");
    fs::rename(captures.path("a"), captures.path("[a")).unwrap();
    said(&mut archive(&pattern("hall/[a"), &none, GATEWAY), 0);
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
