//! Packets in, the TCP segments and UDP datagrams of a gateway's flows out.
//!
//! A packet goes through the parsers of `sizeleak-packet`, layer by layer. Packets that cannot be the gateway's are
//! rejected first, by their addresses alone. Fragments are reassembled, and one tunnel is opened; what is inside is kept
//! apart from what comes by another way, unless the user has named the tunnel.
//!
//! ```
//! use sizeleak_flow_filter::{FlowFilter, Options};
//! use sizeleak_frame::{Frame, Packet, Packets};
//! use sizeleak_platform::runtime::Stage;
//!
//! const RAW_IP: u16 = 101;
//! let ip = [0x45, 0, 0, 42, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 203, 0, 113, 9];
//! let tcp = [0xc3, 0x50, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0, 0, 0, 0, 0, 0];
//! let data = [&ip[..], &tcp, b"hi"].concat();
//! let mut packets = Packets::new();
//! packets.push(Packet { time_ns: 0, link_type: RAW_IP, original_length: 42, data: &data, capture: 0, number: 1 });
//!
//! let mut filter = FlowFilter::new(&Options { gateway: vec!["10.0.0.1".into()], ..Options::default() })?;
//! let mut frames: Vec<Frame> = Vec::new();
//! filter.process(packets, &mut frames)?;
//! filter.finish(&mut frames)?;
//! let [Frame::Flow(flow), Frame::Segments(segments)] = &frames[..] else { panic!("{frames:?}") };
//! assert_eq!((flow.service.to_string(), segments.len()), ("203.0.113.9:443".to_owned(), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::indexing_slicing)]

mod fast;
mod filter;
mod flow_table;
mod ip_reassembly;
mod options;
mod output;
mod services;

pub use filter::FlowFilter;
pub use options::Options;
