//! The codec of batches, and that of nearly all records: it takes a third of serde's time.
//!
//! Rows of batches may be encoded in any way. Records are decoded as this writes them, and else by serde, which encodes
//! them to the same bytes; a property test compares both.

use std::hint::select_unpredictable;
use std::sync::Arc;

use rmp::encode::{ValueWriteError, write_array_len, write_sint};

use crate::extent::Extent;
use crate::{Direction, Frame, Packet, Packets, Protocol, Record, Segment, Segments};

/// The most bytes of a row besides its data: an array of six integers and the length of the data.
const ROW_BYTES: usize = 48;

/// Entries of rows. Later versions may append some, and older programs wrote segments without an acknowledgement.
const PACKET_ENTRIES: u32 = 6;
const OLD_SEGMENT_ENTRIES: u32 = 7;

/// The most bytes of a record up to its content type, and of the rest of it. The compiler copies so few without a call.
const RECORD_START_BYTES: usize = 112;
const RECORD_END_BYTES: usize = 64;

/// The start of a record whose times and flow take nine bytes each, as they nearly always do, and its length; by
/// direction.
static RECORD_STARTS: [(&[u8; RECORD_START_BYTES], usize); 2] = [
    (
        b"\x81\xa6record\x88\xa7time_ns\xcf........\xa8start_ns\xcf........\xa4flow\xcf........\
          \xa9direction\xaato_gateway\xaccontent_type....................",
        92,
    ),
    (
        b"\x81\xa6record\x88\xa7time_ns\xcf........\xa8start_ns\xcf........\xa4flow\xcf........\
          \xa9direction\xacfrom_gateway\xaccontent_type..................",
        94,
    ),
];

pub(crate) fn encode_packets(batch: &Packets, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa7packets");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|packet| {
        append(buffer, |parts: &mut Parts<'_, ROW_BYTES>| {
            parts.put(b"\x96");
            parts.signed(packet.time_ns)?;
            parts.unsigned(packet.link_type.into());
            parts.size(packet.original_length.into());
            parts.data_length(packet.data);
            Ok(())
        })?;
        buffer.extend_from_slice(packet.data);
        append(buffer, |parts: &mut Parts<'_, ROW_BYTES>| {
            parts.unsigned(packet.capture.into());
            parts.unsigned(packet.number);
            Ok(())
        })
    })
}

pub(crate) fn encode_segments(batch: &Segments, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa8segments");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|segment| {
        append(buffer, |parts: &mut Parts<'_, ROW_BYTES>| {
            parts.put(b"\x98");
            parts.signed(segment.time_ns)?;
            parts.unsigned(segment.flow);
            parts.put(&[segment.direction.number()]);
            parts.unsigned(segment.sequence.into());
            parts.unsigned(segment.flags.into());
            parts.size(segment.length.into());
            parts.data_length(segment.payload);
            Ok(())
        })?;
        buffer.extend_from_slice(segment.payload);
        append(buffer, |parts: &mut Parts<'_, ROW_BYTES>| {
            match segment.acknowledgement {
                Some(number) => parts.unsigned(number.into()),
                None => parts.put(b"\xc0"),
            }
            Ok(())
        })
    })
}

#[inline]
pub(crate) fn encode_record(record: &Record, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    append(buffer, |parts: &mut Parts<'_, RECORD_START_BYTES>| {
        if record.time_ns.min(record.start_ns) < 1 << 32 || record.flow < 1 << 32 {
            return parts.short_record_start(record);
        }
        // Directions alternate unpredictably, so both take the same branch.
        let [to_gateway, from_gateway] = RECORD_STARTS;
        let (start, end) = select_unpredictable(record.direction == Direction::ToGateway, to_gateway, from_gateway);
        parts.put(start);
        parts.put_at(18, record.time_ns.to_be_bytes());
        parts.put_at(36, record.start_ns.to_be_bytes());
        parts.put_at(50, record.flow.to_be_bytes());
        parts.length = end;
        Ok(())
    })?;
    append(buffer, |parts: &mut Parts<'_, RECORD_END_BYTES>| {
        parts.put(&[record.content_type.into()]);
        parts.put(b"\xa6length");
        parts.size(record.length.into());
        match record.plaintext {
            None => parts.put(b"\xa9plaintext\xc0"),
            Some([least, most]) => {
                parts.put(b"\xa9plaintext\x92");
                parts.size(least);
                parts.size(most);
            }
        }
        parts.put(if record.handshake { b"\xa9handshake\xc3" } else { b"\xa9handshake\xc2" });
        Ok(())
    })
}

