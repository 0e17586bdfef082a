//! A frame of an unknown kind, kept unchanged.

/// A frame of an unknown kind. It is passed on byte for byte, so that newer stages work with this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    pub kind: String,
    /// The whole `MessagePack` value, the kind's name included.
    pub value: Vec<u8>,
}
