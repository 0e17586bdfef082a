//! Why a padding policy cannot be used, and the limits that it must keep.

use thiserror::Error;

/// Why a padding policy cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PolicyError {
    /// The text is not a policy.
    #[error("the padding policy cannot be read: {0}")]
    Syntax(String),
    /// It is of another version.
    #[error("the padding policy has version {found}, while this program reads version {known}: make it again")]
    Version {
        /// That of the text.
        found: u32,
        /// That which is read.
        known: u32,
    },
    /// No policy has this name.
    #[error(
        "there is no padding policy `{0}`: give none, multiple:BYTES, powers-of-two, padme, tls13:BYTES, \
         random:BYTES, keyed-random:BYTES or constant:BYTES"
    )]
    Name(String),
    /// A unit of padding is out of range.
    #[error("a padding policy's `bytes` must be from 1 to {MAX_PADDING_UNIT}, not {0}")]
    Unit(u64),
    /// Random padding is too long.
    #[error("random padding may add up to {MAX_RANDOM_BYTES} bytes, not {0}")]
    Most(u64),
    /// There is nothing in a table, or too much.
    #[error("a padding table must have from 1 to {MAX_BUCKETS} sizes, not {0}")]
    Buckets(usize),
    /// The sizes of a table do not ascend.
    #[error("the sizes of a padding table must ascend from 1 to {MAX_PADDING_UNIT}, and {0} does not")]
    Order(u64),
    /// The chances of a row do not sum to 1.
    #[error("the probabilities of the padding table's row of {0} bytes must be above 0 and sum to 1")]
    Probabilities(u64),
    /// Padding would have to cut a command.
    #[error("the padding table pads {size} bytes to {padded}: padding can only add bytes")]
    Cut {
        /// The size of the row.
        size: u64,
        /// The smaller size that it gives.
        padded: u64,
    },
}

/// The most bytes of a unit of padding, or of a size in a table.
pub const MAX_PADDING_UNIT: u64 = 1 << 30;

/// The most random bytes: every padded size of every command is summed over.
pub const MAX_RANDOM_BYTES: u64 = 4096;

/// The most sizes of a table.
pub const MAX_BUCKETS: usize = 65_536;

/// The most plaintext bytes of a TLS record (RFC 8446, section 5.1).
pub const TLS_RECORD_BYTES: u64 = 1 << 14;
