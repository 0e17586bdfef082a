//! From frames to bytes: those that serde gives, in a third of the time.

use std::hint::select_unpredictable;

use rmp::encode::{ValueWriteError, write_array_len, write_sint};

use crate::{Direction, Packet, Packets, Record, Segment, Segments};

/// Bytes of a row besides its data, at most: an array of six integers and the length of the data.
const ROW_BYTES: usize = 48;

/// Bytes of a record, at most; of one of the usual kind; and of what that begins with.
const RECORD_BYTES: usize = 160;
const USUAL_BYTES: usize = 144;
const HEAD_BYTES: usize = 112;

/// Appends `{"packets": rows}`.
pub(crate) fn packets(batch: &Packets, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa7packets");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|packet| packet_row(&packet, buffer))
}

fn packet_row(packet: &Packet<'_>, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    append(buffer, |line: &mut Line<'_, ROW_BYTES>| {
        line.put(b"\x96");
        line.signed(packet.time_ns)?;
        line.unsigned(packet.link_type.into());
        line.size(packet.original_length);
        line.data_length(packet.data);
        Ok(())
    })?;
    buffer.extend_from_slice(packet.data);
    append(buffer, |line: &mut Line<'_, ROW_BYTES>| {
        line.unsigned(packet.capture.into());
        line.unsigned(packet.number);
        Ok(())
    })
}

/// Appends `{"segments": rows}`.
pub(crate) fn segments(batch: &Segments, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa8segments");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|segment| segment_row(&segment, buffer))
}

fn segment_row(segment: &Segment<'_>, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    append(buffer, |line: &mut Line<'_, ROW_BYTES>| {
        line.put(b"\x97");
        line.signed(segment.time_ns)?;
        line.unsigned(segment.flow);
        line.put(&[segment.direction.number()]);
        line.unsigned(segment.sequence.into());
        line.unsigned(segment.flags.into());
        line.size(segment.length);
        line.data_length(segment.payload);
        Ok(())
    })?;
    buffer.extend_from_slice(segment.payload);
    Ok(())
}

/// Appends `{"record": body}`.
#[inline]
pub(crate) fn record(record: &Record, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    let Some(sizes) = Sizes::of(record) else { return any_record(record, buffer) };
    let [to_gateway, from_gateway] = &HEADS;
    // Both directions take one way, since they take turns in no order that could be foretold.
    let head = select_unpredictable(record.direction == Direction::ToGateway, to_gateway, from_gateway);
    let start = buffer.len();
    // So much at a time is copied without a call.
    buffer.reserve(USUAL_BYTES);
    buffer.extend_from_slice(&head.bytes);
    buffer.extend_from_slice(&[0; USUAL_BYTES - HEAD_BYTES]);
    let Some(bytes) = buffer.last_chunk_mut() else { return Ok(()) };
    let mut line = Line::<USUAL_BYTES> { bytes, length: head.length };
    line.put_at(18, record.time_ns.to_be_bytes());
    line.put_at(36, record.start_ns.to_be_bytes());
    line.put_at(50, record.flow.to_be_bytes());
    line.put_at(head.length - 8, [record.content_type.into()]);
    line.short(sizes.length);
    line.record_end(sizes.plaintext, record.handshake, Line::short);
    let end = start + line.length;
    buffer.truncate(end);
    Ok(())
}

/// The least integer that takes nine bytes.
const LONG: i64 = 1 << 32;

/// The sizes of a record of the usual kind: its times are after 1970, its flow's number is a hash, and it is short.
struct Sizes {
    length: u16,
    plaintext: Option<[u16; 2]>,
}

impl Sizes {
    #[inline]
    fn of(record: &Record) -> Option<Self> {
        let is_usual = record.time_ns.min(record.start_ns) >= LONG && record.flow >= LONG.cast_unsigned();
        let length = u16::try_from(record.length).ok().filter(|_| is_usual)?;
        let plaintext = match record.plaintext {
            None => None,
            Some([least, most]) => Some([u16::try_from(least).ok()?, u16::try_from(most).ok()?]),
        };
        Some(Self { length, plaintext })
    }
}

