//! TCP segments as a capture holds them: classic pcap, Ethernet, IPv4 or IPv6.

use std::net::{IpAddr, SocketAddr};

/// The header of a capture of Ethernet with times in microseconds.
pub(crate) const FILE_HEADER: [u8; 24] =
    [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

/// A segment to be captured.
pub(crate) struct Wire<'a> {
    /// Microseconds since the epoch.
    pub(crate) time_us: u64,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) flags: u8,
    pub(crate) payload: &'a [u8],
}

impl Wire<'_> {
    /// Appends it to a capture.
    pub(crate) fn write(&self, capture: &mut Vec<u8>) {
        let start = capture.len();
        capture.extend_from_slice(&((self.time_us / 1_000_000) as u32).to_le_bytes());
        capture.extend_from_slice(&((self.time_us % 1_000_000) as u32).to_le_bytes());
        capture.extend_from_slice(&[0; 8]);
        let packet = capture.len();
        capture.extend_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        let length = 20 + self.payload.len() as u16;
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                capture.extend_from_slice(&[8, 0, 0x45, 0]);
                capture.extend_from_slice(&(length + 20).to_be_bytes());
                capture.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
                capture.extend_from_slice(&source.octets());
                capture.extend_from_slice(&destination.octets());
            }
            (source, destination) => {
                let octets = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                capture.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
                capture.extend_from_slice(&length.to_be_bytes());
                capture.extend_from_slice(&[6, 64]);
                capture.extend_from_slice(&octets(source));
                capture.extend_from_slice(&octets(destination));
            }
        }
        capture.extend_from_slice(&self.source.port().to_be_bytes());
        capture.extend_from_slice(&self.destination.port().to_be_bytes());
        capture.extend_from_slice(&self.sequence.to_be_bytes());
        capture.extend_from_slice(&self.acknowledgement.to_be_bytes());
        capture.extend_from_slice(&[0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        capture.extend_from_slice(self.payload);
        let length = ((capture.len() - packet) as u32).to_le_bytes();
        capture[start + 8..start + 12].copy_from_slice(&length);
        capture[start + 12..start + 16].copy_from_slice(&length);
    }
}
