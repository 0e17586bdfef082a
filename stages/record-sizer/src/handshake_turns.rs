//! Which messages of a TLS connection belong to its handshake, where nothing shows it but the order of the two sides.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;

/// Counts how often the sides of a connection have taken turns.
///
/// Up to TLS 1.2 a full handshake takes four turns: the client's hello, the server's flight, the client's key exchange
/// and `Finished`, the server's `Finished`. With TLS 1.3, and where a session is resumed, data may follow in the third
/// turn already; in the fourth there is often a session ticket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandshakeTurns {
    turns: u8,
    last: Option<Direction>,
}

impl HandshakeTurns {
    /// Takes the next message; returns whether it belongs to the handshake: one of the first three turns, or the first
    /// message of the fourth.
    pub(crate) fn message(&mut self, direction: Direction) -> bool {
        let is_new = self.last.replace(direction) != Some(direction);
        self.turns = self.turns.saturating_add(u8::from(is_new));
        self.turns <= 3 || (self.turns == 4 && is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_turns_and_the_message_after_them_are_the_handshake() {
        let (to, from) = (Direction::ToGateway, Direction::FromGateway);
        let mut turns = HandshakeTurns::default();
        let found: Vec<bool> =
            [from, to, to, from, from, from, to, to, from, to].map(|direction| turns.message(direction)).into();
        assert_eq!(found, [true, true, true, true, true, true, true, false, false, false]);
    }
}