/// What a record begins with, up to its length, by the number of its direction; integers take nine bytes.
static HEADS: [Head; 2] = [Head::new(b"\xaato_gateway"), Head::new(b"\xacfrom_gateway")];

struct Head {
    /// With some of the room for what is behind it.
    bytes: [u8; HEAD_BYTES],
    length: usize,
}

impl Head {
    const fn new(direction: &[u8]) -> Self {
        let mut bytes = [0; HEAD_BYTES];
        let (numbers, behind) = bytes.split_at_mut(68);
        numbers.copy_from_slice(
            b"\x81\xa6record\x88\xa7time_ns\xcf........\xa8start_ns\xcf........\xa4flow\xcf........\xa9direction",
        );
        let (place, behind) = behind.split_at_mut(direction.len());
        place.copy_from_slice(direction);
        let (place, _) = behind.split_at_mut(21);
        place.copy_from_slice(b"\xaccontent_type.\xa6length");
        Self { bytes, length: 68 + direction.len() + 21 }
    }
}

/// Appends a record with numbers of any length.
#[cold]
fn any_record(record: &Record, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    append(buffer, |line: &mut Line<'_, RECORD_BYTES>| {
        line.put(b"\x81\xa6record\x88\xa7time_ns");
        line.signed(record.time_ns)?;
        line.put(b"\xa8start_ns");
        line.signed(record.start_ns)?;
        line.put(b"\xa4flow");
        line.unsigned(record.flow);
        line.put(b"\xa9direction");
        match record.direction {
            Direction::ToGateway => line.put(b"\xaato_gateway"),
            Direction::FromGateway => line.put(b"\xacfrom_gateway"),
        }
        line.put(b"\xaccontent_type");
        line.put(&[record.content_type.into()]);
        line.put(b"\xa6length");
        line.unsigned(record.length.into());
        line.record_end(record.plaintext, record.handshake, Line::unsigned);
        Ok(())
    })
}

/// Appends a line. Room is asked for once, not for each of its parts.
#[inline]
fn append<const ROOM: usize>(
    buffer: &mut Vec<u8>,
    write: impl FnOnce(&mut Line<'_, ROOM>) -> Result<(), ValueWriteError>,
) -> Result<(), ValueWriteError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; ROOM]);
    let Some(bytes) = buffer.last_chunk_mut() else { return Ok(()) };
    let mut line = Line { bytes, length: 0 };
    let written = write(&mut line);
    let end = start + line.length;
    buffer.truncate(end);
    written
}

/// A few bytes at the end of a buffer. What would not fit is not put; none of the lines here is so long.
struct Line<'a, const ROOM: usize> {
    bytes: &'a mut [u8; ROOM],
    length: usize,
}

