//! TLS records and their plaintext sizes, out of TCP segments.
//!
//! Bytes are put in order ([`reassembly`]), cut into records by their headers ([`record`], [`framer`]), whose
//! boundaries are found again where they are lost ([`resync`]). Hellos ([`handshake`]) tell the [`session`], and that
//! the range of [`plaintext`] and which records only agree on keys ([`tls13`]). Bodies are skipped unread.
//!
//! DTLS comes whole in datagrams ([`datagram`]).
//!
//! Nothing here does I/O or reads clocks, all state is bounded by [`Options`], and any bytes are taken.
#![warn(clippy::indexing_slicing)]

mod agreement;
mod association;
mod connection;
mod counts;
mod datagram;
mod finding;
mod framer;
mod handshake;
mod hello;
mod notices;
mod options;
mod overhead;
mod parts;
mod piece;
mod plaintext;
mod reassembly;
mod record;
mod report;
mod resync;
mod session;
mod sizer;
mod steady;
mod table;
mod tls13;
mod tracked;
mod waiting;

pub use options::Options;
pub use overhead::record_overhead;
pub use sizer::RecordSizer;
