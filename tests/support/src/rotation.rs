//! Captures taken apart and put together, and what a folder holds.

use std::fs;
use std::path::{Path, PathBuf};

/// The header of a capture, and its packets with theirs.
pub fn packets(capture: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (header, mut rest) = capture.split_at(24);
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (packet, after) = rest.split_at(16 + length);
        packets.push(packet.to_vec());
        rest = after;
    }
    (header.to_vec(), packets)
}

/// A capture of packets.
pub fn capture(header: &[u8], packets: &[Vec<u8>]) -> Vec<u8> {
    [header.to_vec(), packets.concat()].concat()
}

/// All files below a folder, with their content, by path.
pub fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}
