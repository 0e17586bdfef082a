//! TCP segments of a gateway's flows, out of packets.
//!
//! [`Link`](link) layers are peeled off by hand, since every capture has others; IP and TCP are etherparse's. What is
//! not the gateway's is dropped before any of that, by its addresses alone.
#![warn(clippy::indexing_slicing)]

mod absent;
mod address;
mod filter;
mod flow;
mod link;
mod name;
mod options;
mod segment;

pub use address::{Networks, ServiceRule};
pub use filter::FlowFilter;
pub use options::Options;
