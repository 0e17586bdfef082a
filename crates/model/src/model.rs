//! A model: everything learned of a gateway. How it is written down is `model_file`'s.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    Action, FitMethod, Inventory, InventoryError, Limits, ModelFault, Neighbours, NoiseStatistics, Prior,
    ReplyBytesModel, ReplyCountModel, Smoothing,
};

/// The largest model file that is read, in bytes.
const LARGEST_FILE: u64 = 64 << 20;

/// What was learned of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// |ac| in bytes.
    pub overhead: i64,
    /// The actions with their sizes.
    pub actions: Vec<Action>,
    /// The devices; `None` where any number of any action may be commanded.
    pub inventory: Option<Inventory>,
    /// The ⟨size, ε⟩ tuples.
    pub neighbours: Neighbours,
    /// How ε is found from them.
    pub smoothing: Smoothing,
    /// How probable actions are before anything is seen; `None` where every multiset of them is as likely as any other.
    pub prior: Option<Prior>,
    /// How the number of replies depends on actions.
    pub replies: ReplyCountModel,
    /// How their bytes do, where these say more than the number.
    pub reply_bytes: Option<ReplyBytesModel>,
    /// What the records are that are no commands; `None` where nothing was learned of them.
    pub noise: Option<NoiseStatistics>,
    /// What it was learned on.
    pub learned: Provenance,
}

/// What a model was learned on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// How sizes were learned.
    pub method: FitMethod,
    /// How many labelled commands.
    pub commands: u64,
    /// The version of sizeleak that learned it.
    pub version: String,
    /// What its sizes are.
    pub basis: Basis,
    /// The captures.
    pub captures: Vec<CaptureDigest>,
}

/// A capture a model was learned on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureDigest {
    /// The file's name, without its folder.
    pub name: String,
    /// The file's SHA-256: 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// What a model's sizes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// Sizes of plaintext: valid for every cipher suite.
    Plaintext {
        /// The cipher suite it was learned on, assumed where a session's is not seen.
        cipher_suite: String,
        /// The least and the most bytes this suite adds to a record.
        record_overhead: [u32; 2],
    },
    /// Sizes on the wire: valid for the unknown cipher suite it was learned on.
    Wire,
}

/// The size of a command as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireSize {
    /// The sum of its records' lengths, in bytes.
    pub wire: u64,
    /// How many records it has.
    pub records: u32,
    /// The least and the most plaintext in them, where the session's cipher suite is known.
    pub plaintext: Option<[u64; 2]>,
}

/// Why a model file cannot be used.
#[derive(Debug, Error)]
pub enum ModelError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is no model.
    #[error("{}: {fault}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        fault: ModelFault,
    },
}

/// Why a command's size is none this model can work with.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error(
    "the model was learned on sizes on the wire, under a cipher suite it does not know, while this session's suite is \
     known: learn again from captures that hold the handshake, or with `learn --cipher`"
)]
pub struct SizeError;

impl Model {
    /// Reads a model file, of 64 MiB at most.
    ///
    /// # Errors
    /// [`ModelError`], with the file's name.
    pub fn read(file: &Path) -> Result<Self, ModelError> {
        let fail = |source| ModelError::Read { file: file.to_owned(), source };
        let mut text = String::new();
        let opened = File::open(file).map_err(fail)?;
        opened.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(fail)?;
        let model = if text.len() as u64 > LARGEST_FILE {
            Err(ModelFault::Bounds(format!("a model file has {LARGEST_FILE} bytes at most")))
        } else {
            Self::from_toml(&text)
        };
        if let Ok(model) = &model {
            tracing::info!(file = %file.display(), actions = model.actions.len(), "the model is read");
        }
        model.map_err(|fault| ModelError::Invalid { file: file.to_owned(), fault })
    }

    /// What the inventory allows of commands.
    ///
    /// # Errors
    /// [`InventoryError`] where an action has no device.
    pub fn limits(&self) -> Result<Limits, InventoryError> {
        match &self.inventory {
            Some(inventory) => inventory.limits(&self.actions),
            None => Ok(Limits::free(self.actions.len())),
        }
    }

    /// The sizes, in this model's basis, that a command may have, in bytes: from the least to the most. `wire` is the sum
    /// of the lengths of its `records`, `plaintext` the least and the most plaintext in them where the session's cipher
    /// suite is known.
    ///
    /// # Errors
    /// [`SizeError`] where the model knows wire sizes alone and the session's cipher suite is known.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        self.learned.basis.sizes(wire, records, plaintext)
    }
}

impl Basis {
    /// The bytes of replies in this basis, as near as can be told: `wire` bytes in `replies` records of the session in which
    /// a command of `size` bytes in so many records came. What the cipher suite adds to a record is taken to be the same in
    /// both directions.
    pub fn reply_bytes(&self, wire: u64, replies: u32, command: WireSize) -> i64 {
        let signed = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        let added = match (self, command.plaintext) {
            (Basis::Wire, _) => 0,
            (Basis::Plaintext { .. }, Some([_, most])) if command.records > 0 => {
                command.wire.saturating_sub(most) / u64::from(command.records)
            }
            (Basis::Plaintext { record_overhead: [least, _], .. }, _) => u64::from(*least),
        };
        signed(wire).saturating_sub(signed(added.saturating_mul(replies.into())))
    }

    /// The sizes in this basis that a command may have, as [`Model::sizes`].
    ///
    /// # Errors
    /// [`SizeError`] where the basis does not fit the session.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        let signed = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
        match (self, plaintext) {
            (Basis::Wire, Some(_)) => Err(SizeError),
            (Basis::Wire, None) => Ok([signed(wire); 2]),
            (Basis::Plaintext { .. }, Some([least, most])) => Ok([signed(least), signed(most)]),
            (Basis::Plaintext { record_overhead: [least, most], .. }, None) => {
                let without = |overhead: &u32| signed(wire.saturating_sub(u64::from(*overhead) * u64::from(records)));
                Ok([without(most), without(least)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::model;

    #[test]
    fn sizes_are_taken_in_the_models_basis() {
        let mut model = model();
        assert_eq!(model.sizes(300, 2, None), Ok([264, 266]));
        assert_eq!(model.sizes(10, 2, None), Ok([0, 0]));
        assert_eq!(model.sizes(300, 2, Some([250, 270])), Ok([250, 270]));
        assert_eq!(model.sizes(u64::MAX, 1, Some([0, u64::MAX])), Ok([0, i64::MAX]));
        model.learned.basis = Basis::Wire;
        assert_eq!(model.sizes(300, 2, None), Ok([300, 300]));
        assert_eq!(model.sizes(300, 2, Some([250, 270])), Err(SizeError));
        assert!(SizeError.to_string().contains("learn --cipher"));
    }

    #[test]
    fn an_error_names_the_file() {
        let missing = Model::read(Path::new("no-such-folder/model.toml")).unwrap_err().to_string();
        assert!(missing.starts_with("no-such-folder/model.toml: "), "{missing}");
        let wrong = Model::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap_err().to_string();
        assert!(wrong.contains("Cargo.toml: ") && wrong.contains("no model"), "{wrong}");
    }
}
