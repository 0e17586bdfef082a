//! What padding policies and other countermeasures cost and give away, and which tables give away least for their bytes.
//! Here are the commands of a home as an observer sees them, without padding and with a policy, and what that costs.

#![warn(clippy::indexing_slicing)]

mod bucket_table;
mod countermeasures;
mod frontier;
mod home_traffic;
mod padded_observation;
mod shared_record;

use std::collections::BTreeMap;

use serde::Serialize;
use sizeleak_inference::channel::{Channel, EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandGroup, CommandSpace, SizeRow, SpaceError};
use sizeleak_model::Model;

use crate::leakage::Learned;
use crate::tunnel::Tunnel;

pub use bucket_table::{BucketTable, Goal, SourceLanguage, TableRules, TableSearch, table_source};
pub use countermeasures::{CountermeasureCost, CountermeasureError, Countermeasures, ReplyForm, ReplyTraffic, Sending};
pub use frontier::{Frontier, NoTable, exact_table};
pub use home_traffic::{CountermeasureEffect, HomeTraffic};
pub use padded_observation::{PaddedOutputs, named_after, named_with_known_key, seen_groups, seen_rows};
pub use sizeleak_model::policies::{
    Draw, MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, POLICY_VERSION, PaddedSize, PaddingKey, PaddingPolicy,
    PolicyError, PolicyFile, RandomRow, TLS_RECORD_BYTES,
};

/// Bytes of commands, expected over all commands of an inventory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaddingCost {
    /// The expected bytes of a command without padding.
    pub command_bytes: f64,
    /// The expected bytes that padding adds to it.
    pub added_bytes: f64,
}

impl PaddingCost {
    /// What a policy costs for commands of these sizes.
    pub fn of(rows: &[SizeRow], policy: &PaddingPolicy) -> Self {
        Self::of_sent(rows, policy, |bytes| bytes)
    }

    /// The same where a message is sent as so many bytes, which are no fewer for a longer one.
    fn of_sent(rows: &[SizeRow], policy: &PaddingPolicy, sent: impl Fn(u64) -> u64) -> Self {
        let expected = |bytes: &dyn Fn(u64) -> f64| rows.iter().map(|row| row.probability * bytes(row.bytes)).sum();
        Self {
            command_bytes: expected(&|size| sent(size) as f64),
            added_bytes: expected(&|size| expected_added(policy, size, &sent)),
        }
    }
    /// The bytes added, as a share of the bytes without padding; 0 if there are none.
    pub fn share(&self) -> f64 {
        if self.command_bytes > 0.0 { self.added_bytes / self.command_bytes } else { 0.0 }
    }

    /// The megabytes (10⁶ bytes) that so many commands a day are longer by.
    pub fn megabytes_a_day(&self, commands: f64) -> f64 {
        self.added_bytes * commands / 1e6
    }
}

fn expected_padding(policy: &PaddingPolicy, bytes: u64) -> f64 {
    expected_added(policy, bytes, |bytes| bytes)
}

fn expected_added(policy: &PaddingPolicy, bytes: u64, sent: impl Fn(u64) -> u64) -> f64 {
    let added = |padded: u64| sent(padded).saturating_sub(sent(bytes)) as f64;
    policy.padded_sizes(bytes).iter().map(|padded| padded.probability * added(padded.bytes)).sum()
}

/// Probabilities are rounded to so many parts before they are compared.
const ROUNDED_TO: f64 = 1e12;

/// The commands of a home, for which padding is judged.
#[derive(Debug)]
pub struct PaddedHome {
    /// Who sees sizes.
    observation: Observation,
    /// The commands by the size that is seen, without the tunnel.
    pub rows: Vec<SizeRow>,
    /// By the size that is seen and probability.
    pub groups: Vec<CommandGroup>,
    pub unpadded: Learned,
    pub command_bytes: f64,
    pub commands_per_day: f64,
    /// The tunnel through which they are seen, and whose bytes count.
    tunnel: Option<Tunnel>,
    /// By the bytes of its packets.
    outside: Vec<SizeRow>,
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
        let observation = Observation::new(space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let rows = seen_rows(&observation);
        let groups = if knowledge == EpsilonKnowledge::Value { space.groups() } else { None };
        Ok(Self {
            command_bytes: PaddingCost::of(&rows, &PaddingPolicy::None).command_bytes,
            groups: groups.unwrap_or_else(|| seen_groups(&observation)),
            unpadded: PaddedOutputs::new(&observation, &PaddingPolicy::None).learned(&observation),
            observation,
            rows,
            commands_per_day,
            tunnel: None,
            outside: Vec::new(),
        })
    }

