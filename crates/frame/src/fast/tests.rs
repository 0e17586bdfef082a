//! Records against serde, and batches there and back in any encoding.

use proptest::prelude::*;

use super::*;
use crate::codec;

/// Integers of every length in bits.
fn integer() -> impl Strategy<Value = u64> + Clone {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn time() -> impl Strategy<Value = i64> + Clone {
    (integer(), prop::bool::weighted(0.1))
        .prop_map(|(time, is_negative)| (time >> 1).cast_signed() ^ -i64::from(is_negative))
}

/// Sizes around those where the encoding takes one more byte, and all others.
fn size() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0u64..=0x101, 0xfff0u64..=0x1_0001, integer()]
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![20 => 0usize..300, 1 => Just(65_535), 1 => Just(65_536)].prop_map(|length| vec![7; length])
}

/// Integers that take nine bytes, as the times and flows of records usually do, and the greatest that does not.
fn nine_bytes() -> impl Strategy<Value = u64> + Clone {
    (1u64 << 32) - 1..=i64::MAX.cast_unsigned()
}

fn record() -> impl Strategy<Value = Frame> {
    let protocol = prop_oneof![9 => Just(Protocol::Tls), 1 => Just(Protocol::Quic)];
    let kind = (any::<bool>(), 20u8..=24, any::<bool>(), protocol);
    let time = || prop_oneof![time(), nine_bytes().prop_map(u64::cast_signed), Just(1 << 32)];
    let flow = prop_oneof![integer(), nine_bytes(), Just(1 << 32)];
    ([time(), time()], flow, size(), prop::option::of([size(), size()]), kind).prop_map(
        |([time_ns, start_ns], flow, length, plaintext, (from, content_type, handshake, protocol))| {
            let direction = Direction::BOTH[usize::from(from)];
            let (content_type, length) = (content_type.try_into().unwrap(), length as u32);
            Record { time_ns, start_ns, flow, direction, content_type, length, plaintext, handshake, protocol }.into()
        },
    )
}

fn packets() -> impl Strategy<Value = Frame> {
    prop::collection::vec((time(), integer(), size(), data(), integer(), integer()), 0..20).prop_map(|rows| {
        let mut batch = Packets::new();
        for (time_ns, link_type, original_length, data, capture, number) in &rows {
            let (link_type, original_length, capture) = (*link_type as u16, *original_length as u32, *capture as u32);
            batch.push(Packet { time_ns: *time_ns, link_type, original_length, data, capture, number: *number });
        }
        batch.into()
    })
}

fn segments() -> impl Strategy<Value = Frame> {
    let row = (time(), integer(), any::<bool>(), [size(), size()], any::<u8>(), data(), prop::option::of(size()));
    prop::collection::vec(row, 0..20).prop_map(|rows| {
        let mut batch = Segments::new();
        for (time_ns, flow, from, [sequence, length], flags, payload, number) in &rows {
            let (time_ns, flow, sequence, length) = (*time_ns, *flow, *sequence as u32, *length as u32);
            let direction = Direction::BOTH[usize::from(*from)];
            let (flags, acknowledgement) = (*flags, number.map(|number| number as u32));
            batch.push(Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement });
        }
        batch.into()
    })
}

/// One byte changed, or everything from it on cut off, or nothing done.
fn damage(mut bytes: Vec<u8>, (at, byte, is_cut): (usize, u8, bool)) -> Vec<u8> {
    let at = at % (bytes.len() * 4);
    match bytes.get_mut(at) {
        Some(_) if is_cut => bytes.truncate(at),
        Some(target) => *target = byte,
        None => {}
    }
    bytes
}

/// The value with each integer that takes nine bytes in its longest encoding, and a further entry in each row.
fn long_rows(frame: &Frame) -> Vec<u8> {
    let mut long = Vec::new();
    let integer = |long: &mut Vec<u8>, value: i64| {
        long.push(0xd3);
        long.extend(value.to_be_bytes());
    };
    match frame {
        Frame::Packets(batch) => {
            long.extend(b"\x81\xa7packets\xdd");
            long.extend((batch.len() as u32).to_be_bytes());
            for packet in batch.iter() {
                long.extend(b"\xdc\0\x07");
                integer(&mut long, packet.time_ns);
                integer(&mut long, packet.link_type.into());
                integer(&mut long, packet.original_length.into());
                long.push(0xc6);
                long.extend((packet.data.len() as u32).to_be_bytes());
                long.extend(packet.data);
                integer(&mut long, packet.capture.into());
                long.push(0xcf);
                long.extend(packet.number.to_be_bytes());
                long.extend(b"\x81\xa1a\x92\xc3\xc0");
            }
        }
        Frame::Segments(batch) => {
            long.extend(b"\x81\xa8segments\xdd");
            long.extend((batch.len() as u32).to_be_bytes());
            for segment in batch.iter() {
                long.extend(b"\xdc\0\x09");
                integer(&mut long, segment.time_ns);
                long.push(0xcf);
                long.extend(segment.flow.to_be_bytes());
                integer(&mut long, segment.direction.number().into());
                integer(&mut long, segment.sequence.into());
                integer(&mut long, segment.flags.into());
                integer(&mut long, segment.length.into());
                long.push(0xdb);
                long.extend((segment.payload.len() as u32).to_be_bytes());
                long.extend(segment.payload);
                match segment.acknowledgement {
                    Some(number) => integer(&mut long, number.into()),
                    None => long.push(0xc0),
                }
                long.extend(b"\xd9\x01a");
            }
        }
        other => codec::encode(other, &mut long).unwrap(),
    }
    long
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn frames_come_back_however_they_are_encoded(
        frame in prop_oneof![4 => record(), 1 => packets(), 1 => segments()],
        damaged: (usize, u8, bool),
    ) {
        let (mut fast, mut plain) = (Vec::new(), Vec::new());
        codec::encode(&frame, &mut fast).unwrap();
        if let Frame::Record(record) = &frame {
            codec::encode_body(&frame, record, &mut plain).unwrap();
            prop_assert_eq!(&fast, &plain);
        }
        for bytes in [&fast, &long_rows(&frame)] {
            prop_assert_eq!(codec::decode(bytes, &Arc::default()), Ok(frame.clone()));
        }
        // Only records of other protocols and from before 1970 are left to serde.
        let stream = [&fast, &[0x81, 0xa6][..]].concat();
        match (decode(&stream, &Arc::default()), &frame) {
            (Some(decoded), _) => prop_assert_eq!(decoded, (frame.clone(), fast.len())),
            (None, Frame::Record(record)) => prop_assert!(record.protocol != Protocol::Tls),
            (None, _) => prop_assert!(false),
        }
        let bytes = damage(fast, damaged);
        if let Some((read, length)) = decode(&bytes, &Arc::default()) {
            prop_assert_eq!(Ok(read), codec::decode(&bytes[..length], &Arc::default()));
        }
    }
}
