//! The commands of a home as an observer sees them without padding.

use anyhow::anyhow;
use sizeleak_leakage::{
    CommandGroup, CommandSpace, EpsilonKnowledge, LeakageError, Learned, Observation, Observer, SizeRow,
};
use sizeleak_model::{Basis, LearnedPadding, Model};
use sizeleak_padding::{FloorOf, PaddedOutputs, PaddingFloor, PaddingPolicy, seen_groups, seen_rows};

use crate::command::failure::Failure;

/// The floor of more sizes than this would take too long.
const MAX_FLOOR_SIZES: usize = 1500;

/// Whether the floor of all policies is computed, which takes the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloorChoice {
    Computed,
    LeftOut,
}

/// The commands of a home.
#[derive(Debug)]
pub(super) struct PaddedHome {
    observation: Observation,
    /// By the size that is seen.
    pub(super) rows: Vec<SizeRow>,
    /// By the size that is seen and probability.
    pub(super) groups: Vec<CommandGroup>,
    /// What is learned without padding.
    pub(super) unpadded: Learned,
    /// The expected bytes of a command.
    pub(super) command_bytes: f64,
    /// Commands a day.
    pub(super) commands_per_day: f64,
}

impl PaddedHome {
    pub(super) fn new(
        space: &CommandSpace,
        model: &Model,
        knowledge: EpsilonKnowledge,
        commands_per_day: f64,
    ) -> Result<Self, Failure> {
        check_sizes(model)?;
        let observation = Observation::new(space, model, Observer::Sizes, knowledge)?.ok_or(LeakageError::TooMany)?;
        let rows = seen_rows(&observation);
        let groups = if knowledge == EpsilonKnowledge::Value { space.groups() } else { None };
        let unpadded = PaddedOutputs::new(&observation, &PaddingPolicy::None).learned(&observation);
        Ok(Self {
            command_bytes: rows.iter().map(|row| row.probability * row.bytes as f64).sum(),
            groups: groups.unwrap_or_else(|| seen_groups(&observation)),
            rows,
            unpadded,
            observation,
            commands_per_day,
        })
    }

    /// A coarse floor of all policies, unless it is left out or would take too long.
    pub(super) fn floor(&self, choice: FloorChoice) -> Option<PaddingFloor> {
        let is_computed = choice == FloorChoice::Computed && self.rows.len() <= MAX_FLOOR_SIZES;
        is_computed.then(|| PaddingFloor::new(&self.groups, FloorOf::AnyPolicy))
    }

    /// What is learned under a policy.
    pub(super) fn padded(&self, policy: &PaddingPolicy) -> Learned {
        PaddedOutputs::new(&self.observation, policy).learned(&self.observation)
    }
}

/// Refuses models whose sizes are not those that padding starts from.
pub(super) fn check_sizes(model: &Model) -> Result<(), Failure> {
    let fault = match (&model.learned.basis, &model.learned.padding) {
        (_, Some(LearnedPadding::Modulo(bytes))) => {
            format!("it was learned on messages that are already padded to multiples of {bytes} bytes")
        }
        (_, Some(LearnedPadding::Policy(_))) => "it is of a gateway that pads its commands already".to_owned(),
        (Basis::Wire, None) => "it knows sizes on the wire only".to_owned(),
        (Basis::Plaintext { record_overhead: [least, most], .. }, None) if least < most => {
            "it was learned under a block cipher, which hides the exact sizes".to_owned()
        }
        (Basis::Plaintext { .. }, None) => return Ok(()),
    };
    Err(Failure::usage(anyhow!(
        "padding starts from the plaintext sizes of messages, which this model does not have: {fault}; learn from a \
         capture with a handshake, a stream cipher or AES-GCM, and no padding"
    )))
}
