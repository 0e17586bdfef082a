//! What the two ends of a session have agreed on, as far as it was seen: it outlasts the handshake.

use sizeleak_frame::{ContentType, Direction};

use crate::handshake::ServerHello;
use crate::plaintext::{Protection, exactly, is_1_3};
use crate::record::Header;

/// The server's choice, and what protects each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Agreement {
    pub(crate) server: Option<ServerHello>,
    /// By direction, in the order of their numbers.
    pub(crate) keys: [Keys; 2],
}

/// What protects one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Keys {
    #[default]
    Unknown,
    /// Nothing yet.
    Clear,
    /// Something the handshake has not shown yet: keys changed before the server's hello was seen.
    Early,
    Known {
        protection: Protection,
        finished: bool,
    },
}

impl Agreement {
    /// Between ends that have agreed on nothing yet.
    pub(crate) fn none() -> Self {
        Self { server: None, keys: [Keys::Clear; 2] }
    }

    /// Whether it is one of TLS 1.3.
    #[inline]
    pub(crate) fn is_1_3(&self) -> bool {
        self.server.is_some_and(|server| is_1_3(server.version))
    }

    /// What the server's choice does to records.
    pub(crate) fn protection(&self) -> Option<Protection> {
        self.server.map(Protection::of)
    }

    /// The least and the most bytes of plaintext in a record, where that is known.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a record")]
    pub(crate) fn plaintext(&self, header: Header, direction: Direction) -> Option<[u64; 2]> {
        let is_data = header.content_type == ContentType::ApplicationData;
        match self.keys(direction) {
            Keys::Clear if !is_data => Some(exactly(header.length)),
            Keys::Known { .. } if !is_data && self.is_1_3() => Some(exactly(header.length)),
            Keys::Known { protection, .. } => protection.plaintext(header.length),
            Keys::Unknown | Keys::Early | Keys::Clear => None,
        }
    }

    /// What protects a direction.
    #[inline]
    pub(crate) fn keys(&self, direction: Direction) -> Keys {
        let [to_gateway, from_gateway] = self.keys;
        if direction == Direction::ToGateway { to_gateway } else { from_gateway }
    }

    /// What protects a direction, to be changed.
    pub(crate) fn keys_mut(&mut self, direction: Direction) -> &mut Keys {
        let [to_gateway, from_gateway] = &mut self.keys;
        if direction == Direction::ToGateway { to_gateway } else { from_gateway }
    }

    /// Whether both ends have said the last word of their handshake, up to TLS 1.2.
    pub(crate) fn is_finished(&self) -> bool {
        self.keys.iter().all(|keys| matches!(keys, Keys::Known { finished: true, .. }))
    }
}
