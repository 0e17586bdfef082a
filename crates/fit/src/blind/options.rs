//! What the caller knows beforehand.

/// What the caller knows of the commands beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The most kinds of actions that are looked for.
    pub most_actions: usize,
    /// Sizes are sizes on the wire, of which an unknown part is due to encryption.
    pub is_wire: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { most_actions: 24, is_wire: false }
    }
}
