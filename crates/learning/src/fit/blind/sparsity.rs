//! As few sizes as explain the rows: a size stays if the rows are much less likely without it.

use sizeleak_model::Pmf;

use super::lost_replies::{all_replying, mixed, silent_start};
use super::search::{Candidate, Step, cost_of_size, repeat};
use crate::fit::expectation::{Expected, Parameters, Plan, expect, shares};

/// The least expected occurrences of an action: nearly one if it occurred once; several that share one are none.
const MIN_COUNT: f64 = 0.7;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Atom {
    /// Its class of replies; the last is none.
    pub(super) class: usize,
    /// In bytes, at least 1.
    pub(super) size: i64,
    /// How many of it the rows have, by expectation.
    pub(super) count: f64,
}

pub(super) fn sparsify(candidate: &mut Candidate, plan: &Plan, step: Step) {
    let step = Step { splits_lost: plan.actions > 1, ..step };
    for least_evidence in [0.3, 0.7, 1.0] {
        candidate.improve(plan, 10, step.with_evidence(least_evidence));
    }
    candidate.improve(plan, 8, step);
    prune(candidate, plan, step);
    split_sums(candidate, plan, step);
    candidate.improve(plan, 20, step);
}

/// Takes sizes that are those of an action and one without a reply together for two actions, unless the rows object.
fn split_sums(candidate: &mut Candidate, plan: &Plan, step: Step) {
    let targets = candidate.targets(plan);
    let expected = expect(plan, &targets, &candidate.parameters, step.beforehand);
    let all = atoms(&candidate.parameters, &expected);
    let silent = plan.actions - 1;
    let is_sum = |atom: &&Atom| {
        let seconds = || all.iter().filter(|second| second.class == silent);
        let mut firsts = all.iter().filter(|first| first.class == atom.class);
        silent > 0 && firsts.any(|first| seconds().any(|second| first.size + second.size == atom.size))
    };
    let sums: Vec<Atom> = all.iter().filter(is_sum).copied().collect();
    if sums.is_empty() {
        return;
    }
    let mut parameters = candidate.parameters.clone();
    for sum in &sums {
        let Some(left) = without(&parameters, &expected, *sum) else { return };
        parameters = left;
    }
    parameters.silent = silent_start(plan, 0.2);
    let log_likelihood = repeat(plan, &targets, &mut parameters, 20, step);
    if log_likelihood > expected.log_likelihood - 2.0 * cost_of_size(plan) * sums.len() as f64 {
        (candidate.parameters, candidate.log_likelihood) = (parameters, log_likelihood);
    }
}

/// Removes sizes, the rarest first, for as long as the rest explains the rows nearly as well.
fn prune(candidate: &mut Candidate, plan: &Plan, step: Step) {
    let targets = candidate.targets(plan);
    let mut tested: Vec<(usize, i64)> = Vec::new();
    for _ in 0..60 {
        let expected = expect(plan, &targets, &candidate.parameters, step.beforehand);
        let all = atoms(&candidate.parameters, &expected);
        let untested = all.iter().filter(|atom| !tested.contains(&(atom.class, atom.size)));
        let Some(rarest) = untested.min_by(|a, b| a.count.total_cmp(&b.count)) else { return };
        tested.push((rarest.class, rarest.size));
        let Some(mut left) = without(&candidate.parameters, &expected, *rarest) else { continue };
        // What explains a lot is missed at once.
        let log_likelihood = repeat(plan, &targets, &mut left, 2, step);
        let is_missed = log_likelihood < expected.log_likelihood - 8.0 * cost_of_size(plan);
        if is_missed && all.len() <= step.most_sizes {
            continue;
        }
        let log_likelihood = repeat(plan, &targets, &mut left, 4, step);
        if all.len() > step.most_sizes || log_likelihood > expected.log_likelihood - cost_of_size(plan) {
            (candidate.parameters, candidate.log_likelihood) = (left, log_likelihood);
        }
    }
}

/// The parameters without a size; `None` if nothing would be left.
fn without(parameters: &Parameters, expected: &Expected, atom: Atom) -> Option<Parameters> {
    let mut left = parameters.clone();
    let mute = parameters.sizes.len().checked_sub(1)?;
    let sizes = left.sizes.get_mut(atom.class)?;
    let others = sizes.iter().filter(|(size, _)| *size != atom.size).map(|(size, probability)| (size, *probability));
    if atom.class == mute && mute > 0 {
        // Then these were lost replies.
        let replying = all_replying(&parameters.sizes, expected);
        let own = others.map(|(size, probability)| (size, probability - parameters.lost * replying.at(size)));
        let own = Pmf::from_values(own.filter(|(_, probability)| *probability > 0.0));
        left.lost = (1.0 - own.total()).clamp(0.0, 1.0);
        *sizes = mixed(&replying, left.lost, &own, 1.0);
    } else {
        *sizes = shares(others);
        // A reply may always be foreign, so that no class must have an action.
        if sizes.is_empty() && mute > 0 {
            *sizes = Pmf::certain(0);
        }
    }
    (!sizes.is_empty()).then_some(left)
}

/// The actions of a fit, in the order of classes and sizes.
pub(super) fn atoms(parameters: &Parameters, expected: &Expected) -> Vec<Atom> {
    let mute = parameters.sizes.len().saturating_sub(1);
    let lost = all_replying(&parameters.sizes, expected);
    let mut atoms = Vec::new();
    for (class, (sizes, counts)) in parameters.sizes.iter().zip(&expected.sizes).enumerate() {
        for (size, probability) in sizes.iter().filter(|(size, _)| *size > 0) {
            let is_mute = class == mute && mute > 0;
            let lost = if is_mute { parameters.lost * lost.at(size) / probability } else { 0.0 };
            let count = counts.at(size) * (1.0 - lost.min(1.0));
            if count >= MIN_COUNT {
                atoms.push(Atom { class, size, count });
            }
        }
    }
    atoms
}

/// Looks like an action but is some whose replies came as one, or were lost: much rarer than those that it consists of.
pub(super) fn is_artefact(atom: &Atom, atoms: &[Atom], silent: usize) -> bool {
    if silent == 0 {
        return false;
    }
    let frequent = |share: f64| atoms.iter().filter(move |other| atom.count < share * other.count);
    let is_lost = atom.class == silent && frequent(0.2).any(|other| other.size == atom.size);
    // What is tiny beside the others is an ε.
    let is_tiny = atom.class == silent && frequent(0.5).any(|other| 3 * atom.size < other.size);
    // A sum of two of which one sends no reply hardly differs from the two, so that it takes more to be believed.
    let is_pair = |size: i64, share: f64, with_silent: bool| {
        let parts: Vec<&Atom> = frequent(share).collect();
        let is_sum = |first: &Atom, second: &Atom| {
            // Of two actions without a reply, also with an ε.
            let off = (first.size + second.size - size).abs();
            off == 0 || (off == 1 && first.class == silent && second.class == silent && atom.class == silent)
        };
        let mut firsts = parts.iter().filter(|first| !with_silent || first.class == silent);
        firsts.any(|first| parts.iter().any(|second| is_sum(first, second)))
    };
    let is_triple = |share: f64, with_silent: bool| {
        let is_part = |part: &&Atom| !with_silent || part.class == silent;
        frequent(share).filter(is_part).any(|part| is_pair(atom.size - part.size, share, with_silent))
    };
    is_lost
        || is_tiny
        || [(0.1, false), (0.5, true)]
            .iter()
            .any(|(share, with_silent)| is_pair(atom.size, *share, *with_silent) || is_triple(*share, *with_silent))
}
