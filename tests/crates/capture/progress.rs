//! Progress counts every byte of the files once, even if they are compressed or opened twice.

use std::io::{self, Write};
use std::path::PathBuf;

use super::written::{file, little_endian, some_packets};
use flate2::Compression;
use flate2::write::GzEncoder;
use sizeleak_capture::Options;
use sizeleak_platform::runtime::{Interrupt, Outcome, StageOptions, StreamOutput};
use sizeleak_platform::telemetry::Telemetry;
use tempfile::TempDir;

/// Bytes reported as read and as expected, after all of these files.
fn reported(files: Vec<PathBuf>) -> (u64, Option<u64>) {
    let telemetry = Telemetry::new();
    let mut capture = Options { files, ..Options::default() }.build().unwrap();
    capture.set_meter(telemetry.meter("capture"));
    let outcome = capture.run(None, &mut StreamOutput::new(io::sink()), &Interrupt::new(), None);
    assert_eq!(outcome, Outcome::Done);
    (telemetry.progress().read(), telemetry.progress().total())
}

fn bytes(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn every_byte_of_a_file_is_reported_once() {
    let folder = TempDir::new().unwrap();
    let capture = little_endian(&some_packets(20_000, 0));
    let mut compressor = GzEncoder::new(Vec::new(), Compression::fast());
    compressor.write_all(&capture).unwrap();
    let compressed = compressor.finish().unwrap();
    // Single files, files that overlap, and files that follow each other and are prefetched.
    let late = little_endian(&some_packets(20_000, 1_000_000_000_000));
    let files = [("a.pcap", &capture), ("b.pcap.gz", &compressed), ("c.pcap", &late), ("d.pcap", &capture)]
        .map(|(name, content)| file(&folder, name, content));
    for some in [&files[..1], &files[1..2], &files[..2], &files[1..3], &files] {
        assert_eq!(reported(some.to_vec()), (bytes(some), Some(bytes(some))), "{some:?}");
    }
}

/// More files overlap than are open at once, so some are suspended.
#[test]
fn suspended_files_are_reported_once() {
    let folder = TempDir::new().unwrap();
    let write = |number: u64| {
        let capture = little_endian(&some_packets(10, number));
        file(&folder, &format!("{number}.pcap"), &capture)
    };
    let files: Vec<PathBuf> = (0..200).map(write).collect();
    assert_eq!(reported(files.clone()), (bytes(&files), Some(bytes(&files))));
}
