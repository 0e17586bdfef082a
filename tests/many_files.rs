//! A home's capture in several files, or in a long one, gives the same bytes on one core and on two.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod processors;
mod programs;
mod tool;

use std::path::{Path, PathBuf};
use std::process::Command;

use programs::{GATEWAY, example, root, stdout};

const TEST: &str = "many_files";

/// The packets of a little-endian classic pcap, each with its header.
fn packets(capture: &[u8]) -> Vec<&[u8]> {
    let mut packets = Vec::new();
    let mut rest = &capture[24..];
    while !rest.is_empty() {
        let length = 16 + u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        packets.push(&rest[..length]);
        rest = &rest[length..];
    }
    packets
}

/// Splits the bundled capture into files; `which` assigns a packet number, of the number of packets, to a file.
fn split(folder: &Path, files: usize, which: impl Fn(usize, usize) -> usize) -> Vec<PathBuf> {
    let capture = std::fs::read(root().join(example("test.pcap"))).unwrap();
    assert_eq!(capture[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
    let packets = packets(&capture);
    let mut parts = vec![capture[..24].to_vec(); files];
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
    command
        .args(["-c", &processors::first(cores), env!("CARGO_BIN_EXE_sizeleak"), "run"])
        .arg(&pipeline)
        .arg("--input")
        .args(files);
    command.args(["--gateway", GATEWAY, "--format", "frames"]);
    // Without the summary, whose latencies differ from run to run.
    command.args(["--kind", "flow,segments,session,record,command,notice"]);
    command
}

/// The output of such a run.
fn run(folder: &Path, stages: &[&str], files: &[PathBuf], cores: usize) -> Vec<u8> {
    stdout(command(folder, stages, files, cores).arg("--quiet"))
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
    let packets = packets(&capture);
    let seconds = |packet: &[u8]| u32::from_le_bytes(packet[..4].try_into().unwrap());
    let span = seconds(packets[packets.len() - 1]) - seconds(packets[0]) + 1;
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

/// Whether a run can be pinned to one core, and there is another one.
fn can_choose_cores() -> bool {
    tool::are_here(TEST, &["taskset"]) && (processors::are(2) || tool::skip(TEST, "two cores"))
}

#[test]
fn one_long_file_gives_the_same_bytes_on_one_core_and_on_two() {
    if !can_choose_cores() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = [long(folder.path())];
    for stages in [&["capture", "flow-filter"][..], &["capture", "flow-filter", "record-sizer", "command-segmenter"]] {
        let alone = run(folder.path(), stages, &files, 1);
        let two = command(folder.path(), stages, &files, 2).arg("-vv").output().unwrap();
        assert!(alone == two.stdout, "{stages:?}");
        assert!(programs::stderr(&two).contains("two threads have alternated"), "{}", programs::stderr(&two));
    }
}

#[test]
fn several_files_give_the_same_bytes_on_one_core_and_on_two() {
    if !can_choose_cores() {
        return;
    }
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
