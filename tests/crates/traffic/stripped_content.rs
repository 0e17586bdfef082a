//! No byte of content stays in a stripped capture, and the same records are found in it, however streams are cut.

use std::io;

use proptest::collection::vec;
use proptest::prelude::*;
use sizeleak_frame::Packet;
use sizeleak_traffic::strip::{StripOptions, StripReport, Stripper};
use support::injected::{self, Syn, udp};

const GATEWAY: [u8; 4] = [192, 168, 1, 20];
const SERVICE: [u8; 4] = [203, 0, 113, 1];
const OTHER: [u8; 4] = [192, 168, 1, 99];

/// Ethernet, IPv4 and TCP without options.
const HEADERS: usize = 54;

fn tcp(destination: [u8; 4], sequence: u32, payload: &[u8]) -> Vec<u8> {
    injected::tcp(SERVICE, destination, [443, 50_000], sequence, Syn::Clear, payload)
}

/// What becomes of packets a millisecond apart.
fn stripped(options: &StripOptions, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, StripReport) {
    stripped_at(options, &(1..).zip(packets.iter().cloned()).collect::<Vec<_>>())
}

/// What becomes of packets at these milliseconds.
fn stripped_at(options: &StripOptions, packets: &[(i64, Vec<u8>)]) -> (Vec<Vec<u8>>, StripReport) {
    let options = StripOptions { gateway: vec!["192.168.1.20".into()], ..options.clone() };
    let mut stripper = Stripper::new(&options).unwrap();
    let mut written = Vec::new();
    let mut write = |packet: Packet<'_>| -> io::Result<()> {
        written.push(packet.data.to_vec());
        Ok(())
    };
    for ((at, data), number) in packets.iter().zip(1..) {
        let (time_ns, original_length) = (at * 1_000_000, data.len() as u32);
        let packet = Packet { time_ns, link_type: 1, original_length, data, capture: 0, number };
        stripper.packet(packet, &mut write).unwrap();
    }
    let report = stripper.finish(&mut write).unwrap();
    (written, report)
}

/// Bytes of which none is zero.
fn content(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    vec(1u8.., length)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_a_stream_only_record_headers_stay_however_it_is_cut(
        bodies in vec(content(1..1500), 2..8), skipped in prop_oneof![Just(0), 0usize..1000], first: u32,
        cuts in vec(1usize..1460, 1..40), swapped in vec(0usize..40, 0..4), repeated in vec(0usize..40, 0..4),
        noise in content(100..1000),
    ) {
        let mut stream = Vec::new();
        let mut is_header = Vec::new();
        for body in &bodies {
            stream.extend([23, 3, 3, (body.len() >> 8) as u8, body.len() as u8]);
            stream.extend(body);
            is_header.resize(is_header.len() + 5, true);
            is_header.resize(stream.len(), false);
        }
        let begin = skipped.min(bodies[0].len());
        let mut at = begin;
        let mut segments = Vec::new();
        for cut in cuts.iter().cycle() {
            let end = stream.len().min(at + cut);
            segments.push(at..end);
            at = end;
            if at == stream.len() {
                break;
            }
        }
        for index in swapped {
            if index + 1 < segments.len() {
                segments.swap(index, index + 1);
            }
        }
        for index in repeated {
            if let Some(segment) = segments.get(index).cloned() {
                segments.insert((index + 2).min(segments.len()), segment);
            }
        }
        let packet = |place: &std::ops::Range<usize>| {
            tcp(GATEWAY, first.wrapping_add(place.start as u32), &stream[place.clone()])
        };
        let mut packets: Vec<Vec<u8>> = segments.iter().map(packet).collect();
        packets.push(tcp(OTHER, 1, &noise));
        let (written, report) = stripped(&StripOptions::default(), &packets);
        prop_assert_eq!((report.differing_flows, report.differing_notices), (0, 0));
        prop_assert_eq!(written.len(), packets.len());
        let mut kept = vec![false; stream.len()];
        for (packet, place) in written.iter().zip(&segments) {
            for (byte, at) in packet[HEADERS..].iter().zip(place.clone()) {
                prop_assert!(*byte == 0 || (is_header[at] && *byte == stream[at]), "{at}: {byte}");
                kept[at] |= *byte == stream[at];
            }
        }
        if begin == 0 {
            // Two headers in a chain prove all of them. From the middle on, there may be none that is proven.
            prop_assert!(is_header.iter().zip(&kept).all(|(is_header, kept)| !is_header || *kept));
        }
        prop_assert!(written.last().unwrap()[HEADERS..].iter().all(|byte| *byte == 0));
        for (packet, written) in packets.iter().zip(&written) {
            prop_assert_eq!(packet.len(), written.len());
            prop_assert_eq!(&packet[..HEADERS - 4], &written[..HEADERS - 4], "all but the checksum");
        }
    }

    #[test]
    fn nothing_of_plain_text_stays(text in content(1..3000)) {
        let packets = [tcp(GATEWAY, 0, b"GET /lamp HTTP/1.1\r\n\r\n"), tcp(GATEWAY, 22, &text)];
        let (written, report) = stripped(&StripOptions::default(), &packets);
        prop_assert!(written.iter().all(|packet| packet[HEADERS..].iter().all(|byte| *byte == 0)));
        prop_assert_eq!((report.differing_flows, report.kept_bytes), (0, 0));
    }
}

