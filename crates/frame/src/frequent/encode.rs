//! From frames to bytes: those that serde gives, in a third of the time.

use rmp::encode::{ValueWriteError, write_array_len, write_bin_len, write_sint};

use crate::{Packet, Packets, Record, Segment, Segments};

/// Bytes of a row besides its data, at most: an array of six integers and the length of the data.
const ROW_BYTES: usize = 48;

/// Appends `{"packets": rows}`.
pub(crate) fn packets(batch: &Packets, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa7packets");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|packet| packet_row(&packet, buffer))
}

fn packet_row(packet: &Packet<'_>, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.push(0x96);
    signed(packet.time_ns, buffer)?;
    unsigned(packet.link_type.into(), buffer);
    unsigned(packet.original_length.into(), buffer);
    bytes(packet.data, buffer)?;
    unsigned(packet.capture.into(), buffer);
    unsigned(packet.number, buffer);
    Ok(())
}

/// Appends `{"segments": rows}`.
pub(crate) fn segments(batch: &Segments, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa8segments");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|segment| segment_row(&segment, buffer))
}

fn segment_row(segment: &Segment<'_>, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.push(0x97);
    signed(segment.time_ns, buffer)?;
    unsigned(segment.flow, buffer);
    buffer.push(segment.direction.number());
    unsigned(segment.sequence.into(), buffer);
    unsigned(segment.flags.into(), buffer);
    unsigned(segment.length.into(), buffer);
    bytes(segment.payload, buffer)
}

/// Appends `{"record": body}`.
pub(crate) fn record(record: &Record, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    let Record { time_ns, start_ns, flow, direction, content_type, length, plaintext, handshake } = record;
    buffer.extend_from_slice(b"\x81\xa6record\x88\xa7time_ns");
    signed(*time_ns, buffer)?;
    buffer.extend_from_slice(b"\xa8start_ns");
    signed(*start_ns, buffer)?;
    buffer.extend_from_slice(b"\xa4flow");
    unsigned(*flow, buffer);
    buffer.extend_from_slice(b"\xa9direction");
    let word = direction.word();
    buffer.push(0xa0 | word.len() as u8);
    buffer.extend_from_slice(word.as_bytes());
    buffer.extend_from_slice(b"\xaccontent_type");
    buffer.push((*content_type).into());
    buffer.extend_from_slice(b"\xa6length");
    unsigned((*length).into(), buffer);
    buffer.extend_from_slice(b"\xa9plaintext");
    match plaintext {
        None => buffer.push(0xc0),
        Some([least, most]) => {
            buffer.push(0x92);
            unsigned(*least, buffer);
            unsigned(*most, buffer);
        }
    }
    buffer.extend_from_slice(b"\xa9handshake");
    buffer.push(if *handshake { 0xc3 } else { 0xc2 });
    Ok(())
}

/// An integer in as few bytes as hold it.
#[inline]
fn unsigned(value: u64, buffer: &mut Vec<u8>) {
    let [.., b3, b2, b1, b0] = value.to_be_bytes();
    match value {
        0..=0x7f => buffer.push(b0),
        0x80..=0xff => buffer.extend_from_slice(&[0xcc, b0]),
        0x100..=0xffff => buffer.extend_from_slice(&[0xcd, b1, b0]),
        0x1_0000..=0xffff_ffff => buffer.extend_from_slice(&[0xce, b3, b2, b1, b0]),
        _ => {
            let mut nine = [0xcf; 9];
            let [_, rest @ ..] = &mut nine;
            *rest = value.to_be_bytes();
            buffer.extend_from_slice(&nine);
        }
    }
}

#[inline]
fn signed(value: i64, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    match u64::try_from(value) {
        Ok(value) => unsigned(value, buffer),
        // A time before 1970.
        Err(_) => drop(write_sint(buffer, value)?),
    }
    Ok(())
}

#[inline]
fn bytes(data: &[u8], buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    match u16::try_from(data.len()) {
        Ok(length @ 0..=0xff) => buffer.extend_from_slice(&[0xc4, length as u8]),
        Ok(length) => {
            let [high, low] = length.to_be_bytes();
            buffer.extend_from_slice(&[0xc5, high, low]);
        }
        Err(_) => drop(write_bin_len(buffer, data.len() as u32)?),
    }
    buffer.extend_from_slice(data);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ContentType, Direction};

    /// What serde makes of it.
    fn by_serde(kind: &str, body: &impl serde::Serialize) -> Vec<u8> {
        let mut buffer = Vec::new();
        rmp::encode::write_map_len(&mut buffer, 1).unwrap();
        rmp::encode::write_str(&mut buffer, kind).unwrap();
        body.serialize(&mut rmp_serde::Serializer::new(&mut buffer).with_struct_map()).unwrap();
        buffer
    }

    fn by_hand(encode: impl Fn(&mut Vec<u8>) -> Result<(), ValueWriteError>) -> Vec<u8> {
        let mut buffer = Vec::new();
        encode(&mut buffer).unwrap();
        buffer
    }

    /// Integers of every length in bits.
    fn integer() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
    }

    fn data() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![0usize..300, Just(65_535), Just(65_536)].prop_map(|length| vec![7; length])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn records_are_as_serde_encodes_them(
            times in (integer(), integer(), any::<[bool; 2]>()), flow in integer(), from: bool, content_type in 20u8..=24,
            length in integer(), plaintext in prop::option::of([integer(), integer()]), handshake: bool,
        ) {
            let time = |value: u64, is_negative: bool| if is_negative { !value.cast_signed() } else { value.cast_signed() };
            let body = Record {
                time_ns: time(times.0, times.2[0]),
                start_ns: time(times.1, times.2[1]),
                flow,
                direction: Direction::BOTH[usize::from(from)],
                content_type: ContentType::try_from(content_type).unwrap(),
                length: length as u32,
                plaintext,
                handshake,
            };
            prop_assert_eq!(by_hand(|buffer| record(&body, buffer)), by_serde("record", &body));
        }
    }

    proptest! {
        #[test]
        fn packets_are_as_serde_encodes_them(
            rows in prop::collection::vec((any::<i64>(), integer(), integer(), data(), integer(), integer()), 0..20),
        ) {
            let mut batch = Packets::new();
            for (time_ns, link_type, original_length, data, capture, number) in &rows {
                let (link_type, original_length, capture) = (*link_type as u16, *original_length as u32, *capture as u32);
                batch.push(Packet { time_ns: *time_ns, link_type, original_length, data, capture, number: *number });
            }
            prop_assert_eq!(by_hand(|buffer| packets(&batch, buffer)), by_serde("packets", &batch));
        }

        #[test]
        fn segments_are_as_serde_encodes_them(
            rows in prop::collection::vec((any::<i64>(), integer(), any::<bool>(), integer(), any::<u8>(), data()), 0..20),
        ) {
            let mut batch = Segments::new();
            for (time_ns, flow, from, number, flags, payload) in &rows {
                let (sequence, length) = (*number as u32, (*number >> 7) as u32);
                let direction = Direction::BOTH[usize::from(*from)];
                batch.push(Segment { time_ns: *time_ns, flow: *flow, direction, sequence, flags: *flags, length, payload });
            }
            prop_assert_eq!(by_hand(|buffer| segments(&batch, buffer)), by_serde("segments", &batch));
        }
    }
}
