//! The commands of a home by the size that is seen: what padding is judged on.

use sizeleak_inference::channel::{EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandSpace, SizeRow, SpaceError};
use sizeleak_model::Model;
use sizeleak_model::policies::PaddingPolicy;

use crate::padding::padded_observation::{PaddedOutputs, seen_rows};
use crate::padding::padding_cost::PaddingCost;

/// What an observer of sizes sees of all commands.
#[derive(Debug)]
pub(crate) struct SeenSizes {
    /// Command by command.
    pub(crate) observation: Observation,
    /// By the size that is seen.
    pub(crate) rows: Vec<SizeRow>,
}

impl SeenSizes {
    /// The commands of `space`, which is of this model; `knowledge` is what the observer knows of ε.
    ///
    /// # Errors
    /// [`SpaceError`].
    pub(crate) fn new(space: &CommandSpace, model: &Model, knowledge: EpsilonKnowledge) -> Result<Self, SpaceError> {
        let observation = Observation::new(space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let rows = seen_rows(&observation);
        Ok(Self { observation, rows })
    }

    /// What a policy costs.
    pub(crate) fn cost(&self, policy: &PaddingPolicy) -> PaddingCost {
        PaddingCost::of(&self.rows, policy)
    }

    /// What is seen under a policy.
    pub(crate) fn padded(&self, policy: &PaddingPolicy) -> PaddedOutputs {
        PaddedOutputs::new(&self.observation, policy)
    }
}
