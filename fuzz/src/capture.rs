//! The capture reader: bytes as a capture file.

use std::io::Cursor;

use sizeleak_capture::CaptureReader;

/// Reads bytes as a pcap or pcapng file.
pub fn capture_reader(bytes: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(Box::new(Cursor::new(bytes.to_vec()))) else { return };
    let (mut packets, mut data) = (0, 0);
    while let Ok(Some(packet)) = reader.next_packet() {
        packets += 1;
        data += packet.data.len();
        // Each packet has a header at least, and no byte of a file is in two packets.
        assert!(packets * 12 + data <= bytes.len(), "more packets than the file has room for");
    }
    assert!(matches!(reader.next_packet(), Ok(None)), "something after the end");
}
