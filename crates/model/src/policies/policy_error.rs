//! Why a padding policy cannot be used, and the limits that it must keep.

use thiserror::Error;

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PolicyError {
    #[error("the padding policy cannot be read: {0}")]
    Syntax(String),
    #[error("the padding policy has version {found}, while this program reads version {known}: make it again")]
    Version { found: u32, known: u32 },
    #[error(
        "there is no padding policy `{0}`: give none, multiple:BYTES, powers-of-two, padme, tls13:BYTES, \
         random:BYTES, keyed-random:BYTES or constant:BYTES"
    )]
    Name(String),
    #[error("a padding policy's `bytes` must be from 1 to {MAX_PADDING_UNIT}, not {0}")]
    Unit(u64),
    #[error("random padding may add up to {MAX_RANDOM_BYTES} bytes, not {0}")]
    Most(u64),
    #[error("a padding table must have from 1 to {MAX_BUCKETS} sizes, not {0}")]
    Buckets(usize),
    #[error("the sizes of a padding table must ascend from 1 to {MAX_PADDING_UNIT}, and {0} does not")]
    Order(u64),
    #[error("the probabilities of the padding table's row of {0} bytes must be above 0 and sum to 1")]
    Probabilities(u64),
    #[error("the padding table pads {size} bytes to {padded}: padding can only add bytes")]
    Cut { size: u64, padded: u64 },
}

/// The most bytes of a unit of padding, or of a size in a table.
pub const MAX_PADDING_UNIT: u64 = 1 << 30;

/// The most random bytes: every padded size of every command is summed over.
pub const MAX_RANDOM_BYTES: u64 = 4096;

pub const MAX_BUCKETS: usize = 65_536;

/// The most plaintext bytes of a TLS record (RFC 8446, section 5.1).
pub const TLS_RECORD_BYTES: u64 = 1 << 14;
