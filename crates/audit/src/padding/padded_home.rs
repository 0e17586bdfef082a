//! The commands of a home as an observer sees them without padding, and with a policy.

use crate::leakage::Learned;
use sizeleak_inference::channel::{Channel, EpsilonKnowledge};
use sizeleak_inference::space::{CommandGroup, CommandSpace, SizeRow, SpaceError};
use sizeleak_model::Model;
use sizeleak_model::policies::PaddingPolicy;

use crate::padding::coarse_groups::coarse_groups;
use crate::padding::padded_observation::seen_groups;
use crate::padding::seen_sizes::SeenSizes;

/// Probabilities are rounded to so many parts before they are compared.
const ROUNDED_TO: f64 = 1e12;

/// The commands of a home, for which padding is judged.
#[derive(Debug)]
pub struct PaddedHome {
    sizes: SeenSizes,
    /// By the size that is seen and probability.
    pub groups: Vec<CommandGroup>,
    /// What is learned without padding.
    pub unpadded: Learned,
    /// The expected bytes of a command.
    pub command_bytes: f64,
    /// Commands a day.
    pub commands_per_day: f64,
}

impl PaddedHome {
    /// The commands of a model, whose sizes are those before padding; `knowledge` is what the observer knows of ε.
    ///
    /// # Errors
    /// [`SpaceError`]: there is no prior, or there are too many commands.
    pub fn new(
        space: &CommandSpace,
        model: &Model,
        knowledge: EpsilonKnowledge,
        commands_per_day: f64,
    ) -> Result<Self, SpaceError> {
        let sizes = SeenSizes::new(space, model, knowledge)?;
        let groups = if knowledge == EpsilonKnowledge::Value { space.groups() } else { None };
        let unpadded = sizes.padded(&PaddingPolicy::None).learned(&sizes.observation);
        Ok(Self {
            command_bytes: sizes.cost(&PaddingPolicy::None).command_bytes,
            groups: groups.unwrap_or_else(|| seen_groups(&sizes.observation)),
            unpadded,
            sizes,
            commands_per_day,
        })
    }

    /// The commands by the size that is seen.
    pub fn rows(&self) -> &[SizeRow] {
        &self.sizes.rows
    }

    /// The commands by the multiple of so many bytes that holds their size, and the expected bytes from the one to the other.
    pub(crate) fn coarse(&self, unit: u64) -> (Vec<CommandGroup>, f64) {
        let groups = if unit <= 1 { self.groups.clone() } else { coarse_groups(&self.sizes.observation, unit) };
        let cost = self.sizes.cost(&PaddingPolicy::Multiple { bytes: unit.max(1) });
        (groups, cost.added_bytes)
    }

    /// What an observer sees of padded commands, whose padding is drawn anew for each. Probabilities that differ by
    /// rounding alone are the same.
    pub fn padded_channel(&self, policy: &PaddingPolicy) -> Channel {
        let mut channel = self.sizes.padded(policy).channel(&self.sizes.observation.command);
        let outputs = channel.rows.iter_mut().flat_map(|row| &mut row.outputs);
        outputs.for_each(|(_, probability)| *probability = (*probability * ROUNDED_TO).round() / ROUNDED_TO);
        channel
    }

    /// What is learned under a policy.
    pub fn padded(&self, policy: &PaddingPolicy) -> Learned {
        self.sizes.padded(policy).learned(&self.sizes.observation)
    }
}
