//! Goes over the packets that a stage further down would drop: all there is to do about most packets of an archive.

use prefetch_index::prefetch_index;
use sizeleak_packet::AddressPrefilter;

use crate::reader::CapturedPacket;

/// No packet takes fewer bytes of a capture besides its data, in whichever format.
pub(crate) const LEAST_OVERHEAD: usize = 16;

/// So far ahead, in bytes, lie the headers of packets that are a few further on.
const AHEAD: usize = 512;
const CACHE_LINE: usize = 64;

/// Packets that were gone over.
pub(crate) struct Skimmed<'a> {
    /// What is behind them.
    pub(crate) rest: &'a [u8],
    pub(crate) packets: usize,
    /// Bytes of data in them.
    pub(crate) data_bytes: usize,
    /// How many of them the snaplen cut.
    pub(crate) snaplen_cut: usize,
    /// When the last of them was captured, if there were any.
    pub(crate) last_ns: i64,
}

/// Goes over packets captured before `before_ns` that `sieve` holds back, as `first` finds them at the front of bytes, until
/// no more than `left` bytes are left.
///
/// A function of its own, so that what it counts stays in registers.
#[inline(never)]
pub(crate) fn skim<'a>(
    sieve: &AddressPrefilter,
    bytes: &'a [u8],
    left: usize,
    before_ns: i64,
    first: impl Fn(&'a [u8]) -> Option<(CapturedPacket<'a>, &'a [u8])>,
) -> Skimmed<'a> {
    let mut skimmed = Skimmed { rest: bytes, packets: 0, data_bytes: 0, snaplen_cut: 0, last_ns: 0 };
    while skimmed.rest.len() > left
        && let Some((packet, behind)) = first(skimmed.rest)
        && packet.time_ns < before_ns
        && sieve.rejects(packet.link_type, packet.data)
    {
        // Where the next header is, only this one tells: without it each would be waited for.
        prefetch_index(skimmed.rest, AHEAD);
        prefetch_index(skimmed.rest, AHEAD + CACHE_LINE);
        skimmed.rest = behind;
        skimmed.packets += 1;
        skimmed.data_bytes += packet.data.len();
        skimmed.snaplen_cut += usize::from(packet.data.len() < packet.original_length as usize);
        skimmed.last_ns = packet.time_ns;
    }
    skimmed
}
