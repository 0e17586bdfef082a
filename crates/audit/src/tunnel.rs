//! What is seen of commands through a tunnel, such as WireGuard or IPsec ESP: their packets, padded and added up with
//! those that other flows send at the same time.
//!
//! The observer counts packets and adds up their bytes. He does not use which packet is which: whoever can tell those of
//! the command from the others sees what there is without background, so that these figures bound those of all observers
//! of sizes.

#![warn(clippy::indexing_slicing)]

mod background;
mod packets;
mod tunnel_audit;

pub use background::{Background, BackgroundError, Conversation, MAX_FLOWS, ObservedFlows, WINDOW_NS};
pub use packets::{Burst, TCP_HEADER, Tunnel, TunnelError, TunnelKind, UDP_HEADER};
pub use tunnel_audit::{TunnelAudit, flows_in_words};
