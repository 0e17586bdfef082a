//! What is kept of a connection: little while it is steady, all there is while it is not.

use crate::connection::Connection;
use crate::steady::Steady;

/// The state of a connection, in whichever form it takes now.
#[derive(Debug)]
pub(crate) enum Tracked {
    Steady(Steady),
    Busy(Box<Connection>),
}

impl Default for Tracked {
    fn default() -> Self {
        Self::Busy(Box::default())
    }
}

impl Tracked {
    /// The connection, to be worked on.
    pub(crate) fn connection(&mut self) -> &mut Connection {
        if let Self::Steady(steady) = self {
            *self = Self::Busy(Box::new(Connection::from(*steady)));
        }
        match self {
            Self::Busy(connection) => connection,
            Self::Steady(_) => unreachable!("it was made busy"),
        }
    }

    /// Lets go of what is not needed in the steady state, if it is in that.
    pub(crate) fn rest(&mut self) {
        if let Self::Busy(connection) = self
            && let Some(steady) = connection.steady()
        {
            *self = Self::Steady(steady);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the documented memory of a connection is reckoned with.
    #[test]
    fn a_connection_at_rest_is_small() {
        assert!(size_of::<Tracked>() <= 88, "{} bytes", size_of::<Tracked>());
    }
}
