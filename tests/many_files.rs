//! A home's capture in several files, or in a long one, gives the same bytes however many cores read it.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod processors;
mod programs;
mod tool;

use std::path::{Path, PathBuf};
use std::process::Command;

use programs::{GATEWAY, example, root, stdout};

const TEST: &str = "many_files";

/// The packets of a classic pcap in little-endian order, each with its header.
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

/// The bundled capture in files: which of them gets the packet with this number, of so many.
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

/// A run of the stages up to one of them over captures, on so many cores.
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
    // Without the summary, whose latencies no two runs share.
    command.args(["--kind", "flow,segments,session,record,command,notice"]);
    command
}

/// What it makes of them.
fn run(folder: &Path, stages: &[&str], files: &[PathBuf], cores: usize) -> Vec<u8> {
    stdout(command(folder, stages, files, cores).arg("--quiet"))
}

/// The bundled capture again and again, later each time, until it is long enough for two threads to take turns in it. But for
/// the first time, and every fourth, another host has the gateway's place: most packets are to be others'.
fn long(folder: &Path) -> PathBuf {
    const LONG: usize = 16 << 20;
    const HEADER: usize = 16;
    /// Where source and destination are in IPv4 behind Ethernet.
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

/// Whether a run can be held to one core, and there is another one.
fn can_choose_cores() -> bool {
    tool::are_here(TEST, &["taskset"]) && (processors::are(2) || tool::skip(TEST, "two cores"))
}

#[test]
fn cores_do_not_matter_for_one_long_file() {
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
fn cores_do_not_matter() {
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
