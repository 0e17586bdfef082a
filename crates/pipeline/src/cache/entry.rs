//! What stands beside a cached stream: what it is, and how to tell that it is undamaged.

use std::path::PathBuf;

use blake3::Hash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a cached stream is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// What it was made of.
    #[serde(with = "super::hex")]
    pub key: Hash,
    /// The stage that put it out.
    pub stage: String,
    /// The kind of frame that makes.
    pub kind: String,
    /// The version of the program; for people, the key decides.
    pub version: String,
    /// When it was made.
    pub made: Timestamp,
    /// Its size on disk in bytes.
    pub bytes: u64,
    /// The digest of those bytes.
    #[serde(with = "super::hex")]
    pub digest: Hash,
    /// The captures it was made of.
    pub captures: Vec<CachedCapture>,
}

/// A capture as it was when an entry was made of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedCapture {
    /// Where it was; it may be elsewhere now.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
}
