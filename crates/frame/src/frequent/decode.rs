//! From bytes to records and batches: those that are encoded as [`encode`](super::encode) does it. Whatever else is one in
//! the contract's eyes, or none at all, is left to serde, which also says what is wrong with it.

use std::sync::Arc;

use crate::{Direction, Frame, Packet, Packets, Record, Segment, Segments};

/// Reads `{kind: body}` from the front of bytes that lie in `buffer`, and gives its length too; `None` where it is of another
/// kind, written otherwise, or not all there.
pub(crate) fn frame(bytes: &[u8], buffer: &Arc<Vec<u8>>) -> Option<(Frame, usize)> {
    let [_, name, ..] = bytes else { return None };
    let mut rest = Bytes(bytes);
    let frame = match name {
        0xa6 => record(&mut rest)?.into(),
        0xa7 => packets(&mut rest, buffer)?.into(),
        0xa8 => segments(&mut rest, buffer)?.into(),
        _ => return None,
    };
    Some((frame, bytes.len() - rest.0.len()))
}

fn record(bytes: &mut Bytes<'_>) -> Option<Record> {
    bytes.skip(b"\x81\xa6record\x88\xa7time_ns")?;
    let time_ns = bytes.signed()?;
    bytes.skip(b"\xa8start_ns")?;
    let start_ns = bytes.signed()?;
    bytes.skip(b"\xa4flow")?;
    let flow = bytes.unsigned()?;
    bytes.skip(b"\xa9direction")?;
    let direction = bytes.direction()?;
    bytes.skip(b"\xaccontent_type")?;
    let content_type = bytes.small::<u8>()?.try_into().ok()?;
    bytes.skip(b"\xa6length")?;
    let length = bytes.small()?;
    bytes.skip(b"\xa9plaintext")?;
    let plaintext = match bytes.take()? {
        [0xc0] => None,
        [0x92] => Some([bytes.unsigned()?, bytes.unsigned()?]),
        _ => return None,
    };
    bytes.skip(b"\xa9handshake")?;
    let handshake = match bytes.take()? {
        [0xc2] => false,
        [0xc3] => true,
        _ => return None,
    };
    Some(Record { time_ns, start_ns, flow, direction, content_type, length, plaintext, handshake })
}

fn packets(bytes: &mut Bytes<'_>, buffer: &Arc<Vec<u8>>) -> Option<Packets> {
    bytes.skip(b"\x81\xa7packets")?;
    let rows = bytes.array_length()?;
    let mut batch = Packets::with_capacity(rows as usize);
    for _ in 0..rows {
        bytes.skip(&[0x96])?;
        let (time_ns, link_type, original_length) = (bytes.signed()?, bytes.small()?, bytes.small()?);
        let data = bytes.data()?;
        let (capture, number) = (bytes.small()?, bytes.unsigned()?);
        batch.push_shared(Packet { time_ns, link_type, original_length, data, capture, number }, buffer);
    }
    Some(batch)
}

