//! IP packets put together again from their fragments, in bounded memory.
//!
//! Ours, since etherparse's pool is unbounded and takes a fragment for whole that the snaplen has cut. Bytes that came
//! first win over later ones for the same place, as in TCP; a packet is given once every byte of it was on the wire,
//! with as much of its beginning as was captured.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use foldhash::quality::RandomState;

use crate::network::{Fragment, IpPacket};

/// So many packets are put together at once.
pub(crate) const MOST_PACKETS: usize = 1024;

/// So much memory is held for them in all, in bytes.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// Fragments of a packet come within this time, in nanoseconds of the traffic: 30 s, as hosts commonly have it.
pub(crate) const LONGEST_NS: u64 = 30_000_000_000;

/// What a piece costs besides its data.
const PIECE_BYTES: usize = 64;

/// The longest packet there can be (RFC 791): 16 bits of length.
const LONGEST_PACKET: u32 = 65_535;

/// Which packet a fragment is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    protocol: u8,
}

/// What an IP packet carried, put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) protocol: u8,
    /// Bytes on the wire.
    pub(crate) length: u32,
    /// What was captured of its beginning.
    pub(crate) data: Vec<u8>,
}

/// A packet that was given up: not all of its fragments came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Bytes that came.
    pub(crate) bytes: u64,
}

/// A fragment that carries nothing, or reaches behind the end of any packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Impossible;

/// Packets of which fragments are still to come.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// By the order in which they began, the eldest first.
    partial: BTreeMap<u64, Partial>,
    numbers: HashMap<Key, u64, RandomState>,
    begun: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Partial {
    key: Key,
    since_ns: i64,
    /// Where the last fragment ends, once it came.
    end: Option<u32>,
    /// What came, by its offset; pieces do not overlap.
    pieces: BTreeMap<u32, Piece>,
    /// Bytes of the packet that came.
    there: u32,
    /// Bytes of memory, about.
    bytes: usize,
}

#[derive(Debug)]
struct Piece {
    length: u32,
    data: Vec<u8>,
}

impl Reassembly {
    /// Takes a fragment and gives the packet that it completes, if it does. Packets that are given up on the way are
    /// told to `given_up`.
    pub(crate) fn add(
        &mut self,
        time_ns: i64,
        packet: &IpPacket<'_>,
        fragment: Fragment,
        given_up: &mut dyn FnMut(GivenUp),
    ) -> Result<Option<Whole>, Impossible> {
        self.expire(time_ns, given_up);
        let (start, end) = (fragment.offset, fragment.offset.saturating_add(packet.content.length));
        if end > LONGEST_PACKET || start == end {
            return Err(Impossible);
        }
        let (source, destination, protocol) = (packet.source, packet.destination, packet.content.protocol);
        let key = Key { source, destination, identification: fragment.identification, protocol };
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.begun += 1;
            self.begun
        });
        let partial = self.partial.entry(number).or_insert_with(|| Partial {
            key,
            since_ns: time_ns,
            end: None,
            pieces: BTreeMap::new(),
            there: 0,
            bytes: 0,
        });
        let before = partial.bytes;
        if fragment.is_last {
            partial.end.get_or_insert(end);
        }
        partial.add(start, end, packet.content.data);
        self.bytes += partial.bytes - before;
        if partial.is_whole() {
            return Ok(self.remove(number).map(|partial| partial.into_whole(protocol)));
        }
        while self.bytes > MOST_BYTES || self.partial.len() > MOST_PACKETS {
            self.give_up_eldest(given_up);
        }
        Ok(None)
    }

    /// Gives up all that is not complete.
    pub(crate) fn finish(&mut self, given_up: &mut dyn FnMut(GivenUp)) {
        while !self.partial.is_empty() {
            self.give_up_eldest(given_up);
        }
    }

    fn expire(&mut self, now_ns: i64, given_up: &mut dyn FnMut(GivenUp)) {
        while let Some((_, eldest)) = self.partial.first_key_value()
            && now_ns.abs_diff(eldest.since_ns) > LONGEST_NS
        {
            self.give_up_eldest(given_up);
        }
    }

    fn give_up_eldest(&mut self, given_up: &mut dyn FnMut(GivenUp)) {
        let Some(number) = self.partial.keys().next().copied() else { return };
        if let Some(partial) = self.remove(number) {
            let Key { source, destination, .. } = partial.key;
            given_up(GivenUp { source, destination, bytes: partial.there.into() });
        }
    }

    fn remove(&mut self, number: u64) -> Option<Partial> {
        let partial = self.partial.remove(&number)?;
        self.numbers.remove(&partial.key);
        self.bytes -= partial.bytes;
        Some(partial)
    }
}

impl Partial {
    /// Fills the places from `start` to `end` that are still free.
    fn add(&mut self, start: u32, end: u32, data: &[u8]) {
        let before = self.pieces.range(..start).next_back().map(|(at, piece)| at + piece.length);
        let mut from = before.unwrap_or(start).max(start);
        let mut free = Vec::new();
        for (at, piece) in self.pieces.range(start..end) {
            if from < *at {
                free.push((from, *at));
            }
            from = from.max(at + piece.length);
        }
        if from < end {
            free.push((from, end));
        }
        for (from, to) in free {
            let captured = data.get((from - start) as usize..).unwrap_or_default();
            let captured = captured.get(..(to - from) as usize).unwrap_or(captured);
            self.there += to - from;
            self.bytes += captured.len() + PIECE_BYTES;
            self.pieces.insert(from, Piece { length: to - from, data: captured.to_vec() });
        }
    }

