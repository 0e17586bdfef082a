//! A command as an observer sees it: when, and what it may have been.

use std::collections::BTreeMap;
use std::sync::Arc;

use sizeleak_frame::{Candidate, Identification};

/// The actions of a command with their counts, in order of their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actions(Arc<[(Arc<str>, u32)]>);

impl Actions {
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        self.0.iter().map(|(name, count)| (name, *count))
    }

    pub fn total(&self) -> u32 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

impl FromIterator<(Arc<str>, u32)> for Actions {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u32)>>(actions: I) -> Self {
        let mut counts: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (name, count) in actions {
            let own = counts.entry(name).or_default();
            *own = own.saturating_add(count);
        }
        Self(counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }
}

impl From<&Candidate> for Actions {
    fn from(candidate: &Candidate) -> Self {
        candidate.actions.iter().map(|(name, count)| (Arc::clone(name), count)).collect()
    }
}

/// `2 on, 1 dim`.
impl std::fmt::Display for Actions {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (name, count)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(out, "{comma}{count} {}", sizeleak_text::escaped(name))?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    pub time_ns: i64,
    pub flow: u64,
    /// What it may have been, each with P(observation | actions) as a multiple of any number that all share.
    pub candidates: Vec<(Actions, f64)>,
}

impl Sighting {
    /// Its candidates without those that cannot matter: of a likelihood below a thousandth of the greatest. That is
    /// scaled to 1, so that how usual the noise of sizes is says nothing. At most [`Self::MAX_CANDIDATES`] remain.
    #[must_use]
    pub fn reduced(mut self) -> Self {
        let greatest = self.candidates.iter().map(|(_, likelihood)| *likelihood).fold(0.0, f64::max);
        self.candidates
            .retain(|(actions, likelihood)| *likelihood >= greatest * 1e-3 && *likelihood > 0.0 && actions.total() > 0);
        self.candidates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        self.candidates.truncate(Self::MAX_CANDIDATES);
        for (_, likelihood) in &mut self.candidates {
            *likelihood /= greatest;
        }
        self
    }

    pub const MAX_CANDIDATES: usize = 64;
}

/// The candidates of an answer; where their likelihoods are not known, their probabilities have to do, and what the model's
/// habits say then counts twice.
impl From<&Identification> for Sighting {
    fn from(answer: &Identification) -> Self {
        let is_known = answer.candidates.iter().all(|candidate| candidate.likelihood.is_some());
        let candidate = |candidate: &Candidate| {
            let known = candidate.likelihood.filter(|_| is_known);
            let likelihood = known.unwrap_or(candidate.probability);
            (Actions::from(candidate), if likelihood.is_finite() { likelihood } else { 0.0 })
        };
        let candidates = answer.candidates.iter().map(candidate).collect();
        Self { time_ns: answer.command.time_ns, flow: answer.command.flow, candidates }.reduced()
    }
}
