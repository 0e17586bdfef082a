//! How much is given away, in bits: what is not known of a command before its size is seen, and after.

use serde::Serialize;
use sizeleak_decomposer::prior_bits;
use sizeleak_model::{Limits, Model};
use toml::Value;

use super::score::Judged;
use sizeleak_pipeline::Pipeline;

/// The most ways to share actions among classes that are looked at to count commands.
const MOST_TOTALS: f64 = 1e6;

/// Means over all labelled commands, as the model sees them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::command) struct Information {
    /// The entropy without the size: by the prior the candidates' probabilities were made with, or of all commands the
    /// inventory allows, each as likely as another. Null where nothing bounds them.
    pub(in crate::command) prior_bits: Option<f64>,
    /// The entropy of the candidates; of a command without any, that of the prior.
    pub(in crate::command) posterior_bits: f64,
    /// Their difference.
    pub(in crate::command) leaked_bits: Option<f64>,
    /// Whether cut lists make `posterior_bits` an upper bound and `leaked_bits` a lower one.
    pub(in crate::command) is_bound: bool,
}

impl Information {
    /// What is known of commands, given the entropy of what is known without them.
    pub(in crate::command) fn of(all: &[Judged<'_>], prior_bits: Option<f64>) -> Self {
        let (mut sum, mut counted, mut is_bound) = (0.0, 0_u64, false);
        for judged in all {
            let known = judged.judgement.filter(|judgement| judgement.candidates > 0);
            let Some(bits) = known.map(|judgement| judgement.belief.entropy_bits).or(prior_bits) else { continue };
            sum += bits;
            counted += 1;
            is_bound |= known.is_some_and(|judgement| judgement.is_cut);
        }
        let posterior_bits = if counted > 0 { sum / counted as f64 } else { 0.0 };
        let leaked_bits = prior_bits.filter(|_| counted > 0).map(|prior| prior - posterior_bits);
        Self { prior_bits, posterior_bits, leaked_bits, is_bound }
    }
}

/// The entropy of what a pipeline knows of a command before its size is seen, in bits; `None` where nothing bounds it.
pub(in crate::command) fn bits_before(pipeline: &Pipeline, model: &Model) -> Option<f64> {
    let is = |key, value: Value| pipeline.option("decomposer", key) == Some(&value);
    let mut known = model.clone();
    known.prior = known.prior.filter(|_| !is("prior", "flat".into()));
    known.inventory = known.inventory.filter(|_| !is("free", true.into()));
    let flat = || flat_prior_bits(&known.limits().ok()?, known.actions.len());
    prior_bits(&known).or_else(flat)
}

/// The entropy of a command of `actions` kinds of action of which nothing is known but that the inventory allows it, in
/// bits. `None` where nothing bounds commands, or where the inventory is too tangled to count them.
fn flat_prior_bits(limits: &Limits, actions: usize) -> Option<f64> {
    let most: Vec<u32> = (0..limits.classes()).map(|class| limits.max_of_class(class)).collect();
    let totals: f64 = most.iter().map(|most| f64::from(*most) + 1.0).product();
    if limits.is_free() || totals > MOST_TOTALS {
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
        // Counts up: the first class that is not full, with all before it empty again.
        let Some(at) = shares.iter().zip(&most).position(|(share, most)| share < most) else { break };
        for (place, share) in shares.iter_mut().enumerate().take(at + 1) {
            *share = if place == at { *share + 1 } else { 0 };
        }
    }
    // A command has one action at least.
    Some((commands - 1.0).max(1.0).log2())
}

/// How many multisets of `total` out of so many actions there are: C(total + actions − 1, actions − 1).
fn multisets(total: u32, actions: u32) -> f64 {
    (1..actions).map(|at| f64::from(total) / f64::from(at) + 1.0).product()
}

#[cfg(test)]
mod tests {
    use sizeleak_model::{Action, Inventory};

    use super::super::belief::Belief;
    use super::super::judge::{Judgement, TruthRank};
    use super::*;

    #[test]
    fn all_commands_of_an_inventory_are_counted() {
        let inventory = Inventory::from_toml(
            "[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
             [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"red\"]\n",
        )
        .unwrap();
        let actions = ["on", "off", "red"].map(|name| Action { name: name.into(), size: 1 });
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
    fn what_is_not_found_tells_nothing() {
        let belief = Belief { entropy_bits: 2.0, ..Belief::default() };
        let found = Judgement { standing: TruthRank::Listed(1), candidates: 4, is_cut: true, first: None, belief };
        let all = [Some(&found), None].map(|judgement| Judged { truth: &[], judgement });
        let known = Information::of(&all, Some(10.0));
        assert_eq!((known.posterior_bits, known.leaked_bits, known.is_bound), (6.0, Some(4.0), true));
        let unbounded = Information::of(&all, None);
        assert_eq!((unbounded.posterior_bits, unbounded.leaked_bits), (2.0, None));
    }
}
