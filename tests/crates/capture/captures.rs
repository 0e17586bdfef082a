//! Captures of every format are read; damaged ones up to the damage, with one error.

use std::time::Duration;

use super::written::{Written, assert_same, block, file, little_endian, pcap, read, read_one, some_packets};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, TsResolution};
use proptest::prelude::*;
use sizeleak_capture::Capture;
use sizeleak_frame::{Frame, Packets};
use sizeleak_platform::runtime::{Interrupt, Source};

#[test]
fn pcap_is_read_in_both_byte_orders_and_resolutions() {
    let written = some_packets(600, 1_700_000_000_123_456_789);
    for endianness in [Endianness::Little, Endianness::Big] {
        let (read, error) = read_one(&pcap(&written, endianness, TsResolution::NanoSecond));
        assert_eq!(error, None);
        assert_same(&read, &written);
        assert_eq!((read[599].3, read[599].4), (0, 600));
        let micro: Vec<Written> =
            written.iter().map(|(time, data, original)| (time / 1000 * 1000, data.clone(), *original)).collect();
        assert_same(&read_one(&pcap(&micro, endianness, TsResolution::MicroSecond)).0, &micro);
    }
}

/// A section with one interface of this resolution and offset; packet times are in units of that resolution.
fn section(endianness: Endianness, resolution: u8, offset: i64, units: &[u64]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    let interface = InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 0xffff,
        options: vec![
            InterfaceDescriptionOption::IfTsResol(resolution),
            InterfaceDescriptionOption::IfTsOffset(offset as u64),
        ],
    };
    writer.write_pcapng_block(interface).unwrap();
    for _ in units {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::ZERO,
            original_len: 99,
            data: vec![7; 5].into(),
            options: vec![],
        };
        writer.write_pcapng_block(block).unwrap();
    }
    let mut bytes = writer.into_inner();
    // The writer does not know resolutions: set the times by hand.
    let mut at = bytes.len() - units.len() * 40;
    for unit in units {
        let halves = [(unit >> 32) as u32, *unit as u32];
        for half in halves {
            let half = if endianness == Endianness::Big { half.to_be_bytes() } else { half.to_le_bytes() };
            bytes[at + 12..at + 16].copy_from_slice(&half);
            at += 4;
        }
        at += 32;
    }
    bytes
}

#[test]
fn pcapng_times_follow_resolution_and_offset_of_their_section() {
    let mut bytes = section(Endianness::Little, 9, 0, &[5_000_000_007]);
    bytes.extend(section(Endianness::Big, 3, -1, &[7_500]));
    bytes.extend(section(Endianness::Little, 0x8a, 3, &[1024 + 512]));
    bytes.extend(section(Endianness::Big, 9, 1_700_000_000, &[7]));
    bytes.extend(section(Endianness::Big, 6, -3_600, &[1_700_003_600_000_001]));
    let (read, error) = read_one(&bytes);
    assert_eq!(error, None);
    let times: Vec<i64> = read.iter().map(|packet| packet.0).collect();
    let in_big_endian = [1_700_000_000_000_000_007, 1_700_000_000_000_001_000];
    assert_eq!(times[..3], [5_000_000_007, 6_500_000_000, 4_500_000_000]);
    assert_eq!(times[3..], in_big_endian);
    assert_eq!((read[0].1.as_slice(), read[0].2), (&[7; 5][..], 99), "without padding");
}

#[test]
fn packets_have_the_link_type_of_their_interface() {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
    for linktype in [DataLink::ETHERNET, DataLink::RAW] {
        let options = vec![InterfaceDescriptionOption::IfTsResol(9)];
        writer.write_pcapng_block(InterfaceDescriptionBlock { linktype, snaplen: 0xffff, options }).unwrap();
    }
    // Alternating, and in long runs.
    let interfaces: Vec<u32> = (0..600).map(|at| if at < 40 { at % 2 } else { at / 100 % 2 }).collect();
    for interface_id in &interfaces {
        let (timestamp, data) = (Duration::from_secs(1), vec![9; 60].into());
        let block =
            EnhancedPacketBlock { interface_id: *interface_id, timestamp, original_len: 60, data, options: vec![] };
        writer.write_pcapng_block(block).unwrap();
    }
    let folder = tempfile::TempDir::new().unwrap();
    let mut out: Vec<Frame> = Vec::new();
    Capture::new(vec![file(&folder, "two.pcapng", &writer.into_inner())]).run(&mut out, &Interrupt::new()).unwrap();
    let batches = out.into_iter().map(|frame| Packets::try_from(frame).unwrap_or_default());
    let read: Vec<u16> = batches.flat_map(|batch| batch.iter().map(|row| row.link_type).collect::<Vec<_>>()).collect();
    assert_eq!(read, interfaces.iter().map(|interface| [1, 101][*interface as usize]).collect::<Vec<u16>>());
}

