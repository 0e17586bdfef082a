//! Behind damage in the middle of a capture the packets are found again, and what is lost is said.

use std::time::Duration;

use super::written::{Read, Written, block, file, little_endian, packets, pcap, read_one};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, TsResolution};
use proptest::prelude::*;
use sizeleak_capture::Capture;
use sizeleak_frame::{Frame, Notice};
use sizeleak_platform::runtime::{Interrupt, Source};
use tempfile::TempDir;

/// 2026, in nanoseconds.
const START_NS: u64 = 1_767_600_000_000_000_000;

/// Packets of many lengths, a second apart, with content that is like random.
fn traffic(count: u64) -> Vec<Written> {
    let byte = |number: u64, at: u64| (number * 7919 + at * at * 31 + at * 17).to_le_bytes()[0] ^ (at as u8);
    let packet = |number: u64| {
        let data: Vec<u8> = (0..60 + number * 37 % 1400).map(|at| byte(number, at)).collect();
        (START_NS + number * 1_000_000_000, data.clone(), data.len() as u32)
    };
    (0..count).map(packet).collect()
}

/// Where each packet's header begins.
fn headers(written: &[Written]) -> Vec<usize> {
    let next = |at: &mut usize, (_, data, _): &Written| Some(std::mem::replace(at, *at + 16 + data.len()));
    written.iter().scan(24, next).collect()
}

