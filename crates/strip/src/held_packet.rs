//! A packet that is held back until it is known which bytes of it stay.

use std::ops::Range;

use sizeleak_frame::Packet;

use crate::layout::Layout;
use crate::read_streams::{ReadStreams, StreamKey};

/// Memory that a packet is taken to need besides its bytes.
const PACKET_COST: usize = 256;

#[derive(Debug)]
pub(crate) struct HeldPacket {
    time_ns: i64,
    link_type: u16,
    original_length: u32,
    capture: u32,
    number: u64,
    /// Its bytes, of which all behind the headers are zero.
    data: Vec<u8>,
    layout: Layout,
    /// Its payload, where some of it may have to stay.
    payload: Option<StreamPayload>,
    kept_bytes: u64,
}

#[derive(Debug)]
struct StreamPayload {
    stream: StreamKey,
    sequence: u32,
    bytes: Box<[u8]>,
}

impl HeldPacket {
    /// A packet whose payload is all zero.
    pub(crate) fn new(packet: Packet<'_>, layout: Layout) -> Self {
        let mut data = vec![0; packet.data.len()];
        data.iter_mut().zip(packet.data).take(layout.headers).for_each(|(zero, byte)| *zero = *byte);
        for at in &layout.other_checksums {
            if let Some(field) = data.get_mut(*at..at + 2) {
                field.fill(0);
            }
        }
        let Packet { time_ns, link_type, original_length, capture, number, .. } = packet;
        Self { time_ns, link_type, original_length, capture, number, data, layout, payload: None, kept_bytes: 0 }
    }

    pub(crate) fn held_bytes(&self) -> usize {
        PACKET_COST + self.data.len() + self.payload.as_ref().map_or(0, |payload| payload.bytes.len())
    }

    pub(crate) fn keep(&mut self, payload: &[u8], place: Range<usize>) {
        let start = self.layout.headers;
        let target = self.data.get_mut(start + place.start..start + place.end);
        if let (Some(target), Some(bytes)) = (target, payload.get(place)) {
            target.copy_from_slice(bytes);
            self.kept_bytes += bytes.len() as u64;
        }
    }

    /// Holds the payload, of which some bytes may be put back later.
    pub(crate) fn hold_payload(&mut self, stream: StreamKey, sequence: u32, payload: &[u8]) {
        self.payload = Some(StreamPayload { stream, sequence, bytes: payload.into() });
    }

    /// Puts the bytes back that were read, and corrects the checksum. Returns how many bytes of payload stay, and how
    /// many are zero.
    pub(crate) fn complete(&mut self, read: &ReadStreams) -> (u64, u64) {
        if let Some(StreamPayload { stream, sequence, bytes }) = self.payload.take() {
            for place in read.places(stream, sequence, &bytes) {
                self.keep(&bytes, place);
            }
        }
        let payload_end = self.layout.headers + self.layout.payload;
        if let Some(checksum) = self.layout.checksum {
            checksum.correct(&mut self.data, payload_end);
        }
        let behind_headers = self.data.len().saturating_sub(self.layout.headers) as u64;
        (self.kept_bytes, behind_headers.saturating_sub(self.kept_bytes))
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        let Self { time_ns, link_type, original_length, capture, number, .. } = *self;
        Packet { time_ns, link_type, original_length, data: &self.data, capture, number }
    }
}
