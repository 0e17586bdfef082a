//! Finds the next packet of a capture behind a damaged place.
//!
//! Bytes of a payload may look like a packet. So a packet counts only if others follow it closely, each where the one
//! before says, at times near the last packet that was read; or up to the end of the capture. Where no time is near,
//! which one damaged time is enough for, they must be more than fit into any packet.

use std::collections::VecDeque;

use crate::window::Window;

/// How far a packet's time may be before or after that of the one before, in nanoseconds: an hour, and a day.
const MAX_BACK_NS: i64 = 3_600_000_000_000;
const MAX_AHEAD_NS: i64 = 24 * MAX_BACK_NS;

/// A chain of more packets and blocks than this is not followed: their bytes are too few, and each byte may begin one. Nor
/// is one of more bytes than the packets have that are wanted at most, each of the longest.
const MAX_PIECES: usize = 4096;
const MAX_BYTES: usize = 16 << 20;

const STEP_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidate {
    Implausible,
    /// This many bytes are needed to decide.
    Incomplete(usize),
    /// It may be one of this length, headers included. A block that describes packets has no time.
    Plausible {
        length: usize,
        time_ns: Option<i64>,
    },
}

pub(crate) trait PacketFormat {
    fn candidate(&self, bytes: &[u8]) -> Candidate;

    fn last_ns(&self) -> Option<i64>;
}

/// How much is believed: packets in a row and their bytes, or packets in a row up to the end of the capture, the last
/// of which may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Evidence {
    packets: usize,
    bytes: usize,
    packets_to_end: usize,
    packets_to_cut: usize,
}

/// At times near the last one.
const NEAR: Evidence = Evidence { packets: 4, bytes: 2 << 10, packets_to_end: 1, packets_to_cut: 2 };
/// At other times: more bytes than the longest IP packet has.
const FAR: Evidence = Evidence { packets: 16, bytes: 128 << 10, packets_to_end: 16, packets_to_cut: 16 };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chain {
    Believed,
    Refused,
    Incomplete(usize),
}

/// Moves a window behind the damage at its front, to the next packet that is believed; returns how many bytes it has
/// skipped. `None` if no packet follows: then the window is at the end.
pub(crate) fn skip_damage(window: &mut Window, format: &impl PacketFormat) -> Option<u64> {
    let (from, mut wanted) = (window.offset(), STEP_BYTES);
    // The damaged packet itself.
    let mut at = 1;
    // Whether the places that come are refused with one before them, so that each chain is followed once.
    let mut refused = VecDeque::new();
    loop {
        let is_whole = !window.fetch(wanted);
        let bytes = window.available();
        wanted = STEP_BYTES;
        while at < bytes.len() {
            if refused.pop_front() == Some(true) {
                at += 1;
                continue;
            }
            let (place, mut ahead) = (bytes.get(at..).unwrap_or_default(), Vec::new());
            match chain(place, is_whole, format, &mut ahead) {
                Chain::Believed => {
                    window.consume(at);
                    return Some(window.offset() - from);
                }
                Chain::Refused => {
                    let needed = ahead.last().copied().unwrap_or(0).max(refused.len());
                    refused.resize(needed, false);
                    for next in ahead {
                        if let Some(place) = refused.get_mut(next - 1) {
                            *place = true;
                        }
                    }
                    at += 1;
                }
                Chain::Incomplete(length) => {
                    refused.push_front(false);
                    wanted = length.max(STEP_BYTES);
                    break;
                }
            }
        }
        window.consume(at.min(window.available().len()));
        at = 0;
        if is_whole {
            return None;
        }
    }
}

