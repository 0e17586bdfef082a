//! The quickest test: whether both ends of a packet lie outside of one network that is around all that are meant.

use crate::address_set::{AddressSet, Masked};
use crate::plain::{ETHERNET, ETHERNET_HEADER, IPV6_HEADER, TCP};

/// Ethernet's header and that of IPv6: as long as the headers of TCP in IPv4 at least.
const HEADERS: usize = ETHERNET_HEADER + IPV6_HEADER;
/// The type of what is behind Ethernet's header, and the version, as they lie in memory.
const KIND: u32 = u32::from_ne_bytes([0xff, 0xff, 0xf0, 0]);
const FOUR: u32 = u32::from_ne_bytes([0x08, 0x00, 0x40, 0]);
const SIX: u32 = u32::from_ne_bytes([0x86, 0xdd, 0x60, 0]);
/// No packet is of this kind.
const NONE: u32 = 0;
/// The bit of the version by which the two differ.
const IS_SIX: u32 = u32::from_ne_bytes([0, 0, 0x20, 0]);

/// A network of IPv4 that is around all that are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Around {
    network: Masked<u32>,
    /// What packets it decides about, of IPv4 and of IPv6: of IPv6 none if any of its networks is meant.
    kinds: [u32; 2],
}

impl Around {
    pub(crate) fn new(networks: &AddressSet) -> Self {
        let network = networks.four().iter().copied().reduce(Masked::around);
        let six = if networks.six().is_empty() { SIX } else { NONE };
        // Where there is nothing to be around, nothing is outside.
        Self { network: network.unwrap_or(Masked { bits: 0, mask: 0 }), kinds: [FOUR, six] }
    }

    /// Whether a packet is TCP in IPv4 or in IPv6, right behind Ethernet, and both of its ends are outside. Of an address of
    /// IPv6 the last four bytes are looked at: all that counts of an IPv4 address in IPv6 clothes.
    ///
    /// Both versions take the same way, since they take turns in no order that could be foretold.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "all there is to do about most packets")]
    pub(crate) fn excludes(&self, link_type: u16, data: &[u8]) -> bool {
        let Some(header) = data.first_chunk::<HEADERS>().filter(|_| link_type == ETHERNET) else { return false };
        let word =
            |at: usize| header.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_ne_bytes(*word));
        let kind = word(12) & KIND;
        let six = usize::from(kind & IS_SIX != 0);
        Some(&kind) == self.kinds.get(six)
            && Some(&TCP) == header.get(23 - 3 * six)
            && !self.network.holds_any([word(26 + 8 * six), word(30 + 20 * six)])
    }
}
