//! Limits of padding policies.

/// The most bytes of a unit of padding, or of a size in a table.
pub const MAX_PADDING_UNIT: u64 = 1 << 30;

/// The most random bytes: every padded size of every command is summed over.
pub const MAX_RANDOM_BYTES: u64 = 4096;

/// The most sizes of a table.
pub const MAX_BUCKETS: usize = 65_536;

/// The most plaintext bytes of a TLS record (RFC 8446, section 5.1).
pub const TLS_RECORD_BYTES: u64 = 1 << 14;
