//! How much is given away, in bits: the uncertainty about a command before its size is seen, and after.

use serde::Serialize;
use sizeleak_model::{Limits, Model};
use sizeleak_pipeline::Pipeline;
use toml::Value;

use crate::judge::Judgement;

/// Commands are counted only if the classes of an inventory have at most this many combinations of totals.
const MAX_TOTALS: f64 = 1e6;

/// Means over all labelled commands, as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Information {
    /// The entropy without the size: by the prior that made the candidates' probabilities, or over all commands the
    /// inventory allows, each equally likely. Null if nothing bounds them.
    pub prior_bits: Option<f64>,
    /// The entropy of the candidates; for a command without candidates, that of the prior.
    pub posterior_bits: f64,
    /// Their difference.
    pub leaked_bits: Option<f64>,
    /// Whether truncated lists make `posterior_bits` an upper bound and `leaked_bits` a lower one.
    pub is_bound: bool,
}

impl Information {
    /// The information about labelled commands, found or not, given the entropy of the prior.
    pub(crate) fn new<'a>(labels: impl Iterator<Item = Option<&'a Judgement>>, prior_bits: Option<f64>) -> Self {
        let (mut sum, mut counted, mut is_bound) = (0.0, 0_u64, false);
        for judgement in labels {
            let known = judgement.filter(|judgement| judgement.candidates > 0);
            let bits = known.map(|judgement| judgement.probabilities.entropy_bits).or(prior_bits);
            let Some(bits) = bits else { continue };
            sum += bits;
            counted += 1;
            is_bound |= known.is_some_and(|judgement| judgement.is_truncated);
        }
        let posterior_bits = if counted > 0 { sum / counted as f64 } else { 0.0 };
        let leaked_bits = prior_bits.filter(|_| counted > 0).map(|prior| prior - posterior_bits);
        Self { prior_bits, posterior_bits, leaked_bits, is_bound }
    }
}

/// The entropy of what a pipeline knows of a command before its size is seen, in bits; `None` if nothing bounds it.
pub(crate) fn prior_bits(pipeline: &Pipeline, model: &Model) -> Option<f64> {
    let is = |key, value: Value| pipeline.option("decomposer", key) == Some(&value);
    let mut known = model.clone();
    known.prior = known.prior.filter(|_| !is("prior", "flat".into()));
    if let Some(prior) = known.prior.as_mut().filter(|_| is("prior", "learned".into()) || is("prior", "devices".into()))
    {
        prior.recurring.clear();
    }
    known.inventory = known.inventory.filter(|_| !is("free", true.into()));
    let flat = || flat_prior_bits(&known.limits().ok()?, known.actions.len());
    sizeleak_inference::search::prior_bits(&known).or_else(flat)
}

/// The entropy, in bits, of a command of `actions` kinds of action if every command the inventory allows is equally
/// likely. `None` if nothing bounds commands, or if the inventory has too many combinations to count.
fn flat_prior_bits(limits: &Limits, actions: usize) -> Option<f64> {
    let most: Vec<u32> = (0..limits.classes()).map(|class| limits.max_of_class(class)).collect();
    let totals: f64 = most.iter().map(|most| f64::from(*most) + 1.0).product();
    if limits.is_free() || totals > MAX_TOTALS {
        return None;
    }
    let in_class = |class: usize| (0..actions).filter(|action| limits.class_of(*action) == class).count() as u32;
    let sizes: Vec<u32> = (0..limits.classes()).map(in_class).collect();
    let mut commands = 0.0;
    let mut shares = vec![0_u32; most.len()];
    loop {
        if limits.admits_totals(&shares) {
            commands += shares.iter().zip(&sizes).map(|(total, actions)| multisets(*total, *actions)).product::<f64>();
        }
        // Counts up like an odometer.
        let Some(at) = shares.iter().zip(&most).position(|(share, most)| share < most) else { break };
        for (index, share) in shares.iter_mut().enumerate().take(at + 1) {
            *share = if index == at { *share + 1 } else { 0 };
        }
    }
    // A command has at least one action.
    Some((commands - 1.0).max(1.0).log2())
}

/// The number of multisets of `total` elements out of `actions`: C(total + actions − 1, actions − 1).
fn multisets(total: u32, actions: u32) -> f64 {
    (1..actions).map(|at| f64::from(total) / f64::from(at) + 1.0).product()
}

#[cfg(test)]
mod tests {
    use sizeleak_model::{Action, Inventory};

    use super::*;
    use crate::judge::{ProbabilitySummary, TruthRank};

    #[test]
    fn flat_prior_counts_every_command_the_inventory_allows() {
        let inventory = Inventory::from_toml(
            "[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
             [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"red\"]\n",
        )
        .unwrap();
        let actions = ["on", "off", "red"].map(|name| Action::new(name, 1));
        let limits = inventory.limits(&actions).unwrap();
        let mut count = 0;
        for on in 0..=9 {
            for off in 0..=9 {
                count += (0..=9).filter(|red| limits.admits(&[on, off, *red])).count();
            }
        }
        let bits = flat_prior_bits(&limits, 3).unwrap();
        assert!((bits - (count as f64 - 1.0).log2()).abs() < 1e-12, "{bits} {count}");
        assert_eq!(flat_prior_bits(&Limits::free(3), 3), None);
    }

    #[test]
    fn missed_command_leaks_no_bits() {
        let probabilities = ProbabilitySummary { entropy_bits: 2.0, ..ProbabilitySummary::default() };
        let rank = TruthRank::Listed(1);
        let found = Judgement { rank, candidates: 4, is_truncated: true, first: None, probabilities };
        let labels = || [Some(&found), None].into_iter();
        let known = Information::new(labels(), Some(10.0));
        assert_eq!((known.posterior_bits, known.leaked_bits, known.is_bound), (6.0, Some(4.0), true));
        let unbounded = Information::new(labels(), None);
        assert_eq!((unbounded.posterior_bits, unbounded.leaked_bits), (2.0, None));
    }
}
