//! The trait of a stage: frames in, frames out. And its state between two runs, as bytes.
//!
//! A state has the format of `postcard`, which holds no names and needs little code for each type. The same state always
//! gives the same bytes: hash tables are written sorted. Bytes that are read are trusted: a file that holds them ends with
//! a digest of them.

use std::error::Error;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sizeleak_frame::Frame;
use thiserror::Error;

use crate::runtime::{Closed, Emit};

/// A step of the pipeline. It holds its own state and takes all time from frames.
pub trait Stage: Send {
    const NAME: &'static str;

    /// The frames it consumes. Conversion returns any other frame, which is passed on.
    type Input: TryFrom<Frame, Error = Frame>;

    fn process(&mut self, input: Self::Input, out: &mut dyn Emit) -> Result<(), StageError>;

    /// Emits everything that is still pending at the end of the input, even if the input was cut.
    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError>;

    /// Further counters, in addition to frames and bytes, for its row of `summary`.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Its state between two frames, from which a stage with the same options continues; `None` if it cannot be saved.
    fn save(&self) -> Result<Option<Vec<u8>>, StateError> {
        Ok(None)
    }

    /// Continues from a state that a stage with the same options has saved. It may be of any bytes.
    ///
    /// # Errors
    /// [`StateError`] if no stage with these options can be in that state; it must not run then.
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let _ = state;
        Err(StateError::Unsupported)
    }
}

#[derive(Debug, Error)]
pub enum StageError {
    #[error(transparent)]
    Closed(#[from] Closed),
    /// Its input is invalid, or it failed itself.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl StageError {
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

#[derive(Debug, Error)]
pub enum StateError {
    #[error("it cannot continue from an earlier run")]
    Unsupported,
    #[error("its state cannot be written: {0}")]
    Unwritable(#[source] postcard::Error),
    #[error("its state cannot be read: {0}")]
    Unreadable(#[source] postcard::Error),
}

pub fn encode_state(state: &impl Serialize) -> Result<Vec<u8>, StateError> {
    postcard::to_allocvec(state).map_err(StateError::Unwritable)
}

/// Reads a state that [`encode_state`] wrote. Memory is bounded by the number of bytes.
pub fn decode_state<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StateError> {
    postcard::from_bytes(bytes).map_err(StateError::Unreadable)
}

/// Writes hash tables sorted by their keys, for `#[serde(with = …)]`.
pub mod sorted_table {
    use std::collections::HashMap;
    use std::hash::{BuildHasher, Hash};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K: Ord + Serialize, V: Serialize, S, Z: Serializer>(
        table: &HashMap<K, V, S>,
        serializer: Z,
    ) -> Result<Z::Ok, Z::Error> {
        let mut entries: Vec<(&K, &V)> = table.iter().collect();
        entries.sort_by(|one, other| one.0.cmp(other.0));
        serializer.collect_seq(entries)
    }

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
    pub fn put(&self, left: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(left);
    }

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
