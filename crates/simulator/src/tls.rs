//! Real TLS in memory: a rustls client and server that draw every random byte from the seed.

mod cbc;
mod identity;
mod padded_records;
mod seeded_random;
mod session;

pub(crate) use identity::ServerIdentity;
pub(crate) use session::{MAX_PLAINTEXT, Side, TlsSession, record_lengths, record_plaintexts, wire_lengths};