/// Judges what begins at the front of `bytes`, behind which the capture ends if `is_whole`. Adds to `ahead` the places that
/// are refused if this one is: those of which as much is wanted, and less follows.
fn chain(bytes: &[u8], is_whole: bool, format: &impl PacketFormat, ahead: &mut Vec<usize>) -> Chain {
    let believed_if = |holds| if holds { Chain::Believed } else { Chain::Refused };
    let (mut at, mut packets, mut last_ns, mut wanted) = (0, 0, format.last_ns(), NEAR);
    for _ in 0..MAX_PIECES {
        let rest = bytes.get(at..).unwrap_or_default();
        if is_whole && rest.is_empty() {
            return believed_if(
                at == bytes.len() && packets >= wanted.packets_to_end || packets > wanted.packets_to_cut,
            );
        }
        let (length, time_ns) = match format.candidate(rest) {
            Candidate::Implausible => return Chain::Refused,
            Candidate::Plausible { length, time_ns } => (length, time_ns),
            Candidate::Incomplete(_) if is_whole => return believed_if(packets >= wanted.packets_to_cut),
            Candidate::Incomplete(length) => return Chain::Incomplete(at + length),
        };
        if let (Some(last_ns), Some(time_ns)) = (last_ns, time_ns)
            && !is_near(time_ns, last_ns)
        {
            if packets > 0 {
                return Chain::Refused;
            }
            wanted = FAR;
        }
        let is_far = time_ns.zip(format.last_ns()).is_some_and(|(time_ns, last_ns)| !is_near(time_ns, last_ns));
        if at > 0 && (is_far || packets == 0 || time_ns.is_some() && wanted == NEAR) {
            ahead.push(at);
        }
        packets += usize::from(time_ns.is_some());
        last_ns = time_ns.or(last_ns);
        at += length;
        // The first packet must be there as a whole: it is read next.
        if at > bytes.len() && packets <= 1 {
            return if is_whole { Chain::Refused } else { Chain::Incomplete(at) };
        }
        if packets >= wanted.packets && at >= wanted.bytes {
            return Chain::Believed;
        }
        if at > MAX_BYTES {
            break;
        }
    }
    Chain::Refused
}

pub(crate) fn is_near(time_ns: i64, last_ns: i64) -> bool {
    (-MAX_BACK_NS..=MAX_AHEAD_NS).contains(&time_ns.saturating_sub(last_ns))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Cursor;

    use super::*;
    use crate::window::ByteSource;

    /// Pieces whose length is their first two bytes: 12, 20 or 1,004; the last ones are packets, at the time of the next two in
    /// days. It counts how often it was asked.
    #[derive(Default)]
    struct Pieces {
        asked: Cell<usize>,
    }

    impl PacketFormat for Pieces {
        fn candidate(&self, bytes: &[u8]) -> Candidate {
            self.asked.set(self.asked.get() + 1);
            let Some(&[low, high, days, more]) = bytes.first_chunk() else { return Candidate::Incomplete(4) };
            let length = usize::from(u16::from_le_bytes([low, high]));
            let days = i64::from(u16::from_le_bytes([days, more]));
            match length {
                12 | 20 | 1_004 if bytes.len() < length => Candidate::Incomplete(length),
                12 | 20 | 1_004 => {
                    Candidate::Plausible { length, time_ns: (length > 1_000).then_some(days * MAX_AHEAD_NS) }
                }
                _ => Candidate::Implausible,
            }
        }

        fn last_ns(&self) -> Option<i64> {
            Some(0)
        }
    }

    fn piece(length: u16, days: u16) -> Vec<u8> {
        let mut piece = vec![0; length.into()];
        piece[..2].copy_from_slice(&length.to_le_bytes());
        piece[2..4].copy_from_slice(&days.to_le_bytes());
        piece
    }

    /// How many bytes are skipped, and how often a place was looked at for each of them.
    fn skipped(bytes: Vec<u8>) -> (Option<u64>, usize) {
        let (length, format) = (bytes.len(), Pieces::default());
        let mut window = Window::new(ByteSource::Stream(Box::new(Cursor::new(bytes))), STEP_BYTES);
        (skip_damage(&mut window, &format), format.asked.get().div_ceil(length))
    }

    /// However many places begin chains that lead to nothing, each chain is followed about once.
    #[test]
    fn the_work_is_linear_in_the_bytes() {
        let (none, far, damage) = (piece(20, 0), piece(1_004, 9), vec![0; 3]);
        let turning: Vec<u8> = (0..2_000).flat_map(|at| piece(1_004, at % 3 * 9)).collect();
        for (name, content) in [
            ("pieces without a time", none.repeat(100_000)),
            ("every place begins one", [12, 0, 12, 0].repeat(500_000)),
            ("packets at other times", far.repeat(15)),
            ("packets whose times turn", turning),
        ] {
            let (found, looks) = skipped([&damage[..], &content].concat());
            assert!(found.is_none() && looks <= 4, "{name}: {found:?}, {looks} for each byte");
        }
    }

    #[test]
    fn packets_behind_many_other_pieces_are_found() {
        let packets = piece(1_004, 0).repeat(9);
        for before in [0, 10, 5_000, 30_000] {
            let content = [&[0; 3][..], &piece(20, 0).repeat(before), &packets].concat();
            let (found, looks) = skipped(content);
            assert!(found.is_some_and(|bytes| bytes <= 3 + 20 * before as u64) && looks <= 4, "{before}: {found:?}");
        }
    }
}
