//! The limits of the contract: sizes of values and batches.

/// The largest `MessagePack` value a stream may hold, in bytes. A reader rejects a larger one before storing it.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// How deep maps and lists may nest inside a value of a known kind.
pub const MAX_DEPTH: usize = 32;

/// The most rows a `packets` or `segments` batch holds.
pub const BATCH_ROWS: usize = 256;

/// A batch is sent once its rows hold this many bytes of data, however few they are.
pub const BATCH_BYTES: usize = 64 << 10;

/// How large batches of packets and segments become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BatchLimit {
    /// As large as the contract allows.
    #[default]
    Contract,
    /// Four times as many bytes, for fewer batches. Only stages of one process may see them.
    InProcess,
}

impl BatchLimit {
    /// A batch is due once its rows hold this many bytes of data.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Contract => BATCH_BYTES,
            Self::InProcess => 4 * BATCH_BYTES,
        }
    }
}
