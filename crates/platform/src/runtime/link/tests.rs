//! Tests of `channel`.

use std::sync::Arc;

use sizeleak_frame::{BATCH_BYTES, Direction, Notice, Packet, Packets, Segment, Segments, SkippedPackets};

use super::*;

/// A batch of one packet that fills a reader's buffer.
fn packets(buffer: &Arc<Vec<u8>>) -> Packets {
    let (mut packets, length) = (Packets::new(), buffer.len() as u32);
    let packet = Packet { time_ns: 0, link_type: 1, original_length: length, data: buffer, capture: 0, number: 1 };
    packets.push_shared(packet, buffer);
    packets
}

/// A batch of one segment that fills a reader's buffer.
fn segments(buffer: &Arc<Vec<u8>>) -> Segments {
    let (packets, mut segments, length) = (packets(buffer), Segments::new(), buffer.len() as u32);
    let (direction, flags) = (Direction::ToGateway, Segment::ACK);
    let segment =
        Segment { time_ns: 0, flow: 1, direction, sequence: 0, flags, length, payload: buffer, acknowledgement: None };
    segments.push_from(segment, &packets);
    segments
}

#[test]
fn waiting_frames_hold_no_reader_buffer() {
    for of_packets in [true, false] {
        let batch = |buffer| if of_packets { packets(buffer).into() } else { Frame::from(segments(buffer)) };
        let (mut output, mut input) = channel(1);
        let [few, many] = [100, BATCH_BYTES].map(|bytes| Arc::new(vec![7; bytes]));
        output.emit_all(&mut vec![batch(&few)]).unwrap();
        assert_eq!((Arc::strong_count(&few), output.parcel.len()), (1, 1), "copied, and waits for more");
        output.emit_all(&mut vec![batch(&many)]).unwrap();
        assert!(output.parcel.is_empty(), "sent at once");
        let mut parcel = Vec::new();
        input.receive(&mut parcel, &mut || {}).unwrap();
        assert!(parcel == [batch(&few), batch(&many)]);
        drop(parcel);
        assert_eq!(Arc::strong_count(&many), 1);
    }
}

#[test]
fn parcel_is_sent_once_it_holds_enough_bytes() {
    let (mut output, mut input) = channel(9);
    let data = vec![7; MAX_BYTES / 4];
    for number in 1..=9 {
        let (mut batch, original_length) = (Packets::new(), data.len() as u32);
        batch.push(Packet { time_ns: 0, link_type: 1, original_length, data: &data, capture: 0, number });
        output.emit_all(&mut vec![batch.into()]).unwrap();
    }
    assert_eq!(output.parcel.len(), 1);
    for parcels in [4, 4] {
        let mut parcel = Vec::new();
        input.receive(&mut parcel, &mut || {}).unwrap();
        assert_eq!(parcel.len(), parcels);
    }
}

#[test]
fn parcel_of_skipped_packets_is_sent_once_it_has_enough_batches() {
    let (mut output, mut input) = channel(1);
    let mut parcel = Vec::new();
    for sent in 1..=BATCH_ROWS {
        let mut batch = Packets::new();
        batch.skip_packets(SkippedPackets { packets: 1 << 20, bytes: 0, last_ns: Some(0) });
        assert!(input.receiver.is_empty(), "sent after {} batches", sent - 1);
        output.emit_all(&mut vec![batch.into()]).unwrap();
    }
    input.receive(&mut parcel, &mut || {}).unwrap();
    assert_eq!(parcel.len(), BATCH_ROWS);
}

#[test]
fn frames_keep_their_order() {
    let (mut output, mut input) = channel(9);
    let numbered = |flow| {
        let (time_ns, stage, what) = (None, "capture".into(), "gap".into());
        Frame::from(Notice { time_ns, stage, flow: Some(flow), what, bytes: None, detail: None })
    };
    let mut frames = (0..).map(numbered);
    for several in [1, 3, BATCH_ROWS - 1, 0, 2, BATCH_ROWS + 9] {
        let mut together = frames.by_ref().take(several).collect();
        output.emit_all(&mut together).unwrap();
        assert!(together.is_empty());
        output.emit_all(&mut vec![frames.next().unwrap()]).unwrap();
    }
    output.flush().unwrap();
    drop(output);
    let mut received = Vec::new();
    while input.receive(&mut received, &mut || {}).is_ok() {}
    assert_eq!(received.len(), 2 * BATCH_ROWS + 20);
    assert!(received.into_iter().eq((0..).map(numbered).take(2 * BATCH_ROWS + 20)));
}
