//! For which commands padding is judged.

use anyhow::anyhow;
use clap::Args;
use sizeleak_inference::channel::EpsilonKnowledge;
use sizeleak_model::{Basis, LearnedPadding, Model};

use crate::command::failure::Failure;

/// Commands a day, unless others are named.
pub(crate) const COMMANDS_PER_DAY: u32 = 1000;

/// What is taken to be known of commands.
#[derive(Debug, Args)]
pub(super) struct HomeOptions {
    /// Commands a day, for the cost, and for how many share a record [default: 1000]
    #[arg(long, value_name = "NUMBER", default_value_t = COMMANDS_PER_DAY, hide_default_value = true, hide_short_help = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    commands_per_day: u32,

    /// Take every command to have its size without ε
    #[arg(long, hide_short_help = true)]
    pub(super) without_epsilon: bool,
}

impl HomeOptions {
    /// What the observer knows of ε.
    pub(super) fn knowledge(&self) -> EpsilonKnowledge {
        if self.without_epsilon { EpsilonKnowledge::Value } else { EpsilonKnowledge::Distribution }
    }

    /// Commands a day.
    pub(super) fn commands_per_day(&self) -> f64 {
        f64::from(self.commands_per_day)
    }
}

/// Refuses models whose sizes are not those that padding starts from.
pub(crate) fn check_sizes(model: &Model) -> Result<(), Failure> {
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