impl Parts<'_, RECORD_START_BYTES> {
    #[cold]
    fn short_record_start(&mut self, record: &Record) -> Result<(), ValueWriteError> {
        self.put(b"\x81\xa6record\x88\xa7time_ns");
        self.signed(record.time_ns)?;
        self.put(b"\xa8start_ns");
        self.signed(record.start_ns)?;
        self.put(b"\xa4flow");
        self.unsigned(record.flow);
        self.put(b"\xa9direction");
        match record.direction {
            Direction::ToGateway => self.put(b"\xaato_gateway"),
            Direction::FromGateway => self.put(b"\xacfrom_gateway"),
        }
        self.put(b"\xaccontent_type");
        Ok(())
    }
}

/// Appends a few parts. The buffer grows once, not for each of them.
#[inline]
fn append<const ROOM: usize>(
    buffer: &mut Vec<u8>,
    write: impl FnOnce(&mut Parts<'_, ROOM>) -> Result<(), ValueWriteError>,
) -> Result<(), ValueWriteError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; ROOM]);
    let Some(bytes) = buffer.last_chunk_mut() else { return Ok(()) };
    let mut parts = Parts { bytes, length: 0 };
    let written = write(&mut parts);
    let end = start + parts.length;
    buffer.truncate(end);
    written
}

struct Parts<'a, const ROOM: usize> {
    bytes: &'a mut [u8; ROOM],
    length: usize,
}

impl<const ROOM: usize> Parts<'_, ROOM> {
    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        let room = self.bytes.get_mut(self.length..).and_then(|free| free.first_chunk_mut());
        debug_assert!(room.is_some(), "more than {ROOM} bytes");
        if let Some(room) = room {
            *room = *bytes;
            self.length += N;
        }
    }

    /// Overwrites bytes that were put before.
    #[inline]
    fn put_at<const N: usize>(&mut self, start: usize, bytes: [u8; N]) {
        if let Some(place) = self.bytes.get_mut(start..).and_then(|rest| rest.first_chunk_mut()) {
            *place = bytes;
        }
    }

    /// A small integer in its shortest form, without branches: the lengths of sizes cannot be predicted.
    #[inline]
    fn short(&mut self, value: u16) {
        let more = usize::from(value > 0x7f) + usize::from(value > 0xff);
        let marker = [0, 0xcc00, 0xcd_0000].get(more).copied().unwrap_or_default();
        let word = (u32::from(value) | marker) << (24 - 8 * more);
        self.put(&word.to_be_bytes());
        self.length -= 3 - more;
    }

    #[inline]
    fn size(&mut self, value: u64) {
        match u16::try_from(value) {
            Ok(value) => self.short(value),
            Err(_) => self.unsigned(value),
        }
    }

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

/// Decodes the value at the front of `bytes`, which are part of `buffer`, and returns it with its length; `None` if it
/// is of another kind, encoded in another way, or incomplete.
pub(crate) fn decode(bytes: &[u8], buffer: &Arc<Vec<u8>>) -> Option<(Frame, usize)> {
    let [_, name, ..] = bytes else { return None };
    let mut rest = Input(bytes);
    let frame = match name {
        0xa6 => decode_record(&mut rest)?.into(),
        0xa7 => rest.skip(b"\x81\xa7packets").and_then(|()| rest.packets(buffer))?.into(),
        0xa8 => rest.skip(b"\x81\xa8segments").and_then(|()| rest.segments(buffer))?.into(),
        _ => return None,
    };
    Some((frame, bytes.len() - rest.0.len()))
}

