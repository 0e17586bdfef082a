//! A model: everything learned about a gateway. Its file format is in `model_file`.

use serde::{Deserialize, Serialize};

use crate::{
    Action, Basis, FitMethod, Inventory, InventoryError, Limits, Neighbours, NoiseStatistics, Prior, ReplyBytesModel,
    ReplyCountModel, Scope, SizeError, Smoothing,
};

/// Everything learned about a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The gateway and the services it was learned on; empty for any.
    pub scope: Scope,
    /// |ac| in bytes.
    pub overhead: i64,
    /// The actions with their sizes.
    pub actions: Vec<Action>,
    /// The devices; `None` if any number of any action is possible.
    pub inventory: Option<Inventory>,
    /// The ⟨size, ε⟩ tuples.
    pub neighbours: Neighbours,
    /// How ε is estimated from them.
    pub smoothing: Smoothing,
    /// The probabilities of actions before the size is known; `None` if every multiset of actions is equally likely.
    pub prior: Option<Prior>,
    /// How the number of replies depends on the actions.
    pub replies: ReplyCountModel,
    /// How the bytes of replies depend on the actions, if they are more informative than the number.
    pub reply_bytes: Option<ReplyBytesModel>,
    /// Statistics of the records that are not commands; `None` if none were learned.
    pub noise: Option<NoiseStatistics>,
    /// How and from what it was learned.
    pub learned: Provenance,
}

/// How and from what a model was learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// How sizes were learned.
    pub method: FitMethod,
    /// The number of labelled commands.
    pub commands: u64,
    /// The version of sizeleak that learned the model.
    pub version: String,
    /// What its sizes are.
    pub basis: Basis,
    /// The captures.
    pub captures: Vec<CaptureDigest>,
}

/// A capture from which a model was learned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureDigest {
    /// The file's name, without its folder.
    pub name: String,
    /// The file's SHA-256: 64 lower-case hexadecimal digits.
    pub sha256: String,
}

impl Model {
    /// The commands that the inventory allows.
    ///
    /// # Errors
    /// [`InventoryError`] if an action has no device.
    pub fn limits(&self) -> Result<Limits, InventoryError> {
        match &self.inventory {
            Some(inventory) => inventory.limits(&self.actions),
            None => Ok(Limits::free(self.actions.len())),
        }
    }

    /// The possible sizes of a command in this model's basis, as [`Basis::sizes`]. Where the model knows its services,
    /// a session with them is taken to use the cipher suite that the model was learned on, as long as one end decides it.
    ///
    /// # Errors
    /// [`SizeError`] if the model knows only wire sizes of an unknown service and the session's cipher suite is known.
    pub fn sizes(&self, wire: u64, records: u32, plaintext: Option<[u64; 2]>) -> Result<[i64; 2], SizeError> {
        let is_of_service = self.learned.basis == Basis::Wire && !self.scope.services.is_empty();
        self.learned.basis.sizes(wire, records, plaintext.filter(|_| !is_of_service))
    }
}