impl<const ROOM: usize> Line<'_, ROOM> {
    /// Puts bytes elsewhere than behind the last.
    #[inline]
    fn put_at<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        if let Some(place) = self.bytes.get_mut(at..).and_then(|free| free.first_chunk_mut()) {
            *place = bytes;
        }
    }

    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        let place = self.bytes.get_mut(self.length..).and_then(|free| free.first_chunk_mut());
        debug_assert!(place.is_some(), "a line of more than {ROOM} bytes");
        if let Some(place) = place {
            *place = *bytes;
            self.length += N;
        }
    }

    /// What is behind a record's length.
    #[inline]
    fn record_end<N>(&mut self, plaintext: Option<[N; 2]>, handshake: bool, put: impl Fn(&mut Self, N)) {
        match plaintext {
            None => self.put(b"\xa9plaintext\xc0"),
            Some([least, most]) => {
                self.put(b"\xa9plaintext\x92");
                put(self, least);
                put(self, most);
            }
        }
        self.put(if handshake { b"\xa9handshake\xc3" } else { b"\xa9handshake\xc2" });
    }

    /// An integer in as few bytes as hold it. It takes no branch, since sizes are short and long in no order that could be
    /// foretold.
    #[inline]
    fn short(&mut self, value: u16) {
        let more = usize::from(value > 0x7f) + usize::from(value > 0xff);
        let marker = [0, 0xcc00, 0xcd_0000].get(more).copied().unwrap_or_default();
        let word = (u32::from(value) | marker) << (24 - 8 * more);
        self.put(&word.to_be_bytes());
        self.length -= 3 - more;
    }

    /// As [`short`](Self::short), of any length.
    #[inline]
    fn size(&mut self, value: u32) {
        match u16::try_from(value) {
            Ok(value) => self.short(value),
            Err(_) => self.unsigned(value.into()),
        }
    }

    /// An integer in as few bytes as hold it.
    #[inline]
    fn unsigned(&mut self, value: u64) {
        let [b7, b6, b5, b4, b3, b2, b1, b0] = value.to_be_bytes();
        match value {
            0..=0x7f => self.put(&[b0]),
            0x80..=0xff => self.put(&[0xcc, b0]),
            0x100..=0xffff => self.put(&[0xcd, b1, b0]),
            0x1_0000..=0xffff_ffff => self.put(&[0xce, b3, b2, b1, b0]),
            _ => self.put(&[0xcf, b7, b6, b5, b4, b3, b2, b1, b0]),
        }
    }

    #[inline]
    fn signed(&mut self, value: i64) -> Result<(), ValueWriteError> {
        let Ok(value) = u64::try_from(value) else { return self.negative(value) };
        self.unsigned(value);
        Ok(())
    }

    /// A time before 1970.
    #[cold]
    fn negative(&mut self, value: i64) -> Result<(), ValueWriteError> {
        let mut free = self.bytes.get_mut(self.length..).unwrap_or_default();
        let room = free.len();
        write_sint(&mut free, value)?;
        self.length += room - free.len();
        Ok(())
    }

    /// What goes before data.
    #[inline]
    fn data_length(&mut self, data: &[u8]) {
        let Ok(length) = u16::try_from(data.len()) else {
            let [b3, b2, b1, b0] = (data.len() as u32).to_be_bytes();
            return self.put(&[0xc6, b3, b2, b1, b0]);
        };
        let ([high, low], is_short) = (length.to_be_bytes(), length <= 0xff);
        self.put(&select_unpredictable(is_short, [0xc4, low, 0], [0xc5, high, low]));
        self.length -= usize::from(is_short);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ContentType;

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
    fn integer() -> impl Strategy<Value = u64> + Clone {
        (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
    }

    /// Those that times and numbers of flows usually are, which all take nine bytes, and where that begins.
    fn long() -> impl Strategy<Value = u64> + Clone {
        const LEAST: u64 = LONG.cast_unsigned();
        prop_oneof![20 => LEAST..=i64::MAX.cast_unsigned(), 1 => LEAST - 1..=LEAST]
    }

    /// Those that sizes usually are, around where they take one byte more too.
    fn short() -> impl Strategy<Value = u64> + Clone {
        prop_oneof![0u64..=0x101, 0u64..=0xffff, 0xfff0u64..=0x1_0001]
    }

    fn data() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![0usize..300, Just(65_535), Just(65_536)].prop_map(|length| vec![7; length])
    }

    /// Records with times, flows and sizes of these kinds.
    fn records(
        time: impl Strategy<Value = i64> + Clone,
        flow: impl Strategy<Value = u64>,
        size: impl Strategy<Value = u64> + Clone,
    ) -> impl Strategy<Value = Record> {
        let plaintext = prop::option::of([size.clone(), size.clone()]);
        let kind = (any::<bool>(), 20u8..=24, any::<bool>());
        ([time.clone(), time], flow, size, plaintext, kind).prop_map(
            |([time_ns, start_ns], flow, length, plaintext, kind)| {
                let (from, content_type, handshake) = kind;
                let direction = Direction::BOTH[usize::from(from)];
                let content_type = ContentType::try_from(content_type).unwrap();
                Record { time_ns, start_ns, flow, direction, content_type, length: length as u32, plaintext, handshake }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn usual_records_are_as_serde_encodes_them(
            body in records(long().prop_map(u64::cast_signed), long(), short()),
        ) {
            prop_assert_eq!(by_hand(|buffer| record(&body, buffer)), by_serde("record", &body));
        }

        #[test]
        fn records_are_as_serde_encodes_them(
            body in records(
                (integer(), any::<bool>()).prop_map(|(time, is_negative)| time.cast_signed() ^ -i64::from(is_negative)),
                integer(),
                integer(),
            ),
        ) {
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
