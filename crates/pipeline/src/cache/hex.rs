//! Digests as text.

use blake3::Hash;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    hash.to_hex().as_str().serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
    Hash::from_hex(String::deserialize(deserializer)?).map_err(D::Error::custom)
}