/// The counters of a stage.
struct Counters(Vec<(&'static str, u64)>);

/// What a stage reads of a capture: packets, notices, counters, and the error, if any.
fn run(content: &[u8]) -> (Vec<Read>, Vec<Notice>, Counters, Option<String>) {
    let folder = TempDir::new().unwrap();
    let mut capture = Capture::new(vec![file(&folder, "x.pcap", content)]);
    let mut out: Vec<Frame> = Vec::new();
    let error = capture.run(&mut out, &Interrupt::new()).err().map(|error| error.to_string());
    let notices = out.iter().filter_map(|frame| Notice::try_from(frame.clone()).ok()).collect();
    (out.into_iter().flat_map(packets).collect(), notices, Counters(capture.counts().counters), error)
}

impl Counters {
    fn named(&self, name: &str) -> u64 {
        self.0.iter().find(|(counter, _)| *counter == name).unwrap().1
    }
}

/// How many of the packets that were written are read, data and time.
fn intact(read: &[Read], written: &[Written]) -> usize {
    let is_read = |(time, data, _): &&Written| read.iter().any(|row| row.0 == time.cast_signed() && row.1 == *data);
    written.iter().filter(is_read).count()
}

#[test]
fn one_damaged_header_costs_one_packet_and_is_reported() {
    let written = traffic(40);
    let places = headers(&written);
    for endianness in [Endianness::Little, Endianness::Big] {
        let mut bytes = pcap(&written, endianness, TsResolution::MicroSecond);
        bytes[places[10] + 8..places[10] + 12].fill(0xff);
        let (read, notices, counters, error) = run(&bytes);
        assert_eq!((read.len(), intact(&read, &written)), (39, 39));
        assert!(read.is_sorted_by_key(|packet| packet.0));
        let skipped = (places[11] - places[10]) as u64;
        assert_eq!((counters.named("skipped_bytes"), counters.named("damaged_files")), (skipped, 1));
        assert_eq!((notices.len(), notices[0].what.as_ref(), notices[0].bytes), (1, "resync", Some(skipped)));
        let detail = notices[0].detail.clone().unwrap();
        let expected = format!("is damaged at byte {}", places[10]);
        assert!(detail.contains(&expected) && detail.contains(&format!("{skipped} bytes are skipped")), "{detail}");
        assert_eq!(error, None);
    }
}

/// Each field of a header takes each of these values, at the beginning, in the middle and at the end.
#[test]
fn whatever_happens_to_a_header_few_packets_are_lost() {
    let written = traffic(40);
    let places = headers(&written);
    for packet in [0, 1, 20, 37, 38] {
        for field in [8, 12] {
            for value in [0, 1, 17, 90, 5_000, 70_000, 262_144, 10_000_000, u32::MAX] {
                let mut bytes = little_endian(&written);
                bytes[places[packet] + field..places[packet] + field + 4].copy_from_slice(&value.to_le_bytes());
                let (read, ..) = run(&bytes);
                assert!(intact(&read, &written) >= 38, "packet {packet}, field {field}, {value}: {}", read.len());
                assert!(read.len() <= 41, "packet {packet}, field {field}, {value}: {}", read.len());
            }
        }
    }
}

/// What follows the last interface that there can be is looked through once, not once for each interface.
#[test]
fn a_section_of_very_many_interfaces_is_refused_at_once() {
    let section = block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    let interfaces = block(1, &[1, 0, 0, 0, 0, 0, 4, 0]).repeat(200_000);
    let started = std::time::Instant::now();
    let (read, notices, _, error) = run(&[section, interfaces].concat());
    assert!(error.unwrap().contains("more interfaces than there can be"));
    assert_eq!((read.len(), notices.len()), (0, 1));
    // Once for each of them takes an hour.
    assert!(started.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_zeroed_sector_and_foreign_bytes_are_skipped() {
    let written = traffic(200);
    let whole = little_endian(&written);
    let mut zeroed = whole.clone();
    zeroed[50_000..54_096].fill(0);
    let mut overwritten = whole.clone();
    overwritten[50_000..54_096].copy_from_slice(&b"text of another file ".repeat(200)[..4096]);
    let mut removed = whole.clone();
    removed.drain(50_000..53_333);
    let mut inserted = whole.clone();
    inserted.splice(50_000..50_000, vec![0xab; 3_333]);
    for (name, bytes) in
        [("zeroed", zeroed), ("overwritten", overwritten), ("removed", removed), ("inserted", inserted)]
    {
        let (read, _, counters, error) = run(&bytes);
        assert!(intact(&read, &written) >= 190, "{name}: {}", read.len());
        assert!(counters.named("skipped_bytes") > 0 && error.is_none(), "{name}");
    }
}

/// Packets that carry a capture, as a download of one does: its packets are not taken for this capture's.
#[test]
fn a_capture_inside_a_payload_is_not_read() {
    let inner =
        little_endian(&traffic(2000).into_iter().map(|(time, _, _)| (time, vec![9; 24], 24)).collect::<Vec<_>>());
    let pieces = inner.chunks(1400).enumerate();
    let written: Vec<Written> = pieces
        .map(|(at, piece)| (START_NS + at as u64 * 1_000_000, piece.to_vec(), piece.len() as u32))
        .chain(traffic(3).into_iter().map(|(time, data, length)| (time + 1_000_000_000, data, length)))
        .collect();
    let places = headers(&written);
    let mut bytes = little_endian(&written);
    bytes[places[5] + 8..places[5] + 12].fill(0xff);
    let (read, ..) = run(&bytes);
    assert_eq!((read.len(), intact(&read, &written)), (written.len() - 1, written.len() - 1));
}

#[test]
fn a_wrong_time_before_the_damage_does_not_hide_the_rest() {
    let written = traffic(400);
    let places = headers(&written);
    let mut bytes = little_endian(&written);
    bytes[places[99] + 3] ^= 0x40;
    bytes[places[100] + 8..places[100] + 12].fill(0xff);
    let (read, ..) = run(&bytes);
    assert_eq!(intact(&read, &written), 398);
}

/// Some tools write a length on the wire that is too small; that is no damage.
#[test]
fn packets_that_are_longer_than_they_claim_to_have_been_are_read() {
    let written = traffic(20);
    let mut bytes = little_endian(&written);
    for place in headers(&written) {
        bytes[place + 12..place + 16].copy_from_slice(&40_u32.to_le_bytes());
    }
    let (read, notices, _, error) = run(&bytes);
    assert_eq!((intact(&read, &written), notices.len(), error), (20, 0, None));
}

#[test]
fn a_file_with_much_damage_is_reported_a_few_times() {
    let written = traffic(400);
    let places = headers(&written);
    let mut bytes = little_endian(&written);
    for place in places.iter().skip(3).step_by(10) {
        bytes[place + 8..place + 12].fill(0xff);
    }
    let (read, notices, counters, _) = run(&bytes);
    assert_eq!((intact(&read, &written), notices.len(), counters.named("damaged_files")), (360, 8, 1));
    assert!(notices[7].detail.as_ref().unwrap().contains("only counted"));
}

/// An enhanced packet block for each packet.
fn pcapng(written: &[Written]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
    let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
    let linktype = DataLink::ETHERNET;
    writer.write_pcapng_block(InterfaceDescriptionBlock { linktype, snaplen: 0xffff, options }).unwrap();
    for (time, data, original_len) in written {
        let (timestamp, data) = (Duration::from_nanos(*time), data.into());
        let block =
            EnhancedPacketBlock { interface_id: 0, timestamp, original_len: *original_len, data, options: vec![] };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

#[test]
fn behind_a_damaged_block_of_pcapng_packets_are_found_again() {
    let written = traffic(40);
    let bytes = pcapng(&written);
    let block = |packet: usize| {
        let behind: usize = written[packet..].iter().map(|(_, data, _)| 32 + data.len().next_multiple_of(4)).sum();
        bytes.len() - behind
    };
    for packet in [0, 1, 20, 38] {
        for (field, value) in
            [(0, 0x99), (4, 0), (4, 7), (4, 5_000), (4, 1 << 20), (4, u32::MAX), (8, 9), (20, u32::MAX)]
        {
            let mut bytes = bytes.clone();
            let at = block(packet) + field;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let (read, _, counters, _) = run(&bytes);
            assert_eq!(intact(&read, &written), 39, "packet {packet}, field {field}, {value}");
            let is_told = counters.named("skipped_bytes") > 0 || counters.named("skipped_blocks") > 2;
            assert!(is_told, "packet {packet}, field {field}, {value}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn packets_far_from_damage_are_read(
        at in 1_000usize..30_000, damage in prop::collection::vec(any::<u8>(), 1..200), ng: bool,
    ) {
        let written = traffic(60);
        let mut bytes = if ng { pcapng(&written) } else { little_endian(&written) };
        for (place, byte) in bytes[at..].iter_mut().zip(&damage) {
            *place = *byte;
        }
        let (read, _) = read_one(&bytes);
        prop_assert!(intact(&read, &written) >= 52, "{}", intact(&read, &written));
        prop_assert!(read.len() <= 66);
    }
}