#[test]
fn simple_and_obsolete_packets_are_read_and_unknown_blocks_skipped() {
    let mut bytes = section(Endianness::Little, 9, 0, &[1_000]);
    bytes.extend(block(0x0bad_cafe, &[1, 2, 3, 4]));
    bytes.extend(block(3, &[&3_u32.to_le_bytes()[..], &[9, 9, 9, 0]].concat()));
    let numbers = [0_u32, 0, 2_000, 2, 77].map(u32::to_le_bytes).concat();
    bytes.extend(block(2, &[&numbers[..], &[8, 8, 0, 0]].concat()));
    let (read, error) = read_one(&bytes);
    assert_eq!(error, None);
    let packets: Vec<(i64, &[u8])> = read.iter().map(|packet| (packet.0, packet.1.as_slice())).collect();
    assert_eq!(packets, [(1_000, &[7; 5][..]), (1_000, &[9; 3]), (2_000, &[8; 2])]);
}

#[test]
fn modified_pcap_is_read_in_both_byte_orders() {
    let written = some_packets(5, 1_000_000_000);
    for (endianness, magic, more) in [
        (Endianness::Little, [0x34, 0xcd, 0xb2, 0xa1], [1, 0, 0, 0, 8, 0, 4, 0]),
        (Endianness::Big, [0xa1, 0xb2, 0xcd, 0x34], [0, 0, 0, 1, 0, 8, 4, 0]),
    ] {
        let plain = pcap(&written, endianness, TsResolution::MicroSecond);
        let mut bytes = [&magic, &plain[4..24]].concat();
        let mut at = 24;
        for (_, data, _) in &written {
            let end = at + 16 + data.len();
            bytes.extend([&plain[at..at + 16], &more, &plain[at + 16..end]].concat());
            at = end;
        }
        let (read, error) = read_one(&bytes);
        assert_eq!(error, None);
        assert_same(&read, &written);
        assert!(read_one(&bytes[..bytes.len() - 1]).1.unwrap().contains("1 byte before the end of a packet"));
    }
}

#[test]
fn captures_of_other_programs_are_named_with_what_converts_them() {
    let erf = [&[0, 0, 0, 0][..], &1_700_000_000_u32.to_le_bytes(), &[2, 4, 0, 82, 0, 0, 0, 64], &[0; 66]].concat();
    let nettl = [&[0x54, 0x52, 0, 0x64, 0][..], &[0; 20]].concat();
    let of_version = |version: [u8; 4]| [&[0xd4, 0xc3, 0xb2, 0xa1][..], &version, &[0; 16]].concat();
    for (bytes, name) in [
        (&b"snoop\0\0\0\0\0\0\x02\0\0\0\x04"[..], "snoop"),
        (b"GMBU\0\x02\x01\0", "Microsoft Network Monitor"),
        (b"RTSS\x0b\x01\x01\0", "Microsoft Network Monitor"),
        (&nettl, "nettl (HP-UX)"),
        (&erf, "a DAG card (ERF)"),
        (&of_version([2, 0, 3, 0]), "an old system (pcap before version 2.4)"),
        (&of_version([1, 0, 4, 0]), "an old system (pcap before version 2.4)"),
        (&of_version([2, 0, 31, 2]), "an old system (pcap before version 2.4)"),
    ] {
        let error = read_one(bytes).1.unwrap();
        assert!(error.contains(&format!("is a capture of {name}, whose format is not read: `editcap")), "{error}");
    }
}

#[test]
fn times_that_are_all_equal_are_said_to_say_nothing() {
    let folder = tempfile::TempDir::new().unwrap();
    let clock = |times: &dyn Fn(u64) -> u64, count: u64| {
        let packets: Vec<Written> = (0..count).map(|at| (times(at), vec![at as u8; 60], 60)).collect();
        let mut out: Vec<Frame> = Vec::new();
        let path = file(&folder, "times.pcap", &little_endian(&packets));
        Capture::new(vec![path]).run(&mut out, &Interrupt::new()).unwrap();
        let notices = out.into_iter().filter_map(|frame| match frame {
            Frame::Notice(notice) if notice.what == "clock" => notice.detail.clone(),
            _ => None,
        });
        notices.collect::<Vec<_>>()
    };
    for time_ns in [0, 1_700_000_000_000_000_000] {
        let said = clock(&|_| time_ns, 700);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("all 700 packets have the same time, which says nothing"), "{said:?}");
    }
    // One that differs is enough, wherever it is; and a few packets may be of one moment.
    for odd in [0, 300, 699] {
        assert_eq!(clock(&|at| 5 + u64::from(at >= odd && odd > 0) + u64::from(at > 0 && odd == 0), 700), [""; 0]);
    }
    assert_eq!(clock(&|_| 7, 9), [""; 0]);
}

