//! What a model's sizes are: plaintext or bytes on the wire, and how a command's size is converted.

use serde::Serialize;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "basis", rename_all = "lowercase")]
pub enum Basis {
    /// Plaintext sizes: valid for every cipher suite.
    Plaintext {
        /// The cipher suite it was learned on; assumed for sessions whose suite is unknown.
        cipher_suite: String,
        /// Smallest and largest number of bytes that this suite adds to a record.
        record_overhead: [u32; 2],
    },
    /// Sizes on the wire: valid only for the unknown cipher suite it was learned on.
    Wire,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSize {
    /// The sum of its records' lengths, in bytes.
    pub wire: u64,
    pub records: u32,
    /// Smallest and largest plaintext size in bytes, if the session's cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
}

/// The model cannot be applied to a session. (Its text is part of the frame contract: it becomes the detail of a
/// notice.)
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "the model was learned on sizes on the wire, under a cipher suite it does not know, while this session's suite is \
     known: learn again from captures that hold the handshake, or with `learn --cipher`"
)]
pub struct SizeError;

impl Basis {
    /// The possible sizes of a command in this basis, from smallest to largest, in bytes.
    ///
    /// # Errors
    /// [`SizeError`] if the basis is wire sizes and the session's cipher suite is known.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        match (self, plaintext) {
            (Basis::Wire, Some(_)) => Err(SizeError),
            (Basis::Wire, None) => Ok([signed(wire); 2]),
            (Basis::Plaintext { .. }, Some(range)) => Ok(range.map(signed)),
            (Basis::Plaintext { record_overhead: [least, most], .. }, None) => {
                let without = |overhead: &u32| signed(wire.saturating_sub(u64::from(*overhead) * u64::from(records)));
                Ok([without(most), without(least)])
            }
        }
    }

    /// The approximate bytes of replies in this basis: `wire` bytes in `replies` records of the session of `command`.
    /// The cipher suite is assumed to add the same to a record in both directions.
    pub fn reply_bytes(&self, wire: u64, replies: u32, command: WireSize) -> i64 {
        let [_, added] = self.added(command);
        signed(wire).saturating_sub(signed(added.saturating_mul(replies.into())))
    }

    /// The possible sizes of one reply in this basis: a record of `wire` bytes in the session of `command`, whose cipher
    /// suite is assumed to add the same to a record in both directions. A basis of ranges holds the greatest size of each
    /// range: an exact size stands for all ranges with it.
    pub fn reply_sizes(&self, wire: u32, command: WireSize) -> [i64; 2] {
        let blocks = match self {
            Basis::Plaintext { record_overhead: [least, most], .. } => most.saturating_sub(*least),
            Basis::Wire => 0,
        };
        let [least, most] = self.added(command).map(|added| signed(u64::from(wire).saturating_sub(added)));
        [least, if least == most { most.saturating_add(i64::from(blocks)) } else { most }]
    }

    /// The most and the fewest bytes that the cipher suite adds to a record in the session of `command`.
    fn added(&self, command: WireSize) -> [u64; 2] {
        match (self, command.plaintext) {
            (Basis::Wire, _) => [0, 0],
            (Basis::Plaintext { .. }, Some(plaintext)) if command.records > 0 => {
                plaintext.map(|size| command.wire.saturating_sub(size) / u64::from(command.records))
            }
            (Basis::Plaintext { record_overhead: [least, most], .. }, _) => [*most, *least].map(u64::from),
        }
    }
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