    /// The same home behind a tunnel, beside no background: padding that holds against whoever tells packets apart holds
    /// beside every background.
    #[must_use]
    pub fn behind(mut self, tunnel: Tunnel) -> Self {
        let mut outside: BTreeMap<u64, SizeRow> = BTreeMap::new();
        for row in &self.rows {
            let bytes = tunnel.message(row.bytes).bytes;
            let row = SizeRow { bytes, ..*row };
            outside.entry(bytes).and_modify(|all| all.add(&row)).or_insert(row);
        }
        self.outside = outside.into_values().collect();
        self.tunnel = Some(tunnel);
        self.unpadded = self.padded(&PaddingPolicy::None);
        self.command_bytes = self.cost(&PaddingPolicy::None).command_bytes;
        self
    }

    fn cost(&self, policy: &PaddingPolicy) -> PaddingCost {
        match &self.tunnel {
            Some(tunnel) => PaddingCost::of_sent(&self.rows, policy, |bytes| tunnel.message(bytes).bytes),
            None => PaddingCost::of(&self.rows, policy),
        }
    }

    fn outputs(&self, policy: &PaddingPolicy) -> PaddedOutputs {
        match &self.tunnel {
            Some(tunnel) => PaddedOutputs::through_tunnel(&self.observation, policy, tunnel).0,
            None => PaddedOutputs::new(&self.observation, policy),
        }
    }

    pub fn tunnel(&self) -> Option<&Tunnel> {
        self.tunnel.as_ref()
    }

    /// The commands for which a table is looked for: through a tunnel by the bytes of its packets.
    pub fn table_rows(&self) -> &[SizeRow] {
        if self.tunnel.is_some() { &self.outside } else { &self.rows }
    }

    /// The padding of messages that is a table of [`Self::table_rows`] with these buckets: through a tunnel, a message may
    /// be as long as its packets hold.
    pub fn inside(&self, buckets: &[u64]) -> PaddingPolicy {
        let inside = |bytes: &u64| self.tunnel.as_ref().map_or(*bytes, |tunnel| tunnel.greatest_message(*bytes));
        PaddingPolicy::Table { buckets: buckets.iter().map(inside).collect() }
    }

    /// What an observer sees of padded commands, whose padding is drawn anew for each. Probabilities that differ by
    /// rounding alone are the same.
    pub fn padded_channel(&self, policy: &PaddingPolicy) -> Channel {
        let mut channel = self.outputs(policy).channel(&self.observation.command);
        let outputs = channel.rows.iter_mut().flat_map(|row| &mut row.outputs);
        outputs.for_each(|(_, probability)| *probability = (*probability * ROUNDED_TO).round() / ROUNDED_TO);
        channel
    }

    pub fn padded(&self, policy: &PaddingPolicy) -> Learned {
        self.outputs(policy).learned(&self.observation)
    }
}

/// A padding policy with what it gives away and costs.
#[derive(Debug, Clone, Serialize)]
pub struct JudgedPolicy {
    pub name: String,
    pub added_bytes: f64,
    /// These as a share of the command's bytes.
    pub added_share: f64,
    pub megabytes_a_day: f64,
    /// What an observer of one padded command learns.
    pub by_size: Learned,
}

impl JudgedPolicy {
    /// Judges a policy for a home: exactly, over all of its commands.
    pub fn new(home: &PaddedHome, policy: &PaddingPolicy) -> Self {
        let cost = home.cost(policy);
        Self {
            name: policy.to_string(),
            added_bytes: cost.added_bytes,
            added_share: cost.share(),
            megabytes_a_day: cost.megabytes_a_day(home.commands_per_day),
            by_size: home.padded(policy),
        }
    }
}