fn segments(bytes: &mut Bytes<'_>, buffer: &Arc<Vec<u8>>) -> Option<Segments> {
    bytes.skip(b"\x81\xa8segments")?;
    let rows = bytes.array_length()?;
    let mut batch = Segments::with_capacity(rows as usize);
    for _ in 0..rows {
        bytes.skip(&[0x97])?;
        let (time_ns, flow) = (bytes.signed()?, bytes.unsigned()?);
        let direction = Direction::from_number(bytes.small()?)?;
        let (sequence, flags, length) = (bytes.small()?, bytes.small()?, bytes.small()?);
        let payload = bytes.data()?;
        let segment = Segment { time_ns, flow, direction, sequence, flags, length, payload };
        batch.push_shared(segment, buffer);
    }
    Some(batch)
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Goes over these bytes.
    #[inline]
    fn skip<const N: usize>(&mut self, bytes: &[u8; N]) -> Option<()> {
        (self.take()? == *bytes).then_some(())
    }

    #[inline]
    fn direction(&mut self) -> Option<Direction> {
        let [marker] = self.take()?;
        let length = marker.checked_sub(0xa0)?;
        let (word, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        Direction::BOTH.into_iter().find(|direction| direction.word().as_bytes() == word)
    }

    #[inline]
    fn unsigned(&mut self) -> Option<u64> {
        let [marker] = self.take()?;
        Some(match marker {
            0..=0x7f => marker.into(),
            0xcc => u8::from_be_bytes(self.take()?).into(),
            0xcd => u16::from_be_bytes(self.take()?).into(),
            0xce => u32::from_be_bytes(self.take()?).into(),
            0xcf => u64::from_be_bytes(self.take()?),
            _ => return None,
        })
    }

    /// An integer that fits into fewer bits.
    #[inline]
    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.unsigned()?.try_into().ok()
    }

    /// One that is not negative, as nearly all times are.
    #[inline]
    fn signed(&mut self) -> Option<i64> {
        self.unsigned()?.try_into().ok()
    }

    #[inline]
    fn data(&mut self) -> Option<&'a [u8]> {
        let [marker] = self.take()?;
        let length = match marker {
            0xc4 => u8::from_be_bytes(self.take()?).into(),
            0xc5 => u16::from_be_bytes(self.take()?).into(),
            0xc6 => u32::from_be_bytes(self.take()?),
            _ => return None,
        };
        let (data, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(data)
    }

    fn array_length(&mut self) -> Option<u32> {
        let [marker] = self.take()?;
        Some(match marker {
            0x90..=0x9f => (marker & 0x0f).into(),
            0xdc => u16::from_be_bytes(self.take()?).into(),
            0xdd => u32::from_be_bytes(self.take()?),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::extent::Extent;
    use crate::frequent::{encode_packets, encode_record, encode_segments};

    /// What serde makes of it, if it is one whole frame.
    fn by_serde(mut bytes: &[u8]) -> Option<Frame> {
        let is_whole = Extent::new().advance(bytes) == Ok(Some(bytes.len()));
        let entries = rmp::decode::read_map_len(&mut bytes).ok()?;
        let (kind, body) = rmp::decode::read_str_from_slice(bytes).ok()?;
        Frame::decode(kind, body, &Arc::default())?.ok().filter(|_| is_whole && entries == 1)
    }

    fn encoded<E>(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(encode(&mut bytes).is_ok());
        bytes
    }

    fn rows() -> impl Strategy<Value = Vec<(i64, u64, u32, u8)>> {
        prop::collection::vec((any::<(i64, u8)>(), any::<(u64, u8)>(), any::<u32>(), any::<u8>()), 0..40).prop_map(
            |rows| {
                let small = |((time_ns, least), (number, fewest), other, length)| {
                    (time_ns >> (least % 64), number >> (fewest % 64), other, length)
                };
                rows.into_iter().map(small).collect()
            },
        )
    }

    /// The bytes, and where there is one a byte changed or all behind it cut off.
    fn damage(mut bytes: Vec<u8>, (at, byte, cut): (usize, u8, bool)) -> Vec<u8> {
        let at = at % (bytes.len() * 4);
        match bytes.get_mut(at) {
            Some(_) if cut => bytes.truncate(at),
            Some(place) => *place = byte,
            None => {}
        }
        bytes
    }

    /// The whole frame is read, with others behind it as well, unless a time is from before 1970; what is read of a damaged one
    /// is what serde reads.
    fn check(
        whole: Vec<u8>,
        expected: &Frame,
        mut times: impl Iterator<Item = i64>,
        damaged: (usize, u8, bool),
    ) -> Result<(), TestCaseError> {
        let stream = [&whole, &[0x81, 0xa6][..]].concat();
        let read = frame(&stream, &Arc::default());
        prop_assert_eq!(by_serde(&whole), Some(expected.clone()));
        if times.all(|time_ns| time_ns >= 0) {
            prop_assert_eq!(read, Some((expected.clone(), whole.len())));
        } else {
            prop_assert_eq!(read, None);
        }
        let bytes = damage(whole, damaged);
        if let Some((read, length)) = frame(&bytes, &Arc::default()) {
            prop_assert_eq!(Some(read), by_serde(&bytes[..length]));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn records_are_what_serde_reads(
            times: [i64; 2], numbers in [any::<u64>(), any::<u64>(), any::<u64>()], least in 0u32..64, from: bool,
            content_type in 20u8..=24, range: bool, handshake: bool, damaged: (usize, u8, bool),
        ) {
            let [flow, length, most] = numbers.map(|number| number >> least);
            let [time_ns, start_ns] = times.map(|time| time >> least);
            let plaintext = range.then_some([most >> 3, most]);
            let direction = Direction::BOTH[usize::from(from)];
            let content_type = content_type.try_into().unwrap();
            let length = length as u32;
            let body = Record { time_ns, start_ns, flow, direction, content_type, length, plaintext, handshake };
            let whole = encoded(|bytes| encode_record(&body, bytes));
            check(whole, &body.into(), [time_ns, start_ns].into_iter(), damaged)?;
        }
    }

    proptest! {
        #[test]
        fn packets_are_what_serde_reads(rows in rows(), damaged: (usize, u8, bool)) {
            let mut batch = Packets::new();
            for (time_ns, number, other, length) in &rows {
                let data = vec![*length; (*length).into()];
                let (link_type, original_length) = (*other as u16, *other >> 3);
                batch.push(Packet { time_ns: *time_ns, link_type, original_length, data: &data, capture: *other, number: *number });
            }
            let whole = encoded(|bytes| encode_packets(&batch, bytes));
            check(whole, &batch.into(), rows.iter().map(|(time_ns, ..)| *time_ns), damaged)?;
        }

        #[test]
        fn segments_are_what_serde_reads(rows in rows(), damaged: (usize, u8, bool)) {
            let mut batch = Segments::new();
            for (time_ns, flow, other, length) in &rows {
                let payload = vec![*length; (*length).into()];
                let (direction, flags) = (Direction::BOTH[usize::from(*length & 1)], *length ^ 0x5a);
                let (sequence, length) = (*other, *other >> 5);
                batch.push(Segment { time_ns: *time_ns, flow: *flow, direction, sequence, flags, length, payload: &payload });
            }
            let whole = encoded(|bytes| encode_segments(&batch, bytes));
            check(whole, &batch.into(), rows.iter().map(|(time_ns, ..)| *time_ns), damaged)?;
        }
    }
}
