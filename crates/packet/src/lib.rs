//! Finds the packets from and to a set of addresses, and parses their headers.
//!
//! Parsers borrow the bytes of one packet and keep no state. The general parsers go layer by layer: [`ip_bytes`] skips
//! the link layer, [`IpPacket`] reads IP, [`open_tunnel`] opens a tunnel, [`TransportSegment`] reads TCP and UDP.
//! Checksums are never verified: offloading leaves them wrong in captures. [`fast`] reads the most frequent packets at
//! fixed offsets. With it [`AddressPrefilter`] rejects most packets of an archive, in `capture` and in `flow-filter`
//! alike.
//!
//! ```
//! use sizeleak_packet::{AddressPrefilter, AddressSet, CapturedBytes, IpPacket, TransportSegment, ip_bytes};
//!
//! const ETHERNET: u16 = 1;
//! let mut frame = vec![0; 12]; // MAC addresses
//! frame.extend([0x08, 0x00]); // EtherType: IPv4
//! frame.extend([0x45, 0, 0, 31, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]); // UDP
//! frame.extend([0x16, 0x34, 0xc3, 0x50, 0, 11, 0, 0, b'a', b'b', b'c']); // port 5684 to 50000
//!
//! let prefilter = AddressPrefilter::new(AddressSet::parse(["10.0.0.2", "192.168.0.0/16"])?);
//! assert!(!prefilter.rejects(ETHERNET, &frame));
//!
//! let ip = ip_bytes(ETHERNET, CapturedBytes::frame(&frame, frame.len() as u32)).map_err(|reason| reason.to_string())?;
//! let packet = IpPacket::read(ip).ok_or("no IP header")?;
//! let segment = TransportSegment::read(&packet).map_err(|_| "no TCP or UDP header")?;
//! assert_eq!(segment.source.to_string(), "10.0.0.1:5684");
//! assert_eq!(segment.payload.data(), b"abc");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::indexing_slicing)]

mod address_set;
pub mod fast;
mod ip;
mod link;
mod transport;
mod tunnel;

pub use address_set::{AddressPair, AddressSet, InvalidAddress, is_private};
pub use ip::{CapturedBytes, Fragment, GRE, IpPacket, IpPayload, UDP, may_be_tunnel};
pub use link::{NoIpHeader, ip_bytes};
pub use transport::{DnsKind, DnsMessage, NoSegment, TransportSegment, UnsizedProtocol, dns_message};
pub use tunnel::{Encapsulation, OpenedTunnel, TunnelKind, open_tunnel};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rejects packets that cannot concern a set of addresses. Clones share whether it is active.
#[derive(Debug, Clone)]
pub struct AddressPrefilter {
    addresses: AddressSet,
    is_active: Arc<AtomicBool>,
}

impl AddressPrefilter {
    pub fn new(addresses: AddressSet) -> Self {
        Self { addresses, is_active: Arc::new(AtomicBool::new(true)) }
    }

    /// As [`new`](Self::new), but inactive until [`activate`](Self::activate) is called on any clone. `flow-filter`
    /// needs every packet until its gateway has appeared: if that never happens, it reports which addresses it saw
    /// instead.
    pub fn inactive(addresses: AddressSet) -> Self {
        Self { addresses, is_active: Arc::default() }
    }

    pub fn activate(&self) {
        self.is_active.store(true, Ordering::Relaxed);
    }

    /// Whether an earlier stage may drop what this prefilter rejects.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Whether a packet cannot concern the addresses: it is neither from nor to them, and it cannot carry a packet that
    /// is. Packets for which that is not certain are not rejected.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the only work for most packets")]
    pub fn rejects(&self, link_type: u16, frame: &[u8]) -> bool {
        fast::addresses(link_type, frame).is_some_and(|addresses| !self.addresses.contains_any(addresses))
    }

    pub fn addresses(&self) -> &AddressSet {
        &self.addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packets_of_other_addresses_are_rejected() {
        let frame = |source: [u8; 4], destination: [u8; 4]| {
            let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0];
            [&[0; 12][..], &[8, 0], &ip, &source, &destination, &[0; 20]].concat()
        };
        let prefilter = AddressPrefilter::new(AddressSet::parse(["10.0.0.2"]).unwrap());
        assert!(prefilter.rejects(1, &frame([10, 0, 0, 1], [10, 0, 0, 3])));
        assert!(!prefilter.rejects(1, &frame([10, 0, 0, 2], [10, 0, 0, 3])));
        assert!(!prefilter.rejects(1, &frame([10, 0, 0, 1], [10, 0, 0, 2])));
        assert!(!prefilter.rejects(101, &frame([10, 0, 0, 1], [10, 0, 0, 3])), "another link type is not decided");
    }

    #[test]
    fn clones_are_activated_together() {
        let prefilter = AddressPrefilter::inactive(AddressSet::default());
        let clone = prefilter.clone();
        assert!(!clone.is_active());
        prefilter.activate();
        assert!(clone.is_active());
    }
}
