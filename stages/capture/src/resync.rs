//! Finds the next packet of a capture behind a damaged place.
//!
//! Bytes of a payload may look like a packet. So a packet counts only if others follow it closely, each where the one
//! before says, at times near the last packet that was read; or up to the end of the capture. Where no time is near,
//! which one damaged time is enough for, they must be more than fit into any packet.

use crate::window::Window;

/// How far a packet's time may be before or after that of the one before, in nanoseconds: an hour, and a day.
const MAX_BACK_NS: i64 = 3_600_000_000_000;
const MAX_AHEAD_NS: i64 = 24 * MAX_BACK_NS;

/// A chain of more packets than this is not followed: their bytes are too few, and each byte may begin one.
const MAX_PACKETS: usize = 4096;

/// A capture is read in steps of this many bytes.
const STEP: usize = 256 << 10;

/// What may be a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Candidate {
    /// It is none.
    Implausible,
    /// This many bytes are needed to decide.
    Incomplete(usize),
    /// It may be one of this length, headers included. A block that describes packets has no time.
    Plausible { length: usize, time_ns: Option<i64> },
}

/// What a format knows of its packets.
pub(crate) trait PacketFormat {
    /// Judges the bytes where a packet may begin.
    fn candidate(&self, bytes: &[u8]) -> Candidate;

    /// The time of the last packet that was read.
    fn last_ns(&self) -> Option<i64>;
}

/// How much is believed: packets in a row and their bytes, or packets in a row up to the end of the capture, the last
/// of which may be cut.
#[derive(Debug, Clone, Copy)]
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

/// What follows a place in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chain {
    Believed,
    Refused,
    /// This many bytes from the place on are needed to decide.
    Incomplete(usize),
}

/// Moves a window behind the damage at its front, to the next packet that is believed; returns how many bytes it has
/// skipped. `None` if no packet follows: then the window is at the end.
pub(crate) fn skip_damage(window: &mut Window, format: &impl PacketFormat) -> Option<u64> {
    let (from, mut wanted) = (window.offset(), STEP);
    // The damaged packet itself.
    let mut at = 1;
    loop {
        let is_whole = !window.fetch(wanted);
        let bytes = window.available();
        wanted = STEP;
        while at < bytes.len() {
            let place = bytes.get(at..).unwrap_or_default();
            match chain(place, is_whole, format) {
                Chain::Believed => {
                    window.consume(at);
                    return Some(window.offset() - from);
                }
                Chain::Refused => at += 1,
                Chain::Incomplete(length) => {
                    wanted = length.max(STEP);
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

/// Judges what begins at the front of `bytes`, behind which the capture ends if `is_whole`.
fn chain(bytes: &[u8], is_whole: bool, format: &impl PacketFormat) -> Chain {
    let believed_if = |holds| if holds { Chain::Believed } else { Chain::Refused };
    let (mut at, mut packets, mut last_ns, mut wanted) = (0, 0, format.last_ns(), NEAR);
    loop {
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
        if packets >= MAX_PACKETS {
            return Chain::Refused;
        }
    }
}

/// Whether a packet at this time may follow one at the other.
pub(crate) fn is_near(time_ns: i64, last_ns: i64) -> bool {
    (-MAX_BACK_NS..=MAX_AHEAD_NS).contains(&time_ns.saturating_sub(last_ns))
}
