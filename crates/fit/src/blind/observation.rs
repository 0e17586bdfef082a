//! What is known of a command.

/// One command as it was observed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Its size in bytes: of the plaintext, or on the wire if the cipher suite is not known.
    pub size: i64,
    /// The sizes of its single replies in bytes, in any order; `None` if they were not all listed.
    pub replies: Option<Vec<i64>>,
    /// Its label, if it has one: how often each named action occurs. As long as the list of names.
    pub counts: Option<Vec<u32>>,
}
