//! TCP segments and UDP datagrams of a gateway's flows, out of packets.
//!
//! [`Link`](link) layers are peeled off by hand, since every capture has others; IP is etherparse's. Packets in
//! [fragments](reassembly) are put together, and one [tunnel](tunnel) is opened. What is not the gateway's is dropped
//! before any of that, by its addresses alone. Nothing is rejected by a checksum: offloading leaves them wrong.
#![warn(clippy::indexing_slicing)]

mod absent;
mod address;
mod filter;
mod flow;
mod flow_cache;
mod inspect;
mod link;
mod name;
mod network;
mod options;
mod reassembly;
mod tally;
mod transport;
mod tunnel;

pub use address::ServiceRule;
pub use filter::FlowFilter;
pub use inspect::{Inspected, inspect};
pub use options::Options;
