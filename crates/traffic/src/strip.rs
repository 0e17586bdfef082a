//! Removes the content of captures: every byte of payload becomes zero, unless the sizes of records are read from it.
//!
//! A [`Stripper`] sends packets through `flow-filter` and `record-sizer`, which says which bytes of the gateway's flows it
//! reads ([`sizeleak_record_sizer::ReadBytes`]: record headers, headers of handshake messages, hellos). It holds packets
//! back for a while, because a record boundary may be proven by what follows (`read_streams`), and then lets out only
//! their headers (`layout`), corrected checksums, and those bytes. What comes out goes through both stages
//! again, and the two results are compared : it is counted in how many flows they differ.
//!
//! [`CaptureWriter`] writes the packets as pcap or pcapng.
//!
//! ```
//! use sizeleak_frame::Packet;
//! use sizeleak_traffic::strip::{StripOptions, Stripper};
//!
//! // Ethernet, IPv4 and TCP from the service to the gateway; a record of 4 bytes.
//! let ethernet = [&[0; 12][..], &[8, 0]].concat();
//! let ip = [0x45, 0, 0, 49, 0, 0, 0, 0, 64, 6, 0, 0, 203, 0, 113, 1, 192, 168, 1, 20];
//! let tcp = [1, 187, 200, 0, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
//! let data = [&ethernet[..], &ip, &tcp, &[23, 3, 3, 0, 4, b'd', b'o', b'o', b'r']].concat();
//! let (time_ns, link_type, original_length, capture, number) = (0, 1, data.len() as u32, 0, 1);
//!
//! let mut stripper = Stripper::new(&StripOptions { gateway: vec!["192.168.1.20".into()], ..StripOptions::default() })?;
//! let mut written = Vec::new();
//! let mut write = |packet: Packet<'_>| -> std::io::Result<()> { Ok(written.push(packet.data.to_vec())) };
//! stripper.packet(Packet { time_ns, link_type, original_length, data: &data, capture, number }, &mut write)?;
//! let report = stripper.finish(&mut write)?;
//! assert_eq!(written[0][54..], [23, 3, 3, 0, 4, 0, 0, 0, 0]);
//! assert_eq!((report.kept_bytes, report.zeroed_bytes, report.differing_flows), (5, 4, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::indexing_slicing)]

mod capture_writer;
mod layout;
mod read_streams;
mod stripper;

pub use capture_writer::{CaptureFormat, CaptureWriter};
pub use stripper::{StripError, StripOptions, StripReport, Stripper};
