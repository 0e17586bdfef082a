//! A padding policy with what it gives away and costs.

use crate::leakage::Learned;
use serde::Serialize;
use sizeleak_model::policies::PaddingPolicy;

use crate::padding::padded_home::PaddedHome;
use crate::padding::padding_cost::PaddingCost;

/// A padding policy with what it gives away and costs.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedPolicy {
    /// Its name.
    pub name: String,
    /// The expected bytes that it adds to a command.
    pub added_bytes: f64,
    /// These as a share of the command's bytes.
    pub added_share: f64,
    /// The megabytes that it adds a day.
    pub megabytes_a_day: f64,
    /// What an observer of one padded command learns.
    pub by_size: Learned,
}

impl JudgedPolicy {
    /// Judges a policy for a home: exactly, over all of its commands.
    pub fn new(home: &PaddedHome, policy: &PaddingPolicy) -> Self {
        let cost = PaddingCost::of(home.rows(), policy);
        Self {
            name: policy.to_string(),
            added_bytes: cost.added_bytes,
            added_share: cost.share(),
            megabytes_a_day: cost.megabytes_a_day(home.commands_per_day),
            by_size: home.padded(policy),
        }
    }
}
