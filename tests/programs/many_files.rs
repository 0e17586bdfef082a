//! A home's capture in several files, or in a long one, gives the same bytes on one core and on two. Files that cannot be
//! read are named, and the others are read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use support::processors;

use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};
use support::rotation::packets;
use support::timeless::without_summary;

/// Splits the bundled capture into files; `which` assigns a packet number, of the number of packets, to a file.
fn split(folder: &Path, files: usize, which: impl Fn(usize, usize) -> usize) -> Vec<PathBuf> {
    let capture = std::fs::read(root().join(example("test.pcap"))).unwrap();
    let (header, packets) = packets(&capture);
    let mut parts = vec![header; files];
    for (number, packet) in packets.iter().enumerate() {
        parts[which(number, packets.len())].extend_from_slice(packet);
    }
    let write = |(part, bytes): (usize, &Vec<u8>)| {
        let file = folder.join(format!("{part}.pcap"));
        std::fs::write(&file, bytes).unwrap();
        file
    };
    parts.iter().enumerate().map(write).collect()
}

/// A run of these stages over captures, on `cores` cores.
fn command(folder: &Path, stages: &[&str], files: &[PathBuf], cores: usize) -> Command {
    let pipeline = folder.join("pipeline.toml");
    let stages: Vec<String> = stages.iter().map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n")).collect();
    std::fs::write(&pipeline, stages.concat()).unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", &processors::first(cores), env!("CARGO_BIN_EXE_sizeleak"), "run"]).arg(&pipeline).args(files);
    command.args(["--gateway", GATEWAY, "--format", "frames"]);
    command
}

/// The output of such a run, without its summary: latencies differ from run to run.
fn run(folder: &Path, stages: &[&str], files: &[PathBuf], cores: usize) -> Vec<u8> {
    without_summary(&stdout(command(folder, stages, files, cores).arg("--quiet")))
}