pub(crate) fn decode_packets(body: &[u8], buffer: &Arc<Vec<u8>>) -> Option<Packets> {
    Input(body).packets(buffer)
}

pub(crate) fn decode_segments(body: &[u8], buffer: &Arc<Vec<u8>>) -> Option<Segments> {
    Input(body).segments(buffer)
}

fn decode_record(bytes: &mut Input<'_>) -> Option<Record> {
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
    Some(Record {
        time_ns,
        start_ns,
        flow,
        direction,
        content_type,
        length,
        plaintext,
        handshake,
        protocol: Protocol::Tls,
    })
}

/// Bytes that are consumed from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn packets(&mut self, buffer: &Arc<Vec<u8>>) -> Option<Packets> {
        let rows = self.array_length()?;
        let mut batch = Packets::with_capacity(rows as usize);
        for _ in 0..rows {
            let more = self.array_length()?.checked_sub(PACKET_ENTRIES)?;
            let (time_ns, link_type, original_length) = (self.signed()?, self.small()?, self.small()?);
            let data = self.data()?;
            let (capture, number) = (self.small()?, self.unsigned()?);
            self.skip_values(more)?;
            batch.push_shared(Packet { time_ns, link_type, original_length, data, capture, number }, buffer);
        }
        Some(batch)
    }

    fn segments(&mut self, buffer: &Arc<Vec<u8>>) -> Option<Segments> {
        let rows = self.array_length()?;
        let mut batch = Segments::with_capacity(rows as usize);
        for _ in 0..rows {
            let more = self.array_length()?.checked_sub(OLD_SEGMENT_ENTRIES)?;
            let (time_ns, flow) = (self.signed()?, self.unsigned()?);
            let direction = Direction::from_number(self.small()?)?;
            let (sequence, flags, length) = (self.small()?, self.small()?, self.small()?);
            let payload = self.data()?;
            let has_number = more > 0 && !self.skip_null();
            let acknowledgement = if has_number { Some(self.small()?) } else { None };
            self.skip_values(more.saturating_sub(1))?;
            let segment = Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement };
            batch.push_shared(segment, buffer);
        }
        Some(batch)
    }

    fn skip_values(&mut self, count: u32) -> Option<()> {
        for _ in 0..count {
            let length = Extent::new().advance(self.0).ok()??;
            self.0 = self.0.get(length..)?;
        }
        Some(())
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

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
            _ => self.behind_sign(marker)?.try_into().ok()?,
        })
    }

    /// An integer whose marker says that it may be negative.
    #[cold]
    fn behind_sign(&mut self, marker: u8) -> Option<i64> {
        Some(match marker {
            0xd0 => i8::from_be_bytes(self.take()?).into(),
            0xd1 => i16::from_be_bytes(self.take()?).into(),
            0xd2 => i32::from_be_bytes(self.take()?).into(),
            0xd3 => i64::from_be_bytes(self.take()?),
            0xe0.. => marker.cast_signed().into(),
            _ => return None,
        })
    }

    /// An integer of a narrower type.
    #[inline]
    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.unsigned()?.try_into().ok()
    }

    #[inline]
    fn skip_null(&mut self) -> bool {
        let is_null = self.0.first() == Some(&0xc0);
        is_null && self.skip(b"\xc0").is_some()
    }

    #[inline]
    fn signed(&mut self) -> Option<i64> {
        match self.0.first()? {
            0xd0.. => {
                let [marker] = self.take()?;
                self.behind_sign(marker)
            }
            _ => self.unsigned()?.try_into().ok(),
        }
    }

    #[inline]
    fn data(&mut self) -> Option<&'a [u8]> {
        let [marker] = self.take()?;
        let length = match marker {
            0xc4 | 0xd9 => u8::from_be_bytes(self.take()?).into(),
            0xc5 | 0xda => u16::from_be_bytes(self.take()?).into(),
            0xc6 | 0xdb => u32::from_be_bytes(self.take()?),
            0xa0..=0xbf => (marker & 0x1f).into(),
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
mod tests;
