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

mod address_prefilter;
mod address_set;
pub mod fast;
mod ip;
mod link;
mod protocol;
mod transport;
mod tunnel;
mod unsized_protocol;

pub use address_prefilter::AddressPrefilter;
pub use address_set::{AddressPair, AddressSet, InvalidAddress, is_private};
pub use ip::{CapturedBytes, Fragment, IpPacket, IpPayload};
pub use link::{NoIpHeader, ip_bytes};
pub use protocol::{GRE, UDP, may_be_tunnel};
pub use transport::{DnsKind, DnsMessage, NoSegment, TransportSegment, dns_message};
pub use tunnel::{Encapsulation, OpenedTunnel, TunnelKind, open_tunnel};
pub use unsized_protocol::UnsizedProtocol;
