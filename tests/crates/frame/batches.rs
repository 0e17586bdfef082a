//! Rows of batches, and the buffers that they share.

use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::{BATCH_BYTES, Direction, OwnedSegment, Packet, Packets, Segment, Segments};

/// Batches with at least this many bytes keep sharing.
const MIN_SHARED_BYTES: usize = BATCH_BYTES / 2;

fn buffers() -> [Arc<Vec<u8>>; 2] {
    [3, 5].map(|factor| Arc::new((0..200).map(|at| (at * factor) as u8).collect()))
}

/// The time, number and buffer of each packet.
fn packets() -> impl Strategy<Value = Vec<(i64, u64, bool)>> {
    prop::collection::vec(any::<(i64, u64, bool)>(), 0..60)
}

proptest! {
    #[test]
    fn rows_come_back_in_order_and_survive_detaching(packets in packets()) {
        let buffers = buffers();
        let (mut batch, mut expected) = (Packets::new(), Vec::new());
        for (at, (time_ns, number, in_first)) in packets.into_iter().enumerate() {
            let buffer = &buffers[usize::from(in_first)];
            let data = &buffer[at..2 * at];
            let packet = Packet { time_ns, link_type: 1, original_length: at as u32, data, capture: 7, number };
            expected.push(packet);
            if at.is_multiple_of(13) { batch.push(packet) } else { batch.push_shared(packet, buffer) }
        }
        prop_assert!(batch.iter().eq(expected.iter().copied()));
        prop_assert_eq!(batch.iter().len(), expected.len());
        prop_assert_eq!(batch.data_bytes(), expected.iter().map(|packet| packet.data.len()).sum::<usize>());
        let mut rest = batch.iter();
        for packet in &expected {
            prop_assert_eq!(rest.peek(), Some(*packet));
            rest.advance();
        }
        prop_assert_eq!(rest.peek(), None);
        batch.detach();
        prop_assert!(batch.iter().eq(expected.iter().copied()));
        prop_assert!(!batch.shares_buffers());
    }
}

/// Segments with payloads of these lengths in one buffer, and that buffer.
fn shared_segments(lengths: &[usize]) -> (Segments, Arc<Vec<u8>>) {
    let buffer = Arc::new((0..lengths.iter().sum()).map(|at: usize| at as u8).collect::<Vec<u8>>());
    let (mut packets, mut segments, mut rest) = (Packets::new(), Segments::new(), &buffer[..]);
    for (length, number) in lengths.iter().zip(1..) {
        let (data, behind) = rest.split_at(*length);
        rest = behind;
        let length = *length as u32;
        packets.push_shared(
            Packet { time_ns: 0, link_type: 1, original_length: length, data, capture: 0, number },
            &buffer,
        );
        let (direction, flags) = (Direction::ToGateway, Segment::ACK);
        let segment = Segment {
            time_ns: 5,
            flow: number,
            direction,
            sequence: 9,
            flags,
            length,
            payload: data,
            acknowledgement: None,
        };
        segments.push_from(segment, &packets);
    }
    (segments, buffer)
}

#[test]
fn only_small_batches_are_copied_by_detach() {
    for (lengths, is_shared) in
        [(vec![], false), (vec![3, 0, MIN_SHARED_BYTES - 4], false), (vec![MIN_SHARED_BYTES - 7, 7], true)]
    {
        let (mut segments, buffer) = shared_segments(&lengths);
        let before = segments.clone();
        segments.detach();
        assert_eq!(segments, before);
        drop(before);
        assert_eq!((segments.shares_buffers(), Arc::strong_count(&buffer)), (is_shared, 1 + usize::from(is_shared)));
    }
}

#[test]
fn a_copy_is_the_same_segment() {
    let (direction, payload) = (Direction::ToGateway, &[0, 1, 2, 3][..]);
    let segment = Segment {
        time_ns: 1,
        flow: 2,
        direction,
        sequence: u32::MAX,
        flags: Segment::SYN,
        length: 6,
        payload,
        acknowledgement: None,
    };
    assert_eq!(OwnedSegment::of(&segment).segment(), segment);
}

/// The bytes of a packet, beside the buffer that it may share.
type Bytes<'a> = (&'a [u8], Option<&'a Arc<Vec<u8>>>);

fn packets_in(rows: &[Bytes<'_>]) -> Packets {
    let mut batch = Packets::new();
    for (data, buffer) in rows {
        let packet = Packet { time_ns: 0, link_type: 1, original_length: 9, data, capture: 0, number: 1 };
        match buffer {
            Some(buffer) => batch.push_shared(packet, buffer),
            None => batch.push(packet),
        }
    }
    batch
}

#[test]
fn bytes_in_a_shared_buffer_are_not_copied() {
    let buffers = [Arc::new(b"first".to_vec()), Arc::new(b"second".to_vec())];
    let [first, second] = &buffers;
    let packets = packets_in(&[
        (&first[1..3], Some(first)),
        (&first[3..4], Some(first)),
        (&second[2..], Some(second)),
        (&first[4..], Some(second)),
        (b"own", None),
    ]);
    let mut segments = Segments::new();
    for packet in &packets {
        let segment = Segment {
            time_ns: 0,
            flow: 1,
            direction: Direction::ToGateway,
            sequence: 0,
            flags: 0,
            length: 9,
            payload: packet.data,
            acknowledgement: None,
        };
        segments.push_from(segment, &packets);
    }
    // Each batch holds each buffer once, and copies what is in none.
    assert_eq!(buffers.each_ref().map(Arc::strong_count), [3, 3]);
    let of_packets: Vec<&[u8]> = packets.iter().map(|packet| packet.data).collect();
    let of_segments: Vec<&[u8]> = segments.iter().map(|segment| segment.payload).collect();
    for rows in [of_packets, of_segments] {
        assert_eq!(rows, [&b"ir"[..], b"s", b"cond", b"t", b"own"]);
        let is_within = |row: &[u8], buffer: &[u8]| buffer.as_ptr_range().contains(&row.as_ptr());
        let shared: Vec<bool> = rows.iter().map(|row| buffers.iter().any(|buffer| is_within(row, buffer))).collect();
        assert_eq!(shared, [true, true, true, false, false]);
    }
}
