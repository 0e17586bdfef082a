//! Real TLS in memory: a rustls client and server that draw every random byte from the seed.

mod cbc;
mod identity;
mod key_exchange;
mod padded_records;
mod seeded_random;
mod session;
mod side;

pub(crate) use identity::ServerIdentity;
pub(crate) use session::{MAX_PLAINTEXT, TlsSession, record_lengths, record_plaintext, wire_lengths};
pub(crate) use side::Side;