#[test]
fn hellos_stay_and_the_rest_of_a_handshake_does_not() {
    let extensions = b"\0\0\0\x0c\0\x0a\0\0\x07hub.iot";
    let hello = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 16], extensions].concat();
    let message = |kind: u8, body: &[u8]| [&[kind, 0, 0, body.len() as u8], body].concat();
    let record = |body: &[u8]| [&[22, 3, 1, 0, body.len() as u8], body].concat();
    let (hello, certificate) = (record(&message(1, &hello)), record(&message(11, b"the certificate of somebody")));
    let stream = [hello.clone(), certificate].concat();
    let packets: Vec<Vec<u8>> = stream.chunks(50).zip(0..).map(|(bytes, at)| tcp(GATEWAY, at * 50, bytes)).collect();
    let (written, report) = stripped(&StripOptions::default(), &packets);
    let stays: Vec<u8> = written.iter().flat_map(|packet| packet[HEADERS..].to_vec()).collect();
    let (hello_stays, rest) = stays.split_at(hello.len());
    assert_eq!(hello_stays, hello);
    assert_eq!(rest[..9], stream[hello.len()..][..9], "the headers of the record and of the message");
    assert!(rest[9..].iter().all(|byte| *byte == 0));
    assert_eq!((report.differing_flows, report.kept_bytes), (0, hello.len() as u64 + 9));
}

/// Zeroes in the place of text would be the length of an empty message.
#[test]
fn text_before_the_messages_of_homekit_is_gone_and_none_of_them() {
    let text = [&b"POST /pair-verify HTTP/1.1\r\nContent-Length: 700\r\n\r\n"[..], &[b'x'; 700]].concat();
    let message = |length: u16| [&length.to_le_bytes()[..], &vec![9; usize::from(length) + 16]].concat();
    let stream = [text.clone(), message(60), message(1024), message(30)].concat();
    for size in [100, 300, 1400] {
        // Messages begin in segments of their own.
        let (before, behind) = stream.split_at(text.len());
        let chunks: Vec<&[u8]> = before.chunks(size).chain(behind.chunks(size)).collect();
        let mut sequence = 100;
        let packets: Vec<Vec<u8>> = chunks
            .into_iter()
            .map(|chunk| {
                sequence += chunk.len() as u32;
                tcp(GATEWAY, sequence - chunk.len() as u32, chunk)
            })
            .collect();
        let (written, report) = stripped(&StripOptions::default(), &packets);
        assert_eq!((report.records, report.differing_flows, report.differing_notices), (3, 0, 0), "{size}");
        let stays: Vec<u8> = written.iter().flat_map(|packet| packet[HEADERS..].to_vec()).collect();
        assert!(stays[b"POST /pair-".len()..].iter().filter(|byte| **byte != 0).count() < 40, "{size}");
    }
}

#[test]
fn of_datagrams_record_headers_stay_and_names_on_request() {
    let dtls = [&[23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, 0, 40][..], &[9; 40]].concat();
    let dns = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03hub\x07example\0\0\x01\0\x01";
    let packets = [
        udp(SERVICE, GATEWAY, [5684, 50_000], &dtls),
        udp(GATEWAY, [192, 168, 1, 1], [50_001, 53], dns),
        udp(OTHER, [192, 168, 1, 1], [50_001, 53], dns),
    ];
    let (written, report) = stripped(&StripOptions::default(), &packets);
    assert_eq!((&written[0][42..55], &written[0][55..]), (&dtls[..13], &[0; 40][..]));
    assert!(written[1..].iter().all(|packet| packet[42..].iter().all(|byte| *byte == 0)));
    assert_eq!(report.differing_flows, 0);
    let options = StripOptions { keep_dns: true, drop_others: true, ..StripOptions::default() };
    let (written, report) = stripped(&options, &packets);
    assert_eq!((written[1].as_slice(), written.len(), report.dropped_packets), (packets[1].as_slice(), 2, 1));
}

