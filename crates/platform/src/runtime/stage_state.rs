//! The state of a stage between two runs, as bytes.
//!
//! A state has the format of `postcard`, which holds no names and needs little code for each type. The same state always
//! gives the same bytes: hash tables are written sorted. Bytes that are read are trusted: a file that holds them ends with
//! a digest of them.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// A state cannot be written or used.
#[derive(Debug, Error)]
pub enum StateError {
    /// The stage cannot continue from an earlier run.
    #[error("it cannot continue from an earlier run")]
    Unsupported,
    /// It could not be encoded.
    #[error("its state cannot be written: {0}")]
    Unwritable(#[source] postcard::Error),
    /// Its bytes are not those of a state of this stage.
    #[error("its state cannot be read: {0}")]
    Unreadable(#[source] postcard::Error),
}

/// Writes a state as bytes.
pub fn encode_state(state: &impl Serialize) -> Result<Vec<u8>, StateError> {
    postcard::to_allocvec(state).map_err(StateError::Unwritable)
}

/// Reads a state that [`encode_state`] wrote. Memory is bounded by the number of bytes.
///
/// # Errors
/// [`StateError`] if the bytes are of something else.
pub fn decode_state<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StateError> {
    postcard::from_bytes(bytes).map_err(StateError::Unreadable)
}

/// Writes hash tables sorted by their keys, for `#[serde(with = …)]`.
pub mod sorted_table {
    use std::collections::HashMap;
    use std::hash::{BuildHasher, Hash};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes a table as its sorted entries.
    pub fn serialize<K: Ord + Serialize, V: Serialize, S, Z: Serializer>(
        table: &HashMap<K, V, S>,
        serializer: Z,
    ) -> Result<Z::Ok, Z::Error> {
        let mut entries: Vec<(&K, &V)> = table.iter().collect();
        entries.sort_by(|one, other| one.0.cmp(other.0));
        serializer.collect_seq(entries)
    }

    /// Reads a table.
    pub fn deserialize<'de, K, V, S, D>(deserializer: D) -> Result<HashMap<K, V, S>, D::Error>
    where
        K: Eq + Hash + Deserialize<'de>,
        V: Deserialize<'de>,
        S: BuildHasher + Default,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Where a stage leaves something for the end of its run. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Slot<T>(Arc<Mutex<Option<T>>>);

/// Where a stage leaves its state at the end of its input.
pub type StateSlot = Slot<Vec<u8>>;

/// Where a source leaves why it could not read everything, instead of failing the run.
pub type FailureSlot = Slot<String>;

impl<T> Slot<T> {
    /// Leaves a thing.
    pub fn put(&self, left: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

    /// Takes what was left, if anything was.
    pub fn take(&self) -> Option<T> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct State {
        #[serde(with = "sorted_table")]
        table: HashMap<u64, u8>,
    }

    #[test]
    fn tables_are_written_sorted_and_read_back() {
        let state = State { table: (0..200).map(|key| (key * 77 % 211, 7)).collect() };
        let bytes = encode_state(&state).unwrap();
        assert_eq!(bytes, encode_state(&decode_state::<State>(&bytes).unwrap()).unwrap());
        assert_eq!(decode_state::<State>(&bytes).unwrap(), state);
    }
}
