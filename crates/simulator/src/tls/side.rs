//! The two ends of a connection.

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end that opened it: the gateway.
    Client,
    /// The end that accepted it: the service.
    Server,
}

impl Side {
    /// The other end.
    pub(crate) fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
