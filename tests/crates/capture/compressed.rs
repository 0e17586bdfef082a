//! Compressed captures are recognised by content; damage is one error; memory stays bounded.

use std::io::Write;

use super::written::{assert_same, little_endian, read_one, some_packets};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn compression_is_recognised_by_content() {
    let written = some_packets(300, 1_000);
    let (first, second) = written.split_at(100);
    let whole = little_endian(first);
    let rest = &little_endian(second)[24..];
    let members: [[Vec<u8>; 2]; 4] =
        [[gzip(&whole), gzip(rest)], [xz(&whole), xz(rest)], [lz4(&whole), lz4(rest)], [zstd(&whole), zstd(rest)]];
    for compressed in members {
        let (read, error) = read_one(&compressed.concat());
        assert_eq!(error, None);
        assert_same(&read, &written);
        let cut = compressed[0].len() / 2;
        let (read, error) = read_one(&compressed[0][..cut]);
        assert!(error.is_some());
        assert_same(&read, &written[..read.len()]);
    }
}

#[test]
fn zeros_behind_what_is_compressed_are_padding() {
    let written = some_packets(300, 1_000);
    let (first, second) = written.split_at(100);
    let [whole, rest] = [little_endian(first), little_endian(second)[24..].to_vec()];
    for name in ["gzip", "xz", "lz4", "zstd"] {
        let compress = |bytes: &[u8]| match name {
            "gzip" => gzip(bytes),
            "xz" => xz(bytes),
            "lz4" => lz4(bytes),
            _ => zstd(bytes),
        };
        for zeros in [4, 8, 512, 10_240, 100_000, 1, 3, 4_095] {
            let padding = vec![0; zeros];
            let (read, error) = read_one(&[&compress(&whole)[..], &padding].concat());
            assert_eq!((read.len(), error), (100, None), "{name} {zeros}");
            // And between two members.
            let both = [&compress(&whole)[..], &padding, &compress(&rest), &padding].concat();
            let (read, error) = read_one(&both);
            assert_eq!(error, None, "{name} {zeros}");
            assert_same(&read, &written);
            // What else follows is damage, and so is a member that is cut in front of zeros.
            for odd in [&b"\0\0\0\0odd bytes that are no member"[..], b"odd bytes that are no member"] {
                let (read, error) = read_one(&[&compress(&whole)[..], odd].concat());
                assert!(error.is_some() && read.len() == 100, "{name}");
            }
            // A frame of LZ4 ends with zeros, and may have no checksum.
            let cut = compress(&whole);
            let (_, error) = read_one(&[&cut[..cut.len() - 9], &padding].concat());
            assert!(error.is_some() || name == "lz4", "{name} {zeros}");
        }
    }
}

#[test]
fn packets_decoded_before_damage_are_read() {
    let written = some_packets(100, 1_000);
    for name in ["gzip", "xz"] {
        let bytes = little_endian(&written);
        let mut damaged = if name == "xz" { xz(&bytes) } else { gzip(&bytes) };
        // In the sum of the content, or the footer.
        let at = damaged.len() - 6;
        damaged[at] ^= 1;
        let (read, error) = read_one(&damaged);
        assert!(error.is_some(), "{name}");
        assert_same(&read, &written);
    }
}

#[test]
fn packets_decoded_before_damage_in_the_middle_are_read() {
    // More than Zstandard's largest blocks, of bytes that can be compressed, but not much.
    let (mut written, mut noise) = (some_packets(6_000, 1_000), 7_u32);
    for byte in written.iter_mut().flat_map(|(_, data, _)| data) {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (noise >> 27) as u8;
    }
    let bytes = little_endian(&written);
    for (name, whole) in [("gzip", gzip(&bytes)), ("xz", xz(&bytes)), ("zstd", zstd(&bytes))] {
        for at in (1..20).map(|part| whole.len() * part / 20) {
            let mut damaged = whole.clone();
            damaged[at..at + 8].fill(0xff);
            let (read, error) = read_one(&damaged);
            // As much as before a cut, whose last packet may be damaged in its place.
            let (before, _) = read_one(&whole[..at]);
            // These frames of Zstandard have no checksum.
            assert!(error.is_some() || name == "zstd", "{name} {at}");
            assert!(read.len() >= before.len(), "{name} {at}: {} {}", read.len(), before.len());
            assert_same(&read[..before.len()], &written[..before.len()]);
        }
    }
}

#[test]
fn a_cut_member_behind_damage_is_said() {
    let whole = gzip(&little_endian(&some_packets(100, 1_000)));
    // The header of the second member's capture is damage, behind which packets are found.
    for cut in [1, 5, 12] {
        let (read, error) = read_one(&[&whole[..], &whole, &whole[..cut]].concat());
        assert_eq!((read.len(), error.is_some()), (200, true), "{cut}");
    }
}

#[test]
fn skippable_frames_are_skipped_anywhere() {
    let written = some_packets(300, 1_000);
    let whole = little_endian(&written);
    let skipped = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"any"].concat();
    let (first, rest) = whole.split_at(5_000);
    for [first, rest] in [[lz4(first), lz4(rest)], [zstd(first), zstd(rest)]] {
        let stream = [&skipped, &skipped, &first, &skipped, &rest, &skipped].map(Vec::as_slice).concat();
        let (read, error) = read_one(&stream);
        assert_eq!(error, None);
        assert_same(&read, &written);
    }
    assert!(read_one(&skipped[..9]).1.unwrap().contains("cut"));
}

#[test]
fn captures_that_need_too_much_memory_are_refused() {
    // Valid, but with a window (Zstandard) or dictionary (XZ) of 2 GiB.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0];
    assert!(read_one(&zstd).1.unwrap().contains("memory"));
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(&little_endian(&some_packets(3, 0))).unwrap();
    let mut xz = encoder.finish().unwrap();
    // After the stream header of 12 bytes: size of the block header, flags, filter with dictionary size, checksum.
    let end = 12 + (usize::from(xz[12]) + 1) * 4 - 4;
    assert_eq!(xz[14..16], [0x21, 1]);
    xz[16] = 38;
    let mut checksum = flate2::Crc::new();
    checksum.update(&xz[12..end]);
    xz[end..end + 4].copy_from_slice(&checksum.sum().to_le_bytes());
    let error = read_one(&xz).1.unwrap();
    assert!(error.contains("mem"), "{error}");
}

#[test]
fn every_packet_of_a_decompression_bomb_is_read() {
    // 16 MiB of zeros: an empty packet at time 0 for every 16 of them.
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&little_endian(&[])).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..16 {
        encoder.write_all(&zeros).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 20_000);
    let (read, error) = read_one(&bomb);
    assert_eq!((read.len(), error), (1 << 20, None));
}
