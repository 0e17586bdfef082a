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