#[test]
fn blocks_larger_than_the_buffer_are_read_or_skipped() {
    let mut bytes = section(Endianness::Little, 9, 0, &[1_000]);
    let from = bytes.len();
    bytes.extend(block(0x0bad_cafe, &vec![1; 20 << 20]));
    let large = vec![5; 1 << 20];
    let header = [0_u32, 0, 2_000, 1 << 20, 1 << 20].map(u32::to_le_bytes).concat();
    bytes.extend(block(6, &[&header[..], &large].concat()));
    let (read, error) = read_one(&bytes);
    assert_eq!((read.len(), error), (2, None));
    assert_eq!(read[1].1, large);
    let (read, error) = read_one(&bytes[..10 << 20]);
    assert_eq!(read.len(), 1);
    let missing = from + 12 + (20 << 20) - (10 << 20);
    let expected = format!("is cut at byte {from}, {missing} bytes before the end of a block");
    assert_eq!(error.unwrap().split(": ").nth(1), Some(expected.as_str()));
}

#[test]
fn errors_name_the_file_and_the_offset() {
    let error = |content: &[u8]| read_one(content).1.unwrap();
    assert!(error(b"").contains("x.dat: is empty"));
    assert!(error(b"GET / HTTP/1.1").contains("is no capture: it begins with the text `GET `"));
    for (text, looks) in [
        ("[[device]]\n", "the text `[[de`"),
        ("[scope]\n", "the text `[sco`"),
        ("[INFO] begun\n", "the text `[INF`"),
        ("[\n", "JSON"),
        ("[[1, 2]]", "JSON"),
        ("[{\"time\": 1}]", "JSON"),
        ("{\"time\": 1}", "JSON"),
    ] {
        let fault = error(text.as_bytes());
        assert!(fault.contains(&format!("is no capture: it begins with {looks}, ")), "{fault}");
    }
    assert!(error(&[0x81, 0xa5, b'h']).contains("is no capture"));
    assert!(error(&[0x81, 0xa5, b'h', b'e']).contains("frame stream"));
    let whole = little_endian(&some_packets(3, 0));
    let (read_packets, cut) = read_one(&whole[..whole.len() - 1]);
    assert_eq!(read_packets.len(), 2);
    assert_eq!(cut.unwrap().split(": ").nth(1), Some("is cut at byte 97, 1 byte before the end of a packet"));
    let (mut claims, last) = (whole.clone(), whole.len() - 38);
    claims[last + 8..last + 12].copy_from_slice(&3_000_000_000_u32.to_le_bytes());
    let expected = format!("at byte {last}: a packet claims 3000000016 bytes");
    assert!(error(&claims).contains(&expected), "{}", error(&claims));
    assert!(read(&["/no/such.pcap".into()]).1.unwrap().contains("/no/such.pcap: No such file"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn packets_before_a_cut_are_read(at: prop::sample::Index, big: bool) {
        let written = some_packets(6, 5_000);
        let endianness = if big { Endianness::Big } else { Endianness::Little };
        let whole = pcap(&written, endianness, TsResolution::NanoSecond);
        let at = at.index(whole.len());
        let (read, error) = read_one(&whole[..at]);
        let mut ends = vec![24];
        ends.extend(written.iter().scan(24, |end, (_, data, _)| { *end += 16 + data.len(); Some(*end) }));
        let between = ends.contains(&at);
        prop_assert_eq!(error.is_none(), between);
        assert_same(&read, &written[..ends.iter().filter(|end| **end <= at).count().saturating_sub(1)]);
    }

    #[test]
    fn damaged_captures_yield_no_more_packets_than_fit(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ng: bool,
    ) {
        let pcap = || little_endian(&some_packets(6, 0));
        let mut bytes = if ng { section(Endianness::Little, 6, 0, &[1, 2, 3, 4]) } else { pcap() };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let (read, _) = read_one(&bytes);
        prop_assert!(read.len() <= 40);
    }
}
