//! The actions that each command probably has, drawn from all that explain it: the most probable ones alone would be
//! those of small commands.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::lost_replies::silent_start;
use super::rows::{ReplyClasses, row};
use super::search::Candidate;
use super::{BlindAction, BlindFit, Observation};
use crate::fit::expectation::{Beforehand, Parameters, Plan, drawn, shares};

/// The most actions without a reply in a command that has replies, and in one that has none.
const MOST_SILENT: usize = 3;
const MOST_ALONE: usize = 16;

/// The least share of a reply that is lost, or foreign: nothing is impossible.
const MIN_SHARE: f64 = 1e-3;

/// How many commands' actions are drawn at once, a bound of memory.
const AT_ONCE: usize = 500;

pub(super) struct Drawing<'a> {
    pub(super) fit: &'a BlindFit,
    pub(super) candidate: &'a Candidate,
    pub(super) classes: &'a ReplyClasses,
    pub(super) beforehand: Beforehand,
}

impl Drawing<'_> {
    /// How often each action of the fit occurs in each command; `None` if nothing explains it.
    pub(super) fn actions(&self, observations: &[Observation]) -> Vec<Option<Vec<u32>>> {
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let mut found = vec![None; observations.len()];
        for (observations, found) in observations.chunks(AT_ONCE).zip(found.chunks_mut(AT_ONCE)) {
            let mut plan = Plan::new(self.classes.sizes.len() + 1);
            let rows =
                observations.iter().zip(found).filter_map(|(one, found)| Some((row(one, self.classes, 2)?, found)));
            let (rows, found): (Vec<_>, Vec<_>) = rows.unzip();
            for row in &rows {
                row.add_to(&mut plan, MOST_SILENT, MOST_ALONE);
            }
            let parameters = self.parameters(&plan, observations);
            let targets = self.candidate.targets(&plan);
            let sums = plan.distributions(&parameters, targets.iter().map(|target| [*target; 2]));
            for (row, found) in plan.rows.iter().zip(targets).zip(found) {
                let parts = plan.draw(row, &sums, &parameters, self.beforehand, &mut random);
                *found = parts.and_then(|parts| self.counts(&parts, &mut random));
            }
        }
        found
    }

    fn class(&self, action: &BlindAction) -> usize {
        let mute = self.classes.sizes.len();
        action.reply.and_then(|reply| self.classes.sizes.binary_search(&reply).ok()).unwrap_or(mute)
    }

    /// How often an action shows as one of a class: by its reply, or, where that is lost, as one without.
    fn share(&self, action: &BlindAction, class: usize) -> f64 {
        let lost = self.fit.lost.clamp(MIN_SHARE, 0.5);
        match (self.class(action) == class, class == self.classes.sizes.len()) {
            (true, true) => action.frequency,
            (true, false) => action.frequency * (1.0 - lost),
            (false, true) => action.frequency * lost,
            (false, false) => 0.0,
        }
    }

    /// The parameters of the actions of the fit alone.
    fn parameters(&self, plan: &Plan, observations: &[Observation]) -> Parameters {
        let actions = &self.fit.actions;
        let mute = self.classes.sizes.len();
        let of_class = |class: usize| {
            let foreign = (0, if class < mute { MIN_SHARE } else { 0.0 });
            shares(actions.iter().map(|action| (action.size, self.share(action, class))).chain([foreign]))
        };
        let mean_size: f64 = actions.iter().map(|action| action.size as f64 * action.frequency).sum();
        let bytes = observations.iter().map(|one| one.size.saturating_sub(self.fit.overhead).max(0) as f64);
        let mean = bytes.sum::<f64>() / observations.len().max(1) as f64 / mean_size.max(1.0);
        // Of actions without a reply there is one more with this probability.
        let more = 1.0 - 1.0 / mean.max(1.0 + MIN_SHARE);
        let silent: f64 = actions.iter().map(|action| self.share(action, mute)).sum();
        Parameters {
            sizes: (0..=mute).map(of_class).collect(),
            silent: silent_start(plan, more * silent),
            ..self.candidate.parameters.clone()
        }
    }

    /// How often each action occurs in single sizes of classes.
    fn counts(&self, parts: &[(usize, i64)], random: &mut ChaCha8Rng) -> Option<Vec<u32>> {
        let actions = &self.fit.actions;
        let mut counts = vec![0; actions.len()];
        for (class, size) in parts.iter().filter(|(class, size)| *class <= self.classes.sizes.len() && *size > 0) {
            let weight = |action: &BlindAction| if action.size == *size { self.share(action, *class) } else { 0.0 };
            counts[drawn(actions.iter().map(weight), random)?] += 1;
        }
        Some(counts)
    }
}
