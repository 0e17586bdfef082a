//! The capture reader: bytes as a capture file.

use std::io::Cursor;

use sizeleak_capture::CaptureReader;

/// Reads bytes as a pcap or pcapng file.
pub fn capture_reader(bytes: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(Box::new(Cursor::new(bytes.to_vec()))) else { return };
    let (mut packets, mut data, mut skipped) = (0, 0, 0);
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                packets += 1;
                data += packet.data.len();
            }
            Err(damage) if damage.skipped_bytes().is_some() => {
                skipped += damage.skipped_bytes().unwrap_or_default() as usize;
            }
            Ok(None) | Err(_) => break,
        }
        // Each packet has a header at least, and no byte of a file is in two packets or skipped and read.
        assert!(packets * 12 + data + skipped <= bytes.len(), "more packets than the file has room for");
    }
    assert!(matches!(reader.next_packet(), Ok(None)), "something after the end");
}
