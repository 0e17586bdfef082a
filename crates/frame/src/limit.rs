//! The limits of the contract: what a value may weigh and how a batch is cut.

/// The largest `MessagePack` value a stream may hold, in bytes. A reader refuses a larger one before storing it.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// How deep maps and lists may nest inside a value of a known kind.
pub const MAX_DEPTH: usize = 32;

/// The most rows a `packets` or `segments` batch holds.
pub const BATCH_ROWS: usize = 256;

/// A batch is sent once its rows carry this many bytes of data, however few they are.
pub const BATCH_BYTES: usize = 64 << 10;
