//! Twenty gateways as one tap recorded them, in hundreds of rotated files, some of them odd.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use sizeleak_simulator::{Scenario, simulate};
use tempfile::TempDir;

use support::programs::{example, root, write};
use support::rotation::{capture, packets};

/// How many gateways there are, from 192.168.1.20 on.
pub(crate) const GATEWAYS: usize = 20;

/// How many files there are, about.
const FILES: usize = 310;

/// The file that is cut.
const CUT: usize = 90;

/// The file that is split into two that overlap.
const OVERLAPPING: usize = 13;

/// A packet with its header, as it is in a capture.
type Packet = Vec<u8>;

/// An archive, and what it was made from.
pub(crate) struct Rotated {
    folder: TempDir,
}

impl Rotated {
    /// One tap that has seen everything but a packet in the middle.
    pub(crate) fn by_one_tap() -> Self {
        let (header, mut packets) = merged_homes();
        let rotated = Self { folder: tempfile::tempdir().unwrap() };
        rotated.write_tap("lan", &header, &packets, FILES);
        // The last packet of the file that is cut.
        packets.remove(packets.len().div_ceil(FILES) * (CUT + 1) - 1);
        rotated.finish("lan", &header, &packets)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that is read.
    pub(crate) fn captures(&self) -> PathBuf {
        self.path().join("taps")
    }

    /// A capture of everything that the tap has seen.
    pub(crate) fn whole(&self) -> PathBuf {
        self.path().join("whole.pcap")
    }

    /// A model for all of the gateways, which are of one make.
    pub(crate) fn model(&self) -> PathBuf {
        self.path().join("model.toml")
    }

    /// A file, which may appear later than those after it.
    pub(crate) fn late(&self) -> PathBuf {
        self.captures().join("lan/lan.072.pcap.gz")
    }

    /// Writes the files of a tap: some are compressed, two overlap.
    fn write_tap(&self, tap: &str, header: &[u8], packets: &[Packet], files: usize) {
        let folder = self.captures().join(tap);
        fs::create_dir_all(&folder).unwrap();
        for (number, packets) in packets.chunks(packets.len().div_ceil(files)).enumerate() {
            let name = format!("{tap}.{number:03}.pcap");
            let content = capture(header, packets);
            if number == OVERLAPPING {
                for (half, parity) in [("a", 0), ("b", 1)] {
                    let half_of = packets.iter().skip(parity).step_by(2).cloned().collect::<Vec<_>>();
                    write(&folder, &format!("{name}.{half}"), capture(header, &half_of));
                }
            } else if number % 8 == 0 {
                let mut zipped = GzEncoder::new(Vec::new(), flate2::Compression::fast());
                zipped.write_all(&content).unwrap();
                write(&folder, &format!("{name}.gz"), zipped.finish().unwrap());
            } else if number % 8 == 4 {
                write(&folder, &format!("{name}.zst"), zstd::encode_all(&*content, 1).unwrap());
            } else {
                write(&folder, &name, content);
            }
        }
    }

    /// Adds files that hold nothing, and cuts one of a tap within its last packet.
    fn finish(self, tap: &str, header: &[u8], packets: &[Packet]) -> Self {
        let folder = self.captures().join(tap);
        write(&folder, "rotated.pcap.part", "");
        write(&folder, "notes.txt", "the tap was moved on Tuesday");
        let cut = folder.join(format!("{tap}.{CUT:03}.pcap"));
        let content = fs::read(&cut).unwrap();
        fs::write(&cut, &content[..content.len() - 5]).unwrap();
        write(self.path(), "whole.pcap", capture(header, packets));
        let of_one = fs::read_to_string(root().join(example("model.toml"))).unwrap();
        write(self.path(), "model.toml", of_one.replace("gateway = \"192.168.1.20\"\n", ""));
        self
    }
}

/// The captures of all homes as one.
fn merged_homes() -> (Vec<u8>, Vec<Packet>) {
    let mut header = Vec::new();
    let mut merged = Vec::new();
    for gateway in 0..GATEWAYS {
        let scenario = format!(
            "[network]\ngateway = \"192.168.1.{}\"\n[learn]\nrepeats = 1\nrandom = 0\n[test]\ncommands = 25\n",
            20 + gateway
        );
        let home = simulate(&Scenario::from_toml(&scenario).unwrap(), 500 + gateway as u64).unwrap();
        let (begin, packets) = packets(&home.test.bytes);
        header = begin;
        merged.extend(packets.into_iter().map(|packet| (time(&packet), packet)));
    }
    merged.sort_by_key(|(time, _)| *time);
    (header, merged.into_iter().map(|(_, packet)| packet).collect())
}

/// The seconds of a packet, and the fraction behind them.
fn time(packet: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_le_bytes(packet[at..at + 4].try_into().unwrap());
    (word(0), word(4))
}
