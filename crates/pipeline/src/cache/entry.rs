//! The description stored next to a cached stream, with the digest that detects damage.

use std::path::PathBuf;

use blake3::Hash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Describes a cached stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// The digest of everything it depends on.
    #[serde(with = "super::hex")]
    pub key: Hash,
    /// The stage that made it.
    pub stage: String,
    /// The kind of frame that stage makes.
    pub kind: String,
    /// The version of the program, for display only; look-ups use the key alone.
    pub version: String,
    /// When it was made.
    pub made: Timestamp,
    /// Its size on disk in bytes.
    pub bytes: u64,
    /// The digest of those bytes; in the store, of the key and that digest, so that it fits no other entry.
    #[serde(with = "super::hex")]
    pub digest: Hash,
    /// The captures it was made from.
    pub captures: Vec<CachedCapture>,
}

/// A capture as it was when an entry was made from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedCapture {
    /// Its path at that time.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}
