//! What the reports on the best table and on the best random padding have in common.

use serde::Serialize;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{JudgedPolicy, PaddedHome, PaddingPolicy, PolicyFile};

use super::best_for::BestFor;
use super::judged::{opening, sentence, table};
use crate::command::failure::Failure;

/// The best policy for a goal, with what it gives away and costs.
#[derive(Serialize)]
pub(super) struct BestPolicy<'a> {
    schema: u32,
    pub(super) sentence: String,
    prior: &'a str,
    pub(super) goal: BestFor,
    pub(super) policy: PaddingPolicy,
    commands_per_day: f64,
    command_bytes: f64,
    pub(super) padded: JudgedPolicy,
    unpadded: &'a Learned,
    #[serde(skip)]
    home: &'a PaddedHome,
}

impl<'a> BestPolicy<'a> {
    /// A policy that is `named` so in words.
    pub(super) fn new(
        home: &'a PaddedHome,
        goal: BestFor,
        (policy, padded): (PaddingPolicy, JudgedPolicy),
        named: &str,
        prior: &'a str,
    ) -> Self {
        Self {
            schema: 1,
            sentence: sentence(&padded, home, named),
            prior,
            goal,
            policy,
            commands_per_day: home.commands_per_day,
            command_bytes: home.command_bytes,
            padded,
            unpadded: &home.unpadded,
            home,
        }
    }

    /// As a policy file.
    pub(super) fn json(&self) -> Result<String, Failure> {
        Ok(PolicyFile::new(self.policy.clone(), Some(self.sentence.clone())).to_json()?)
    }

    /// How the report begins as text.
    pub(super) fn opening(&self) -> Vec<String> {
        let mut parts = opening(&self.sentence, self.prior);
        parts.push(table(&self.padded, self.home));
        parts
    }
}
