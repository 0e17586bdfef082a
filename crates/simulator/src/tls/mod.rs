//! Real TLS in memory: a rustls client and server whose every random byte comes from the seed.

mod cbc;
mod certificate;
mod key_exchange;
mod seeded_random;
mod session;

pub(crate) use session::{ServerIdentity, TlsSession};

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that connected: the gateway.
    Client,
    /// The one that accepted: the service.
    Server,
}

impl Side {
    pub(crate) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
