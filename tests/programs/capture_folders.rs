//! Folders of captures as they are in the field: odd files are named, damaged captures are read on, nothing hangs.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::injected::{Answers, COMMANDS, Traffic, honest, run};
use support::programs::{example, root, write};

const KINDS: [&str; 2] = ["--kind", "flow,identification,notice,summary"];

/// The answers to a folder.
fn answers_below(folder: &Path) -> Answers {
    Answers::of(&run(&[folder], &[&["--set", "capture.recursive=true"], &KINDS[..]].concat()))
}

fn make_pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn bundled() -> Vec<u8> {
    fs::read(root().join(example("test.pcap"))).unwrap()
}

#[test]
fn pipes_sockets_and_devices_in_a_folder_are_named_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(folder.path(), "home.pcap", bundled());
    make_pipe(&path("a.pcap"));
    let _listener = UnixListener::bind(path("agent.socket")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", path("z.pcap")).unwrap();
    let answers = answers_below(folder.path());
    assert_eq!((answers.untunnelled().len(), answers.code), (COMMANDS, Some(0)), "{}", answers.stderr);
    assert_eq!(answers.counter("capture", "skipped_files"), 3);
    let notices = answers.notices("unsupported");
    for words in ["a.pcap: is a named pipe", "agent.socket: is a socket", "z.pcap: is a device"] {
        assert!(notices.iter().any(|detail| detail.contains(words)), "{words}: {notices:?}");
    }
}

#[test]
fn a_pipe_that_is_named_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("live.pcap");
    make_pipe(&pipe);
    let writer = thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, bundled()).unwrap()
    });
    let answers = Answers::of(&run(&[&pipe], &KINDS));
    writer.join().unwrap();
    assert_eq!((answers.untunnelled().len(), answers.code), (COMMANDS, Some(0)), "{}", answers.stderr);
}

/// One header is damaged, in each of twelve places, in one of three ways after the other.
#[test]
fn one_damaged_header_costs_few_commands() {
    let bytes = bundled();
    let honest = honest().untunnelled();
    let lengths = Traffic::bundled().0.into_iter().map(|(_, frame)| 16 + frame.len());
    let places: Vec<usize> = lengths.scan(24, |at, length| Some(std::mem::replace(at, *at + length))).collect();
    let folder = tempfile::tempdir().unwrap();
    let (mut kept, mut runs) = (0, 0);
    let places = places.iter().skip(17).step_by(places.len() / 12);
    for (place, damage) in places.zip([u32::MAX, 100_000, 7].into_iter().cycle()) {
        let mut damaged = bytes.clone();
        damaged[place + 8..place + 12].copy_from_slice(&damage.to_le_bytes());
        let file = write(folder.path(), "damaged.pcap", damaged);
        let answers = Answers::of(&run(&[&file], &KINDS));
        let is_told = |detail: &&String| detail.contains("bytes are skipped");
        assert_eq!(answers.notices("resync").iter().filter(is_told).count(), 1, "{place}");
        assert!(answers.counter("capture", "skipped_bytes") > 0, "{place}");
        assert_eq!(answers.code, Some(0), "{}", answers.stderr);
        let now = answers.untunnelled();
        let same = honest.iter().filter(|answer| now.contains(answer)).count();
        assert!(same >= COMMANDS - 6, "byte {place}: {same} of {COMMANDS}");
        (kept, runs) = (kept + same, runs + 1);
    }
    println!("{:.1} of {COMMANDS} commands on average of {runs} runs", f64::from(kept as u32) / f64::from(runs));
    assert!(kept >= (COMMANDS - 2) * runs as usize, "{kept} in {runs} runs");
}
