//! The least work that sizes the records of a capture: one loop without stages, batches, sessions or IPv6, and without
//! handling loss, reordering or anything that is not TLS.

use std::io::{self, Read, Write};

use sizeleak_frame::{BATCH_ROWS, ContentType, Direction, Frame, FrameWriter, Record};

use crate::walk::visit_packets;

/// Ethernet, IPv4 and TCP without options.
const HEADERS: usize = 54;
const RECORD_HEADER: usize = 5;
/// Far more than the directions of connections that `write` makes by default.
const STREAMS: usize = 1 << 12;

/// One direction of a connection, identified by its ends as in a packet.
#[derive(Debug, Clone, Copy, Default)]
struct StreamState {
    addresses: u64,
    ports: u32,
    next: u32,
    left: usize,
    header: [u8; RECORD_HEADER],
    /// How many bytes of the next header were read.
    have: usize,
    start_ns: i64,
}

/// Sizes the records of a capture that `archive write` made and writes them as frames; returns their number.
pub(crate) fn size(capture: impl Read, output: impl Write) -> io::Result<u64> {
    let (mut streams, mut frames, mut writer) =
        (vec![StreamState::default(); STREAMS], Vec::new(), FrameWriter::new(output));
    let mut records = 0;
    let mut write = |frames: &mut Vec<Frame>| {
        records += frames.len() as u64;
        let written = writer.write_all(frames);
        frames.clear();
        written
    };
    visit_packets(capture, |header, data| {
        let [seconds, micros] = [0, 4].map(|at| i64::from(u32::from_le_bytes(*word(header, at))));
        packet(data, seconds * 1_000_000_000 + micros * 1000, &mut streams, &mut frames);
        if frames.len() < BATCH_ROWS { Ok(()) } else { write(&mut frames) }
    })?;
    write(&mut frames)?;
    writer.flush()?;
    Ok(records)
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    bytes[at..].first_chunk().unwrap_or(&[0; N])
}

fn packet(data: &[u8], time_ns: i64, streams: &mut [StreamState], frames: &mut Vec<Frame>) {
    let Some((headers, payload)) = data.split_first_chunk::<HEADERS>() else { return };
    if headers[12..15] != [8, 0, 0x45] || headers[23] != 6 || payload.is_empty() {
        return;
    }
    let addresses = u64::from_le_bytes(*word(headers, 26));
    let (ports, sequence) = (u32::from_le_bytes(*word(headers, 34)), u32::from_be_bytes(*word(headers, 38)));
    let flow = (addresses ^ u64::from(ports).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63;
    let mut at = (flow >> 48) as usize % STREAMS;
    while streams[at].ports != 0 && (streams[at].ports, streams[at].addresses) != (ports, addresses) {
        at = (at + 1) % STREAMS;
    }
    let stream = &mut streams[at];
    if stream.ports == 0 {
        *stream = StreamState { addresses, ports, next: sequence, ..StreamState::default() };
    }
    if sequence == stream.next {
        stream.next = sequence.wrapping_add(payload.len() as u32);
        let direction = if ports as u16 == 443_u16.to_be() { Direction::ToGateway } else { Direction::FromGateway };
        stream.walk(payload, (time_ns, flow, direction), frames);
    }
}

impl StreamState {
    fn walk(&mut self, mut payload: &[u8], (time_ns, flow, direction): (i64, u64, Direction), frames: &mut Vec<Frame>) {
        let mut left = self.left;
        loop {
            if left > 0 {
                let Some(behind) = payload.get(left..) else {
                    self.left = left - payload.len();
                    return;
                };
                payload = behind;
                let [content_type, _, _, high, low] = self.header;
                let Ok(content_type) = ContentType::try_from(content_type) else { return };
                let (start_ns, length) = (self.start_ns, u32::from(u16::from_be_bytes([high, low])));
                let (plaintext, handshake) = (None, false);
                let record = Record {
                    time_ns,
                    start_ns,
                    flow,
                    direction,
                    content_type,
                    length,
                    plaintext,
                    handshake,
                    protocol: sizeleak_frame::Protocol::Tls,
                };
                frames.push(record.into());
                self.left = 0;
            }
            if self.have == 0 {
                self.start_ns = time_ns;
            }
            let missing = RECORD_HEADER - self.have;
            let Some((new, behind)) = payload.split_at_checked(missing) else {
                self.header[self.have..self.have + payload.len()].copy_from_slice(payload);
                self.have += payload.len();
                return;
            };
            self.header[self.have..].copy_from_slice(new);
            (self.have, payload) = (0, behind);
            left = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
        }
    }
}