/// Repeats the bundled capture, later each time, until it is long enough for two threads to read it alternately. Except
/// in the first and every fourth repetition, another host has the gateway's address, so that most packets are others'.
fn long(folder: &Path) -> PathBuf {
    const LONG: usize = 16 << 20;
    const HEADER: usize = 16;
    /// Offsets of source and destination in IPv4 behind Ethernet.
    const ADDRESSES: [usize; 2] = [26, 30];
    let capture = std::fs::read(root().join(example("test.pcap"))).unwrap();
    let gateway: std::net::Ipv4Addr = GATEWAY.parse().unwrap();
    let (_, packets) = packets(&capture);
    let seconds = |packet: &[u8]| u32::from_le_bytes(packet[..4].try_into().unwrap());
    let span = seconds(&packets[packets.len() - 1]) - seconds(&packets[0]) + 1;
    let mut bytes = capture[..24].to_vec();
    let mut round = 0;
    while bytes.len() < LONG {
        for packet in &packets {
            bytes.extend((seconds(packet) + round * span).to_le_bytes());
            bytes.extend_from_slice(&packet[4..]);
            let data = bytes.len() - (packet.len() - HEADER);
            for place in ADDRESSES {
                if let Some(address) = bytes.get_mut(data + place..data + place + 4)
                    && *address == gateway.octets()
                    && round % 4 != 0
                {
                    address.copy_from_slice(&[192, 168, 1, 99]);
                }
            }
        }
        round += 1;
    }
    let file = folder.join("long.pcap");
    std::fs::write(&file, bytes).unwrap();
    file
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn one_long_file_gives_the_same_bytes_on_one_core_and_on_two() {
    let folder = tempfile::tempdir().unwrap();
    let files = [long(folder.path())];
    for stages in [&["capture", "flow-filter"][..], &["capture", "flow-filter", "record-sizer", "command-segmenter"]] {
        let alone = run(folder.path(), stages, &files, 1);
        let two = command(folder.path(), stages, &files, 2).arg("-vv").output().unwrap();
        assert!(alone == without_summary(&two.stdout), "{stages:?}");
        assert!(stderr(&two).contains("two threads have alternated"), "{}", stderr(&two));
    }
}

#[test]
#[ignore = "second tier: needs taskset and two processors"]
fn several_files_give_the_same_bytes_on_one_core_and_on_two() {
    let folder = tempfile::tempdir().unwrap();
    let segments = ["capture", "flow-filter"];
    let commands = ["capture", "flow-filter", "record-sizer", "command-segmenter"];
    let one_file = run(folder.path(), &commands, &[root().join(example("test.pcap"))], 1);
    let in_turn = |number: usize, all: usize| number * 5 / all;
    let overlapping = |number: usize, all: usize| {
        if number.is_multiple_of(7) { (number * 5 / all + 1) % 5 } else { number * 5 / all }
    };
    let alternating = |number: usize, _: usize| number % 5;
    for (which, split_so) in [&in_turn as &dyn Fn(usize, usize) -> usize, &overlapping, &alternating].iter().enumerate()
    {
        let files = split(folder.path(), 5, split_so);
        for stages in [&segments[..], &commands] {
            let alone = run(folder.path(), stages, &files, 1);
            assert!(alone == run(folder.path(), stages, &files, 2), "{which}: {stages:?}");
        }
        assert!(one_file == run(folder.path(), &commands, &files, 2), "{which}: one file or five");
    }
}

/// The lines about captures of the archive at the end of what was said, where each begins with the stage's name.
fn lines_of_captures(output: &Output, folder: &Path) -> Vec<String> {
    let said = stderr(output);
    let start = format!("capture: {}/", folder.display());
    said.lines().filter_map(|line| line.strip_prefix(&start)).map(str::to_owned).collect()
}

fn assert_lines(lines: &[String], expected: &[(&str, &str)]) {
    let is_one = |(line, (name, words)): (&String, &(&str, &str))| line.starts_with(&format!("{name}: {words}"));
    assert!(lines.len() == expected.len() && lines.iter().zip(expected).all(is_one), "{lines:#?}");
}

/// Captures of one command each, for the labels of the bundled home that have one action, which is their name.
fn captures_of_single_actions(folder: &Path) -> Vec<PathBuf> {
    let capture = fs::read(root().join(example("learn.pcap"))).unwrap();
    let (_, packets) = packets(&capture);
    let number = |bytes: &[u8]| f64::from(u32::from_le_bytes(bytes.try_into().unwrap()));
    let time = |packet: &[u8]| number(&packet[..4]) + number(&packet[4..8]) / 1e6;
    let labels = fs::read_to_string(root().join(example("learn.csv"))).unwrap();
    let mut rows = labels.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let actions = rows.next().unwrap();
    let mut files = Vec::new();
    for row in rows {
        let done: Vec<usize> = (1..row.len()).filter(|at| row[*at] != "0").collect();
        let ([only], label) = (done.as_slice(), row[0].parse::<f64>().unwrap()) else { continue };
        if row[*only] == "1" {
            let near = packets.iter().filter(|packet| (label - 0.4..label + 1.6).contains(&time(packet)));
            let bytes = capture[..24].iter().chain(near.flatten()).copied().collect::<Vec<u8>>();
            files.push(write(folder, &format!("{}-{}.pcap", actions[*only], files.len()), bytes));
        }
    }
    files
}

#[test]
fn a_capture_whose_name_is_its_action_does_not_stop_the_others_where_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = captures_of_single_actions(folder.path());
    assert!(files.len() > 20, "{}", files.len());
    let learned = |files: &[PathBuf]| {
        let model = folder.path().join("model.toml");
        let mut learn = sizeleak(&format!("learn --gateway {GATEWAY} --labels-from-names -o"));
        let output = learn.arg(&model).args(files).output().unwrap();
        let model = fs::read_to_string(model).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let tuples = model.find("tuples = [").unwrap()..model.find("[scope]").unwrap();
        (output, model[tuples].to_owned())
    };
    let (whole, tuples) = learned(&files);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    for (at, name) in [(0, "on-900.pcap"), (files.len() / 2, "off-901.pcap")] {
        symlink("nowhere", folder.path().join(name)).unwrap();
        files.insert(at, folder.path().join(name));
    }
    let (output, among) = learned(&files);
    assert_eq!((output.status.code(), &among), (Some(1), &tuples), "{}", stderr(&output));
    let said = [("on-900.pcap", "No such file"), ("off-901.pcap", "No such file")];
    assert_lines(&lines_of_captures(&output, folder.path()), &said);
}
