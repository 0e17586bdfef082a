//! A TCP connection that carries TLS records, with sequence numbers that fit.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::wire::Wire;

const SYN: u8 = 2;
const PUSH_ACK: u8 = 24;
const LONGEST_SEGMENT: usize = 1460;

/// Whether records and segments share their boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// One record per segment.
    AtRecords,
    /// Segments of any length, with record boundaries anywhere in them.
    Anywhere,
}

/// A connection between the gateway and a service.
pub(crate) struct Conversation {
    ends: [SocketAddr; 2],
    /// By direction, as `ends`: the next sequence number, and the unsent bytes of records.
    sequences: [u32; 2],
    unsent: [Vec<u8>; 2],
    opened: usize,
}

impl Conversation {
    pub(crate) fn new(gateway: SocketAddr, service: SocketAddr, sequence: u32) -> Self {
        let sequences = [sequence, sequence.wrapping_mul(7)];
        Self { ends: [gateway, service], sequences, unsent: [Vec::new(), Vec::new()], opened: 0 }
    }

    /// Appends the next segment of it to a capture.
    pub(crate) fn write(
        &mut self,
        capture: &mut Vec<u8>,
        time_us: u64,
        cut: Cut,
        random: &mut ChaCha8Rng,
        filler: &[u8],
    ) {
        let from = if self.opened < 2 { self.opened } else { random.random_range(0..2) };
        let (source, destination) = (self.ends[from], self.ends[1 - from]);
        let acknowledgement = self.sequences[1 - from];
        let (sequence, unsent) = (&mut self.sequences[from], &mut self.unsent[from]);
        let segment =
            Wire { time_us, source, destination, sequence: *sequence, acknowledgement, flags: SYN, payload: &[] };
        if self.opened < 2 {
            self.opened += 1;
            segment.write(capture);
            *sequence = sequence.wrapping_add(1);
            return;
        }
        let length = match cut {
            Cut::AtRecords => {
                push_record(unsent, 60..=400, random, filler);
                unsent.len()
            }
            Cut::Anywhere => {
                let length = random.random_range(100..=LONGEST_SEGMENT);
                while unsent.len() < length {
                    let lengths = if random.random_bool(0.7) { 40..=600 } else { 600..=5000 };
                    push_record(unsent, lengths, random, filler);
                }
                length
            }
        };
        Wire { flags: PUSH_ACK, payload: &unsent[..length], ..segment }.write(capture);
        *sequence = sequence.wrapping_add(length as u32);
        unsent.drain(..length);
    }
}

/// Application data of a random length in this range.
fn push_record(stream: &mut Vec<u8>, lengths: RangeInclusive<u16>, random: &mut ChaCha8Rng, filler: &[u8]) {
    let length = random.random_range(lengths);
    stream.extend_from_slice(&[23, 3, 3]);
    stream.extend_from_slice(&length.to_be_bytes());
    let start = random.random_range(0..filler.len() - usize::from(length));
    stream.extend_from_slice(&filler[start..start + usize::from(length)]);
}
