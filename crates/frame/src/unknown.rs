//! A frame of a kind this version does not know, kept as it came.

/// A frame of an unknown kind: passed on byte for byte, so that stages written later can be used with these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// The kind's name.
    pub kind: String,
    /// The whole `MessagePack` value, the kind's name included.
    pub value: Vec<u8>,
}
