//! What protects the records of a session, as far as it was seen; this outlasts the handshake.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction};

use crate::per_direction::PerDirection;
use crate::plaintext::{Protection, exactly};
use crate::record::Header;

/// The protection that the server chose, and which directions use it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionKeys {
    /// By the last `ServerHello`; `None` before it.
    pub(crate) protection: Option<Protection>,
    /// Whether that was one of TLS 1.3.
    pub(crate) is_1_3: bool,
    pub(crate) states: PerDirection<KeyState>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum KeyState {
    #[default]
    Unknown,
    /// Nothing yet.
    Clear,
    /// To be shown by the server's hello, which is still to come.
    Early,
    Protected,
    /// The same, after the `Finished` of TLS 1.2 and earlier versions.
    Finished,
}

impl SessionKeys {
    /// Those of a connection that has just started.
    pub(crate) fn clear() -> Self {
        Self { states: PerDirection::same(KeyState::Clear), ..Self::default() }
    }

    /// The least and the most bytes of plaintext in a record, where they are known.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a record")]
    pub(crate) fn plaintext(self, header: Header, direction: Direction) -> Option<[u64; 2]> {
        let is_data = header.content_type == ContentType::ApplicationData;
        match self.states.of(direction) {
            KeyState::Clear if !is_data => Some(exactly(header.length)),
            KeyState::Protected | KeyState::Finished if !is_data && self.is_1_3 => Some(exactly(header.length)),
            KeyState::Protected | KeyState::Finished => self.protection?.plaintext(header.length),
            KeyState::Unknown | KeyState::Early | KeyState::Clear => None,
        }
    }

    pub(crate) fn are_finished(self) -> bool {
        self.states.both().iter().all(|state| **state == KeyState::Finished)
    }
}
