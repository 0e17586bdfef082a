//! Packets that are named, but not sized: how many of each protocol, and between whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sizeleak_packet::{IpPacket, UnsizedProtocol};

/// The most pairs of addresses that are told apart; packets of later ones are only counted.
const MAX_PAIRS: usize = 256;
/// How many pairs of a protocol are shown.
const SHOWN: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct UnsizedTraffic {
    packets: BTreeMap<UnsizedProtocol, Named>,
}

#[derive(Debug, Default)]
struct Named {
    packets: u64,
    pairs: BTreeSet<[IpAddr; 2]>,
}

impl UnsizedTraffic {
    /// Counts a packet, if it is of such a protocol. Of others than gateways only tunnels count, in which a gateway's
    /// packets may be.
    pub(crate) fn count(&mut self, packet: &IpPacket<'_>, is_gateways: bool) {
        let [source, destination] = [packet.source, packet.destination];
        let counts = |protocol: &UnsizedProtocol| is_gateways || protocol.is_tunnel();
        let Some(protocol) = UnsizedProtocol::of(packet).filter(counts) else { return };
        let named = self.packets.entry(protocol).or_default();
        named.packets += 1;
        if named.pairs.len() < MAX_PAIRS {
            named.pairs.insert([source.min(destination), source.max(destination)]);
        }
    }

    /// One sentence for each protocol, with the number of its packets.
    pub(crate) fn sentences(&self) -> impl Iterator<Item = String> {
        self.packets.iter().map(|(protocol, named)| {
            let shown = named.pairs.iter().take(SHOWN).map(|[one, other]| format!("{one} and {other}"));
            let more = match named.pairs.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let plural = if named.packets == 1 { "packet" } else { "packets" };
            let between = shown.collect::<Vec<_>>().join(", ");
            format!("{} {plural} of {protocol} between {between}{more}: not sized", named.packets)
        })
    }
}
