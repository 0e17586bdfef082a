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

/// Commands that nothing seen tells apart, at least one; those of the fewest actions first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandClass(Vec<Actions>);

impl CommandClass {
    /// The most that are named.
    const MOST_NAMED: usize = 3;

    pub(crate) fn first(&self) -> Option<&Actions> {
        self.0.first()
    }
}

impl FromIterator<Actions> for CommandClass {
    fn from_iter<I: IntoIterator<Item = Actions>>(commands: I) -> Self {
        let mut commands: Vec<Actions> = commands.into_iter().collect();
        commands.sort_by(|a, b| (a.total(), a).cmp(&(b.total(), b)));
        Self(commands)
    }
}

/// `1 colour, 1 off or 1 timer, 1 white`; of many, how many others there are.
impl std::fmt::Display for CommandClass {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = if self.0.len() > Self::MOST_NAMED { Self::MOST_NAMED - 1 } else { self.0.len() };
        for (at, actions) in self.0.iter().take(named).enumerate() {
            write!(out, "{}{actions}", if at == 0 { "" } else { " or " })?;
        }
        if named < self.0.len() { write!(out, " or {} others", self.0.len() - named) } else { Ok(()) }
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
    /// Its candidates, the likeliest first, without those that cannot matter: of a likelihood below a thousandth of the
    /// greatest. That is scaled to 1, so that how usual the noise of sizes is says nothing. At most
    /// [`Self::MAX_CANDIDATES`] remain. Likelihoods have three significant digits: more say more than is known.
    #[must_use]
    pub fn reduced(mut self) -> Self {
        let greatest = self.candidates.iter().map(|(_, likelihood)| *likelihood).fold(0.0, f64::max);
        self.candidates
            .retain(|(actions, likelihood)| *likelihood >= greatest * 1e-3 && *likelihood > 0.0 && actions.total() > 0);
        self.candidates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        self.candidates.truncate(Self::MAX_CANDIDATES);
        for (_, likelihood) in &mut self.candidates {
            *likelihood = three_digits(*likelihood / greatest);
        }
        self
    }

    /// Its candidates by classes: those of a class have the same likelihood, so that nothing seen tells them apart. Classes
    /// of a low likelihood are left out: answers end where their candidates have 0.999 of the probability together, so what
    /// such a class lacks was improbable, not told apart.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &[(Actions, f64)]> {
        let classes = self.candidates.chunk_by(|(_, a), (_, b)| a.total_cmp(b).is_eq());
        classes.filter(|class| class.first().is_some_and(|(_, likelihood)| *likelihood >= Self::LEAST_TELLING))
    }

    pub const MAX_CANDIDATES: usize = 64;

    /// A command that a class of this likelihood lacks was a hundred times rarer than those that the answer lists.
    const LEAST_TELLING: f64 = 0.1;
}

fn three_digits(number: f64) -> f64 {
    format!("{number:.2e}").parse().unwrap_or(number)
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
