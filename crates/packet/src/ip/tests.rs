//! Tests of `ip`.

use etherparse::PacketBuilder;

use super::*;

fn packet(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ipv4([1, 2, 3, 4], [5, 6, 7, 8], 64).udp(1, 2).write(&mut bytes, payload).unwrap();
    bytes
}

fn read(bytes: &[u8], original_length: u32) -> Option<IpPacket<'_>> {
    IpPacket::read(CapturedBytes::frame(bytes, original_length))
}

#[test]
fn lengths_are_those_on_the_wire() {
    let whole = packet(&[7; 30]);
    let lengths = |bytes: &[u8], original_length| {
        let payload = read(bytes, original_length).unwrap().payload.bytes;
        (payload.length(), payload.data().len())
    };
    assert_eq!(lengths(&whole, 58), (38, 38));
    assert_eq!(lengths(&whole[..28], 58), (38, 8), "cut by the snaplen");
    assert_eq!(lengths(&[&whole[..], &[0; 9]].concat(), 67), (38, 38), "padded");
    let mut offloaded = whole.clone();
    offloaded[2..4].copy_from_slice(&[0, 0]);
    assert_eq!(lengths(&offloaded, 90), (70, 38));
    let mut lying = whole.clone();
    lying[2..4].copy_from_slice(&29_455_u16.to_be_bytes());
    assert_eq!(lengths(&lying, 58), (38, 38), "no longer than its frame");
    assert_eq!(lengths(&lying[..40], 58), (38, 20));
    assert_eq!(read(&whole[..19], 58), None);
}

#[test]
fn ipv4_fragments_have_their_identification_and_offset() {
    let mut part = packet(&[7; 30]);
    part[4..8].copy_from_slice(&[0x12, 0x34, 0x20 | 1, 2]);
    let packet = read(&part, 58).unwrap();
    assert_eq!(packet.fragment, Some(Fragment { identification: 0x1234, offset: 0x102 * 8, is_last: false }));
    assert_eq!((packet.payload.protocol, packet.payload.bytes.length()), (17, 38));
}

#[test]
fn extension_headers_after_a_fragment_header_are_payload() {
    // Next header 60, destination options, belongs to the whole packet: a later fragment has arbitrary data there.
    let mut part = vec![0x60, 0, 0, 0, 0, 24, 44, 64];
    part.extend([0; 32]);
    part.extend([60, 0, 0, 8, 0, 0, 0, 9]);
    part.extend([0xff; 16]);
    let packet = read(&part, 64).unwrap();
    assert_eq!(packet.fragment, Some(Fragment { identification: 9, offset: 8, is_last: true }));
    assert_eq!(packet.payload, IpPayload { protocol: 60, bytes: CapturedBytes::new(&[0xff; 16], 16) });
}

#[test]
fn cut_extension_headers_leave_no_payload_and_no_fragment() {
    // A routing header that announces destination options, which the packet does not hold.
    let mut cut = vec![0x60, 0, 0, 0, 0, 8, 43, 64];
    cut.extend([0; 32]);
    cut.extend([60, 0, 4, 0, 0, 0, 0, 0]);
    let packet = read(&cut, 48).unwrap();
    assert_eq!((packet.fragment, packet.payload.bytes.data()), (None, &[][..]));
    cut[40] = 44;
    assert_eq!(read(&cut, 48).unwrap().fragment, None);
}

/// A packet of IPv6 with extension headers, each of which names the next one, and then TCP.
fn extended(headers: &[(u8, u8)], content: &[u8]) -> Vec<u8> {
    let next = |at: usize| headers.get(at).map_or(6, |(kind, _)| *kind);
    let mut rest = Vec::new();
    for (at, (_, units)) in headers.iter().enumerate() {
        rest.extend([next(at + 1), *units, 1, 4, 0, 0, 0, 0]);
        rest.extend(vec![0; 8 * usize::from(*units)]);
    }
    rest.extend(content);
    let length = (rest.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, length[0], length[1], next(0), 64][..], &[0; 32], &rest].concat()
}

#[test]
fn extension_headers_of_later_standards_are_skipped() {
    let many = vec![(140, 0); 4_000];
    let [first, both, all] = [&[(140, 0)][..], &[(135, 2), (60, 0)], &[(0, 0), (43, 1), (139, 0), (60, 1), (140, 3)]];
    for headers in [first, both, all, &many] {
        let bytes = extended(headers, &[9; 20]);
        let payload = read(&bytes, 0).unwrap().payload;
        assert_eq!(payload, IpPayload { protocol: 6, bytes: CapturedBytes::new(&[9; 20], 20) }, "{}", headers.len());
    }
    // One that is cut stays, and so does one of an experiment, whose form is not known.
    let cut = extended(&[(60, 0), (135, 9)], &[]);
    assert_eq!(read(&cut[..70], cut.len() as u32).unwrap().payload.protocol, 135);
    assert_eq!(read(&extended(&[(253, 0)], &[9; 20]), 0).unwrap().payload.protocol, 253);
}

#[test]
fn fragments_behind_extension_headers_of_later_standards_are_fragments() {
    let mut bytes = extended(&[(135, 1), (44, 0)], &[9; 16]);
    bytes[40 + 16 + 2..40 + 16 + 8].copy_from_slice(&[0, 8, 0, 0, 0, 9]);
    let packet = read(&bytes, 0).unwrap();
    assert_eq!(packet.fragment, Some(Fragment { identification: 9, offset: 8, is_last: true }));
    assert_eq!((packet.payload.protocol, packet.payload.bytes.length()), (6, 16));
}