    fn is_whole(&self) -> bool {
        let Some(end) = self.end.filter(|end| self.there >= *end) else { return false };
        let contiguous = self.pieces.iter().try_fold(0, |at, (start, piece)| {
            if at >= end || *start == at { Ok(at.max(start + piece.length)) } else { Err(at) }
        });
        contiguous.is_ok_and(|there| there >= end)
    }

    fn into_whole(self, protocol: u8) -> Whole {
        let length = self.end.unwrap_or_default();
        let mut data = Vec::with_capacity(length as usize);
        for (start, piece) in &self.pieces {
            // Behind what the snaplen has cut nothing can be read: it would be taken for what was cut.
            if data.len() < *start as usize {
                break;
            }
            data.extend_from_slice(&piece.data);
        }
        data.truncate(length as usize);
        Whole { protocol, length, data }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::Content;

    fn packet(last_of_source: u8, content: &[u8]) -> IpPacket<'_> {
        IpPacket {
            source: [10, 0, 0, last_of_source].into(),
            destination: [10, 0, 0, 1].into(),
            content: Content { protocol: 6, length: content.len() as u32, data: content },
            fragment: None,
        }
    }

    fn fragment(identification: u32, offset: u32, is_last: bool) -> Fragment {
        Fragment { identification, offset, is_last }
    }

    fn ignore(_: GivenUp) {}

    #[test]
    fn the_first_bytes_for_a_place_win_and_cut_ones_end_what_can_be_read() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.add(0, &packet(2, &[1; 16]), fragment(7, 8, false), &mut ignore), Ok(None));
        let mut cut = packet(2, &[2; 20]);
        cut.content.data = &[2; 6];
        assert_eq!(reassembly.add(0, &cut, fragment(7, 20, true), &mut ignore), Ok(None));
        let whole = reassembly.add(0, &packet(2, &[3; 16]), fragment(7, 0, false), &mut ignore).unwrap().unwrap();
        assert_eq!((whole.protocol, whole.length), (6, 40));
        assert_eq!(whole.data, [&[3; 8][..], &[1; 16], &[2; 2]].concat());
        assert_eq!((reassembly.bytes, reassembly.numbers.len()), (0, 0));
    }

    #[test]
    fn what_is_never_completed_is_given_up_after_its_time() {
        let mut reassembly = Reassembly::default();
        let mut given_up = Vec::new();
        let mut keep = |packet| given_up.push(packet);
        reassembly.add(0, &packet(2, &[1; 16]), fragment(7, 0, false), &mut keep).unwrap();
        reassembly.add(LONGEST_NS.cast_signed(), &packet(3, &[1; 24]), fragment(7, 0, false), &mut keep).unwrap();
        reassembly.add(LONGEST_NS.cast_signed() + 1, &packet(4, &[1; 8]), fragment(7, 0, false), &mut keep).unwrap();
        reassembly.finish(&mut keep);
        assert_eq!(given_up.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [16, 24, 8]);
        let impossible = reassembly.add(0, &packet(2, &[1; 16]), fragment(7, 65_528, false), &mut ignore);
        assert_eq!(impossible, Err(Impossible));
    }

    #[test]
    fn memory_is_bounded() {
        let mut reassembly = Reassembly::default();
        let mut given_up = 0;
        for identification in 0..5_000 {
            let size = if identification < 2_500 { 8 } else { 60_000 };
            let data = vec![1; size];
            reassembly.add(0, &packet(2, &data), fragment(identification, 0, false), &mut |_| given_up += 1).unwrap();
            assert!(reassembly.partial.len() <= MOST_PACKETS && reassembly.bytes <= MOST_BYTES);
        }
        assert_eq!(given_up + reassembly.partial.len(), 5_000);
    }

    proptest! {
        #[test]
        fn pieces_in_any_cut_order_and_overlap_give_the_whole(
            whole in prop::collection::vec(any::<u8>(), 1..200),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 1usize..60), 0..12),
            order: prop::sample::Index,
        ) {
            let mut parts: Vec<(usize, usize)> = (0..whole.len()).step_by(24).map(|at| (at, 24)).collect();
            parts.extend(cuts.iter().map(|(at, length)| (at.index(whole.len()), *length)));
            let turns = order.index(parts.len());
            parts.rotate_left(turns);
            let mut reassembly = Reassembly::default();
            let mut given = None;
            for (at, length) in parts {
                let end = (at + length).min(whole.len());
                let fragment = fragment(1, at as u32, end == whole.len());
                if let Some(put_together) = reassembly.add(0, &packet(2, &whole[at..end]), fragment, &mut ignore).unwrap() {
                    given.get_or_insert(put_together);
                }
            }
            prop_assert_eq!(given.map(|given| given.data), Some(whole));
        }
    }
}
