//! The codec of batches, and that of nearly all records, which takes half of serde's time.
//!
//! Rows of batches may be encoded in any way. Records are decoded as this writes them, and else by serde, which encodes
//! them to the same bytes; a property test compares both.

use std::sync::Arc;

use rmp::decode::{read_array_len, read_int};
use rmp::encode::{ValueWriteError, write_array_len, write_bin, write_sint};

use crate::extent::Extent;
use crate::{Direction, Frame, Packet, Packets, Protocol, Record, Segment, Segments};

/// The most bytes of a row besides its data: an array of six integers and the length of the data.
const ROW_BYTES: usize = 48;

/// Entries of rows. Later versions may append some, and older programs wrote segments without an acknowledgement.
const PACKET_ENTRIES: u32 = 6;
const OLD_SEGMENT_ENTRIES: u32 = 7;

pub(crate) fn encode_packets(batch: &Packets, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa7packets");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|packet| {
        buffer.push(0x96);
        signed(buffer, packet.time_ns)?;
        unsigned(buffer, packet.link_type.into());
        unsigned(buffer, packet.original_length.into());
        write_bin(buffer, packet.data)?;
        unsigned(buffer, packet.capture.into());
        unsigned(buffer, packet.number);
        Ok(())
    })
}

pub(crate) fn encode_segments(batch: &Segments, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa8segments");
    buffer.reserve(batch.data_bytes() + ROW_BYTES * batch.len());
    write_array_len(buffer, batch.len() as u32)?;
    batch.iter().try_for_each(|segment| {
        buffer.push(0x98);
        signed(buffer, segment.time_ns)?;
        unsigned(buffer, segment.flow);
        buffer.push(segment.direction.number());
        unsigned(buffer, segment.sequence.into());
        unsigned(buffer, segment.flags.into());
        unsigned(buffer, segment.length.into());
        write_bin(buffer, segment.payload)?;
        match segment.acknowledgement {
            Some(number) => unsigned(buffer, number.into()),
            None => buffer.push(0xc0),
        }
        Ok(())
    })
}

#[inline]
pub(crate) fn encode_record(record: &Record, buffer: &mut Vec<u8>) -> Result<(), ValueWriteError> {
    buffer.extend_from_slice(b"\x81\xa6record\x88\xa7time_ns");
    signed(buffer, record.time_ns)?;
    buffer.extend_from_slice(b"\xa8start_ns");
    signed(buffer, record.start_ns)?;
    buffer.extend_from_slice(b"\xa4flow");
    unsigned(buffer, record.flow);
    buffer.extend_from_slice(match record.direction {
        Direction::ToGateway => &b"\xa9direction\xaato_gateway\xaccontent_type"[..],
        Direction::FromGateway => &b"\xa9direction\xacfrom_gateway\xaccontent_type"[..],
    });
    buffer.push(record.content_type.into());
    buffer.extend_from_slice(b"\xa6length");
    unsigned(buffer, record.length.into());
    match record.plaintext {
        None => buffer.extend_from_slice(b"\xa9plaintext\xc0"),
        Some([least, most]) => {
            buffer.extend_from_slice(b"\xa9plaintext\x92");
            unsigned(buffer, least);
            unsigned(buffer, most);
        }
    }
    buffer.extend_from_slice(if record.handshake { b"\xa9handshake\xc3" } else { b"\xa9handshake\xc2" });
    Ok(())
}

/// An integer in its shortest form.
#[inline]
fn unsigned(buffer: &mut Vec<u8>, value: u64) {
    let [b7, b6, b5, b4, b3, b2, b1, b0] = value.to_be_bytes();
    match value {
        0..=0x7f => buffer.push(b0),
        0x80..=0xff => buffer.extend_from_slice(&[0xcc, b0]),
        0x100..=0xffff => buffer.extend_from_slice(&[0xcd, b1, b0]),
        0x1_0000..=0xffff_ffff => buffer.extend_from_slice(&[0xce, b3, b2, b1, b0]),
        _ => buffer.extend_from_slice(&[0xcf, b7, b6, b5, b4, b3, b2, b1, b0]),
    }
}

#[inline]
fn signed(buffer: &mut Vec<u8>, value: i64) -> Result<(), ValueWriteError> {
    match u64::try_from(value) {
        Ok(value) => unsigned(buffer, value),
        // A time before 1970.
        Err(_) => _ = write_sint(buffer, value)?,
    }
    Ok(())
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

fn decode_record(bytes: &mut Input<'_>) -> Option<Record> {
    bytes.skip(b"\x81\xa6record\x88\xa7time_ns")?;
    let time_ns = bytes.signed()?;
    bytes.skip(b"\xa8start_ns")?;
    let start_ns = bytes.signed()?;
    bytes.skip(b"\xa4flow")?;
    let flow = bytes.integer()?;
    bytes.skip(b"\xa9direction")?;
    let direction = bytes.direction()?;
    bytes.skip(b"\xaccontent_type")?;
    let content_type = bytes.integer::<u8>()?.try_into().ok()?;
    bytes.skip(b"\xa6length")?;
    let length = bytes.integer()?;
    bytes.skip(b"\xa9plaintext")?;
    let plaintext = match bytes.take()? {
        [0xc0] => None,
        [0x92] => Some([bytes.integer()?, bytes.integer()?]),
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

pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn packets(&mut self, buffer: &Arc<Vec<u8>>) -> Option<Packets> {
        let rows = read_array_len(&mut self.0).ok()?;
        let mut batch = Packets::with_capacity(rows as usize);
        for _ in 0..rows {
            let more = read_array_len(&mut self.0).ok()?.checked_sub(PACKET_ENTRIES)?;
            let (time_ns, link_type, original_length) = (self.signed()?, self.integer()?, self.integer()?);
            let data = self.data()?;
            let (capture, number) = (self.integer()?, self.integer()?);
            self.skip_values(more)?;
            batch.push_shared(Packet { time_ns, link_type, original_length, data, capture, number }, buffer);
        }
        Some(batch)
    }

    pub(crate) fn segments(&mut self, buffer: &Arc<Vec<u8>>) -> Option<Segments> {
        let rows = read_array_len(&mut self.0).ok()?;
        let mut batch = Segments::with_capacity(rows as usize);
        for _ in 0..rows {
            let more = read_array_len(&mut self.0).ok()?.checked_sub(OLD_SEGMENT_ENTRIES)?;
            let (time_ns, flow) = (self.signed()?, self.integer()?);
            let direction = Direction::from_number(self.integer()?)?;
            let (sequence, flags, length) = (self.integer()?, self.integer()?, self.integer()?);
            let payload = self.data()?;
            let has_number = more > 0 && self.0.first() != Some(&0xc0);
            let acknowledgement = if has_number { Some(self.integer()?) } else { None };
            self.skip_values(more - u32::from(has_number))?;
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
    fn signed(&mut self) -> Option<i64> {
        read_int(&mut self.0).ok()
    }

    #[inline]
    fn integer<T: TryFrom<u64>>(&mut self) -> Option<T> {
        read_int::<u64, _>(&mut self.0).ok()?.try_into().ok()
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
}
