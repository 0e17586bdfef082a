//! Folders of captures as they are in the field: odd files are named, damaged captures are read on, nothing hangs.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::home::Home;
use support::injected::{Answers, COMMANDS, Traffic, honest, run};
use support::programs::{example, feed, root, stderr, stdout, with, write};

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
fn captures_are_recognised_by_content_whatever_their_names() {
    let home = Home::bundled();
    let answers = stdout(&mut home.sizeleak("run pipeline.toml --quiet --format ndjson"));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&bundled()).unwrap();
    for (name, content) in [
        ("monday", bundled()),
        ("capture.toml", bundled()),
        ("packed", gzip.finish().unwrap()),
        ("packed.bin", zstd::encode_all(&*bundled(), 1).unwrap()),
    ] {
        write(home.folder(), name, content);
        let run = format!("run {name} --gateway 192.168.1.20 --model model.toml --quiet --format ndjson");
        assert!(stdout(&mut home.sizeleak(&run)) == answers, "{name}");
    }
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

#[test]
fn a_capture_that_cannot_be_read_is_named_and_the_others_go_on() {
    let honest = honest().untunnelled();
    for (name, content) in
        [("bad.pcap", &b"\xff\xff\xff\xff damaged"[..]), ("empty.pcapng", b""), ("text.pcap.gz", b"text")]
    {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "home.pcap", bundled());
        write(folder.path(), "README.txt", "captures of a home");
        write(folder.path(), name, content);
        let answers = answers_below(folder.path());
        assert!(answers.untunnelled() == honest, "{name}: {}", answers.untunnelled().len());
        assert_eq!(answers.code, Some(1), "{name}");
        let error = answers.stderr.lines().last().unwrap();
        assert!(error.contains(name) && answers.stderr.contains("README.txt: is no capture"), "{}", answers.stderr);
    }
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

#[test]
fn a_damaged_capture_gives_the_same_bytes_with_one_file_or_a_pipe() {
    let mut damaged = bundled();
    let place = 24 + Traffic::bundled().0.iter().take(900).map(|(_, frame)| 16 + frame.len()).sum::<usize>();
    damaged[place + 8..place + 12].fill(0xff);
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "damaged.pcap", &damaged);
    let from_file = with("capture", file.to_str().unwrap()).output().unwrap();
    let from_pipe = feed(with("capture", "-"), damaged);
    assert_eq!((from_file.status.code(), from_pipe.status.code()), (Some(0), Some(0)), "{}", stderr(&from_pipe));
    let rows = |stream: Vec<u8>| feed(with("sizeleak", "frames --kind packets"), stream).stdout;
    let (of_file, of_pipe) = (rows(from_file.stdout), rows(from_pipe.stdout));
    assert!(of_file == of_pipe && !of_file.is_empty());
}