#[test]
fn headers_of_datagrams_with_odd_times_stay() {
    let dtls = |number: u8, bytes: u8| {
        let header = [23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, number, 0, bytes];
        udp(SERVICE, GATEWAY, [5684, 50_000], &[&header[..], &vec![9; bytes.into()]].concat())
    };
    let other = |number: u8| udp(SERVICE, GATEWAY, [5685, 50_001], &dtls(number, 60)[42..]);
    let odd = [(20, 3_600_000), (25, -3_600_000)];
    let at = |number: u8| odd.iter().find(|(odd, _)| *odd == number).map_or(0, |(_, ahead)| *ahead);
    let packets: Vec<(i64, Vec<u8>)> = (0..60)
        .flat_map(|number| {
            let ms = 10_000_000 + 500 * i64::from(number);
            [(ms + at(number), dtls(number, 40 + number)), (ms + 1, other(number))]
        })
        .collect();
    let (written, report) = stripped_at(&StripOptions::default(), &packets);
    assert_eq!((report.differing_flows, report.records), (0, 120));
    for (written, (_, packet)) in written.iter().zip(&packets) {
        assert_eq!((&written[42..55], written[55..].iter().all(|byte| *byte == 0)), (&packet[42..55], true));
    }
}

#[test]
fn content_of_fragments_is_gone_and_counted() {
    let record = [&[23, 3, 3, 0, 80][..], &[9; 80]].concat();
    let whole = tcp(GATEWAY, 0, &record);
    let fragment = |offset: usize, bytes: &[u8], more: u16| {
        let mut packet = [&whole[..34], bytes].concat();
        packet[16..18].copy_from_slice(&(20 + bytes.len() as u16).to_be_bytes());
        packet[20..22].copy_from_slice(&(more << 13 | (offset / 8) as u16).to_be_bytes());
        packet
    };
    let (first, second) = whole[34..].split_at(48);
    let packets = [fragment(0, first, 1), fragment(48, second, 0)];
    let (written, report) = stripped(&StripOptions::default(), &packets);
    assert!(written[0][HEADERS..].iter().chain(&written[1][34..]).all(|byte| *byte == 0));
    assert_eq!((report.fragmented_segments, report.differing_flows), (1, 1), "its record is lost");
}

/// A datagram or segment between the gateway and its service, in IP without options or a checksum.
fn in_ip(protocol: u8, flags_and_offset: u16, content: &[u8]) -> Vec<u8> {
    let length = (20 + content.len()) as u16;
    let header =
        [&[0x45, 0][..], &length.to_be_bytes(), &[0, 7], &flags_and_offset.to_be_bytes(), &[64, protocol, 0, 0]];
    [&header.concat()[..], &SERVICE, &GATEWAY, content].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every checksum that is over content is another in each of the two.
    #[test]
    fn captures_that_differ_in_content_only_are_equal_when_stripped(
        contents in vec((content(200), content(200)), 6), checksums: [[u16; 2]; 6],
    ) {
        const MORE_FRAGMENTS: u16 = 0x2000;
        let of = |which: usize| {
            // A datagram with 0 has none.
            let sums = checksums.map(|both| (both[which] | 1).to_be_bytes());
            let body = |at: usize| if which == 0 { &contents[at].0 } else { &contents[at].1 };
            let tcp = |at: usize| [&[1, 187, 0xc3, 0x50, 0, 0, 0, 9, 0, 0, 0, 5, 0x50, 16, 1, 0][..], &sums[at], &[0, 0], body(at)].concat();
            let udp = |at: usize| [&[0x13, 0x88, 0xc3, 0x50, 0, 208][..], &sums[at], body(at)].concat();
            let ethernet = |ip: Vec<u8>| [&[2; 12][..], &[8, 0], &ip].concat();
            let vxlan = |at: usize| {
                let inside = [&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(in_ip(6, 0, &tcp(at)))].concat();
                let length = ((8 + inside.len()) as u16).to_be_bytes();
                [&[0x9c, 0x40, 0x12, 0xb5][..], &length, &sums[at], &inside].concat()
            };
            let gre = |at: usize| [&[0x80, 0, 8, 0][..], &sums[at], &[0, 0], &in_ip(17, 0, &udp(at))].concat();
            stripped(&StripOptions::default(), &[
                ethernet(in_ip(6, 0, &tcp(0))),
                ethernet(in_ip(17, 0, &udp(1))),
                ethernet(in_ip(6, MORE_FRAGMENTS, &tcp(2))),
                ethernet(in_ip(17, MORE_FRAGMENTS, &udp(3))),
                ethernet(in_ip(47, 0, &gre(4))),
                ethernet(in_ip(17, 0, &vxlan(5))),
            ]).0
        };
        prop_assert_eq!(of(0), of(1));
    }
}
