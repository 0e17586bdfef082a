//! A stage: its trait, frames in and frames out; one of any type ready to run, with how it is configured, how it ends and
//! who observes it; its counters; and its state between two runs, as bytes.
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

use crate::runtime::{Closed, Emit, Input, Interrupt, Output};
use crate::sandbox::Access;
use crate::telemetry::Meter;

pub trait Runnable: Send {
    fn name(&self) -> &str;

    fn set_meter(&mut self, meter: Meter);

    /// Makes it continue from the state that an earlier run left. After an error it must not run.
    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        let _ = state;
        Err(StateError::Unsupported)
    }

    /// Makes it leave its state in `slot` at the end of its input, instead of finishing what is pending.
    fn leave_state(&mut self, slot: StateSlot) -> Result<(), StateError> {
        let _ = slot;
        Err(StateError::Unsupported)
    }

    /// Makes a source that cannot read everything leave the reason in `slot` and end well behind what it could read. A
    /// stage fails as before.
    fn accept_failure(&mut self, slot: FailureSlot) {
        let _ = slot;
    }

    /// Runs it to its end. A source reads no `input`.
    fn run<'a>(
        self: Box<Self>,
        input: Option<&mut dyn Input>,
        output: &'a mut dyn Output,
        interrupt: &Interrupt,
        observer: Observer<'a>,
    ) -> Outcome;

    /// Turns it into an output that processes frames on the thread of the stage before; `None` for a source.
    fn fuse<'a>(self: Box<Self>, output: &'a mut dyn Output) -> Option<Box<dyn FusedStage + 'a>>
    where
        Self: 'a,
    {
        let _ = output;
        None
    }
}

/// A stage that runs inside the stage before it. It processes batches at once, and single frames together, as many as a
/// channel would carry, or fewer if the stage before waits for input: clocks are then read once for all of them.
pub trait FusedStage: Output {
    fn end(self: Box<Self>) -> Outcome;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All input was processed and the summary written.
    Done,
    /// The user interrupted it; everything until then was written, with the summary.
    Interrupted,
    /// The receiver of its output is gone.
    Closed,
    /// Its input ended early, for this reason: the frames that arrived were processed, no summary was written.
    Cut(String),
    Failed(String),
}

impl Outcome {
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Cut(cause) | Self::Failed(cause) => Some(cause),
            Self::Done | Self::Interrupted | Self::Closed => None,
        }
    }

    /// The exit code of the contract; 130 is the convention after SIGINT.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done | Self::Closed => 0,
            Self::Failed(_) => 1,
            Self::Cut(_) => 3,
            Self::Interrupted => 130,
        }
    }
}

/// Sees the notices of a node, not those it passes on, and the summary it writes, its own row included.
pub type Observer<'a> = Option<&'a mut (dyn FnMut(&Frame) + Send)>;

/// The options of a stage, from the command line or from `pipeline.toml`, with one set of defaults.
pub trait StageOptions: clap::Args + Serialize + DeserializeOwned + Default {
    const NAME: &'static str;

    /// What it does, in one sentence for the help text.
    const ABOUT: &'static str;

    /// Example command lines for the help text.
    const EXAMPLES: &'static [&'static str];

    const PATHS: &'static [&'static str] = &[];

    /// What the stage opens while it runs: by default nothing, since its files are read when it is built.
    fn access(&self) -> Access {
        Access::default()
    }

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError>;
}

#[derive(Debug, Error)]
pub enum ConfigureError {
    /// An option is missing or invalid: a usage error, exit code 2.
    #[error("{0}")]
    Usage(String),
    /// A file that an option names cannot be used: exit code 1.
    #[error("{0}")]
    Input(String),
}

impl ConfigureError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Input(_) => 1,
        }
    }
}

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

    /// Continues from a state that a stage with the same options has saved. It may be of any bytes: it is an error, after
    /// which it must not run, if no stage with these options can be in that state.
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

/// Defines a struct with these counters, and `all`, which returns them by their names in `summary`, in that order. Those that
/// are `rare` come last, and only if they have counted anything. Saved states have the fields in the order given.
#[macro_export]
macro_rules! counters {
    (
        $name:ident
        first { $($(#[$first_meta:meta])* $first_visible:vis $first:ident: $first_type:ty,)* }
        rare { $($rare:ident)* }
        counted { $($counter:ident)* }
        last { $($(#[$last_meta:meta])* $last_visible:vis $last:ident: $last_type:ty,)* }
    ) => {
        #[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
        pub(crate) struct $name {
            $($(#[$first_meta])* $first_visible $first: $first_type,)*
            $(pub(crate) $rare: u64,)*
            $(pub(crate) $counter: u64,)*
            $($(#[$last_meta])* $last_visible $last: $last_type,)*
        }

        impl $name {
            pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
                let rare: &[(&str, u64)] = &[$((stringify!($rare), self.$rare)),*];
                let rare = rare.iter().filter(|(_, count)| *count > 0).copied();
                [$((stringify!($counter), self.$counter)),*].into_iter().chain(rare).collect()
            }
        }
    };
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
