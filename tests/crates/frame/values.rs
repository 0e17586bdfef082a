//! Where values end and what they hold, however they are encoded and in whatever parts they arrive: records and batches,
//! which are read and written by hand, against serde.

use std::collections::BTreeMap;
use std::io::Read;

use proptest::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use sizeleak_frame::{
    Direction, Frame, FrameReader, Packet, Packets, Protocol, ReadError, Record, Segment, Segments, Unknown,
};
use support::streams::stream_of;

use super::codec::{SlowReader, hello};

/// The first frame of a stream that goes on with these bytes behind its `hello`, and its length.
fn first(input: impl Read) -> Result<(Frame, usize), ReadError> {
    let hello = stream_of(&[hello()]);
    let mut reader = FrameReader::new(hello.chain(input));
    reader.next_frame()?;
    let frame = reader.next_frame()?.expect("a stream without summary ends by an error");
    Ok((frame, reader.last_value().len()))
}

/// A value of a kind that nobody knows, whose body begins with these bytes.
fn unknown(body: &[u8]) -> Vec<u8> {
    [b"\x81\xa1x", body].concat()
}

#[test]
fn claimed_lengths_beyond_the_limit_are_errors() {
    let fault = |body: &[u8]| first(&unknown(body)[..]).unwrap_err().to_string();
    let nested: Vec<u8> = [0xdc, 0xff, 0xff].repeat(300);
    for too_large in [&[0xc6, 0xff, 0xff, 0xff, 0xff][..], &[0xdf, 0xff, 0xff, 0xff, 0xff], &nested] {
        let fault = fault(too_large);
        assert!(fault.contains("more than"), "{fault}");
    }
    assert!(fault(&[0xc1]).contains("0xc1"), "{}", fault(&[0xc1]));
}

#[test]
fn ten_million_nested_lists_need_no_stack() {
    assert!(first(&unknown(&vec![0x91; 10_000_000])[..]).unwrap_err().is_cut());
}

proptest! {
    #[test]
    fn result_does_not_depend_on_the_parts_bytes_arrive_in(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = unknown(&bytes);
        let [whole, piecewise] = [bytes.len(), 1].map(|step| first(SlowReader(&bytes, step)));
        prop_assert_eq!(format!("{whole:?}"), format!("{piecewise:?}"));
    }

    #[test]
    fn end_of_value_agrees_with_rmp_serde(bytes in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut rest = &bytes[..];
        let mut decoder = rmp_serde::Deserializer::new(&mut rest);
        let is_whole = IgnoredAny::deserialize(&mut decoder).is_ok();
        drop(decoder);
        let wanted = is_whole.then(|| unknown(&bytes[..bytes.len() - rest.len()]));
        let found = first(&unknown(&bytes)[..]).ok().map(|(frame, _)| frame);
        prop_assert_eq!(found, wanted.map(|value| Frame::Unknown(Unknown { kind: "x".to_owned(), value })));
    }
}

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
        other => return stream_of(std::slice::from_ref(other)),
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
        let written = stream_of(std::slice::from_ref(&frame));
        if let Frame::Record(record) = &frame {
            prop_assert_eq!(&written, &rmp_serde::to_vec_named(&BTreeMap::from([("record", record)])).unwrap());
        }
        for bytes in [&written, &long_rows(&frame)] {
            prop_assert_eq!(Frame::decode(bytes), Ok(frame.clone()));
            let followed = [bytes, &[0x81, 0xa6][..]].concat();
            prop_assert_eq!(first(&followed[..]).unwrap(), (frame.clone(), bytes.len()));
        }
        let bytes = damage(written, damaged);
        if let Ok((read, length)) = first(&bytes[..]) {
            prop_assert_eq!(Ok(read), Frame::decode(&bytes[..length]));
        }
    }
}
