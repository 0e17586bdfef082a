//! Several captures are merged in order of time, however many they are.

use super::written::{file, little_endian, read, some_packets};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::path::Path;
use support::apart;
use tempfile::TempDir;

#[test]
fn several_files_are_merged_by_time() {
    let folder = TempDir::new().unwrap();
    let early = file(&folder, "b.pcap", &little_endian(&some_packets(10, 0)));
    let between = file(&folder, "a.pcap", &little_endian(&some_packets(5, 4_500_000)));
    let late = file(&folder, "c.pcap", &little_endian(&some_packets(3, 60_000_000)));
    let (read, error) = read(&[late, between, early]);
    assert_eq!(error, None);
    assert!(read.is_sorted_by_key(|packet| packet.0));
    let captures: Vec<u32> = read.iter().map(|packet| packet.3).collect();
    assert_eq!(captures, [2, 2, 2, 2, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 0, 0, 0]);
    assert_eq!(
        read.iter().filter(|packet| packet.3 == 2).map(|packet| packet.4).collect::<Vec<_>>(),
        (1..=10).collect::<Vec<_>>()
    );
}

#[test]
fn folders_are_read_recursively() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    file(&folder, "below/one", &little_endian(&some_packets(4, 0)));
    file(&folder, "notes.txt", b"no capture");
    let (read, error) = read(&[folder.path().to_owned()]);
    assert_eq!((read.len(), error), (4, None));
}

#[test]
fn file_named_like_a_capture_in_a_folder_must_be_one() {
    let folder = TempDir::new().unwrap();
    file(&folder, "good.pcap", &little_endian(&some_packets(4, 0)));
    for (name, content, fails) in [
        ("notes.txt", &b"no capture"[..], false),
        ("empty", b"", false),
        ("bad.pcap", b"no capture", true),
        ("bad.pcapng.gz", b"no capture", true),
        ("empty.pcap3", b"", true),
    ] {
        let other = file(&folder, name, content);
        let (packets, error) = read(&[folder.path().to_owned()]);
        assert_eq!((packets.len(), error.is_some_and(|error| error.contains(name))), (4, fails), "{name}");
        let (_, error) = read(&[folder.path().to_owned(), other.clone()]);
        assert!(error.unwrap().contains(name), "one that is named is wanted");
        std::fs::remove_file(other).unwrap();
    }
}

/// What this thread has read so far, in bytes.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// Each file is opened again only once in a while, so what is read grows with the files and not with their square.
#[cfg(target_os = "linux")]
#[test]
fn many_overlapping_files_are_read_about_once() {
    let folder = TempDir::new().unwrap();
    let write = |number: u64| file(&folder, &format!("{number}"), &little_endian(&some_packets(200, number)));
    let files: Vec<_> = (0..400).map(write).collect();
    let size: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    let before = bytes_read();
    let (packets, error) = read(&files);
    let read = bytes_read() - before;
    assert_eq!((packets.len(), error), (400 * 200, None));
    assert!(packets.is_sorted_by_key(|packet| packet.0));
    assert!(read < 4 * size, "{read} bytes of {size}");
}

#[test]
fn a_damaged_file_does_not_stop_the_others() {
    let folder = TempDir::new().unwrap();
    let whole = little_endian(&some_packets(10, 0));
    let files = [
        file(&folder, "a", &whole[..whole.len() - 5]),
        file(&folder, "b", b"nothing of the kind"),
        file(&folder, "c", &little_endian(&some_packets(10, 500))),
    ];
    let (read, error) = read(&files);
    assert_eq!(read.len(), 19);
    assert!(error.is_some());
}

/// Whether a test was left to a process of its own, which may open fewer files than the tests below use.
fn is_left_to_a_process_that_opens_few_files(test: &str) -> bool {
    if !apart::is_here() {
        apart::run(module_path!(), test, Path::new("."));
        return true;
    }
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: Some(250), ..limit }).unwrap();
    false
}

#[test]
fn more_consecutive_files_than_may_be_open_are_all_read() {
    if is_left_to_a_process_that_opens_few_files("more_consecutive_files_than_may_be_open_are_all_read") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let files: Vec<_> = (0..400)
        .map(|number| {
            file(&folder, &format!("trace.pcap{number}"), &little_endian(&some_packets(3, number * 10_000_000)))
        })
        .collect();
    let (read, error) = read(&files);
    assert_eq!((read.len(), error), (1200, None));
    assert!(read.is_sorted_by_key(|packet| (packet.0, packet.3)));
}

#[test]
fn more_overlapping_files_than_may_be_open_are_all_read() {
    if is_left_to_a_process_that_opens_few_files("more_overlapping_files_than_may_be_open_are_all_read") {
        return;
    }
    let folder = TempDir::new().unwrap();
    // One in ten is compressed, and so decompressed again from its beginning when it is resumed.
    let write = |number: u64| {
        let content = little_endian(&some_packets(4, number));
        let content = if number.is_multiple_of(10) { zstd::encode_all(&content[..], 1).unwrap() } else { content };
        file(&folder, &format!("{number}"), &content)
    };
    let files: Vec<_> = (0..300).map(write).collect();
    let (read, error) = read(&files);
    assert_eq!(error, None);
    let expected: Vec<(i64, u32, u64)> = (0..4_u32)
        .flat_map(|at| (0..300).map(move |number| (i64::from(number + at * 1_000_000), number, u64::from(at) + 1)))
        .collect();
    let read: Vec<(i64, u32, u64)> = read.iter().map(|packet| (packet.0, packet.3, packet.4)).collect();
    assert_eq!(read, expected);
}
