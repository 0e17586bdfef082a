//! Which addresses are meant, and the quick test for packets that cannot matter to them.
//!
//! `flow-filter` decides by it what to parse, and `capture` what to hand on at all: both must come to the same answer.
#![warn(clippy::indexing_slicing)]

mod address_prefilter;
mod address_set;
mod around;
mod plain;

pub use address_prefilter::{AddressPrefilter, GatewaySeen};
pub use address_set::AddressSet;
pub use plain::{VXLAN_PORT, may_be_tunnel, plain_addresses};
