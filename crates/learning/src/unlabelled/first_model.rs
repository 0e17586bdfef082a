//! A model of what the blind fit knows, good enough to answer the commands that it came from.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_fit::blind::{BlindAction, BlindFit, Observation};
use sizeleak_model::{
    Action, Basis, EpsilonTuple, FitMethod, Model, Neighbours, Prior, Provenance, ReplyClass, ReplyCountModel, Scope,
    SingleReplies, Smoothing,
};

/// ε is estimated from its distribution over all sizes; the nearest sizes only say what length fields add.
const SMOOTHING: Smoothing = Smoothing { k: 3, strength: 1000.0 };

/// How many times a value of ε with the probability 1 is among the tuples of a size.
const TIMES: f64 = 50.0;

/// The most sizes that tuples are made for.
const MAX_SIZES: usize = 4096;

/// How little the shares of actions vary between commands: like those of devices that are used independently.
const CONCENTRATION: f64 = 30.0;

/// The least share: nothing is impossible.
const MIN_SHARE: f64 = 1e-3;

/// The most actions in a command, for its mean.
const MAX_ACTIONS: f64 = 64.0;

/// The names of the actions of a fit: those of labels, `action-1` and so on for the others, in the order of the fit.
pub(super) fn action_names(fit: &BlindFit, labelled: &[String]) -> Vec<String> {
    let taken: BTreeSet<&str> = labelled.iter().map(String::as_str).collect();
    let mut numbers = (1_usize..).map(|number| format!("action-{number}")).filter(|name| !taken.contains(&**name));
    let mut name = |action: &BlindAction| action.name.clone().or_else(|| numbers.next()).unwrap_or_default();
    fit.actions.iter().map(&mut name).collect()
}

/// A model of the fit; `None` if it has no action.
pub(super) fn first_model(
    fit: &BlindFit,
    names: &[String],
    observations: &[Observation],
    basis: Basis,
    scope: Scope,
) -> Option<Model> {
    let actions: Vec<Action> =
        names.iter().zip(&fit.actions).map(|(name, action)| Action::new(name, action.size)).collect();
    if actions.is_empty() {
        return None;
    }
    Some(Model {
        scope,
        overhead: fit.overhead,
        kinds: None,
        inventory: None,
        neighbours: neighbours(fit, observations)?,
        smoothing: SMOOTHING,
        prior: Some(prior(fit, observations)),
        replies: ReplyCountModel::uninformative(),
        reply_bytes: None,
        single_replies: single_replies(fit, observations),
        reply_windows: None,
        noise: None,
        learned: Provenance {
            method: FitMethod::Robust,
            commands: fit.commands as u64,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            basis,
            captures: Vec::new(),
            padding: None,
            certainty: 1.0,
            warnings: Vec::new(),
            found_with: BTreeMap::new(),
            seen: Vec::new(),
        },
        actions,
    })
}

/// What length fields add at each size, with every value of ε.
fn neighbours(fit: &BlindFit, observations: &[Observation]) -> Option<Neighbours> {
    let sizes: BTreeSet<i64> = observations.iter().map(|one| one.size).collect();
    let tuples = sizes.into_iter().take(MAX_SIZES).flat_map(|size| {
        let grown = fit.grown(size);
        fit.epsilons.iter().filter_map(move |(epsilon, probability)| {
            let times = (probability * TIMES).round() as u64;
            (times > 0).then_some(EpsilonTuple { size, epsilon: grown + epsilon, times })
        })
    });
    Neighbours::new(tuples)
}

/// Actions as frequent as in the fit, each independent of the others.
fn prior(fit: &BlindFit, observations: &[Observation]) -> Prior {
    let share = |action: &BlindAction| action.frequency.max(MIN_SHARE);
    let all: f64 = fit.actions.iter().map(share).sum();
    let shares: Vec<f64> = fit.actions.iter().map(|action| share(action) / all).collect();
    let mean_size: f64 = fit.actions.iter().zip(&shares).map(|(action, share)| action.size as f64 * share).sum();
    let of_actions = observations.iter().map(|one| one.size.saturating_sub(fit.overhead).max(0) as f64);
    let mean = of_actions.sum::<f64>() / observations.len().max(1) as f64 / mean_size.max(1.0);
    let decay = 1.0 - 1.0 / mean.clamp(1.0 + MIN_SHARE, MAX_ACTIONS);
    Prior { numbers: Vec::new(), decay, shares, concentration: CONCENTRATION, recurring: Vec::new() }
}

/// One reply of each action that sends one, by its size.
fn single_replies(fit: &BlindFit, observations: &[Observation]) -> Option<SingleReplies> {
    let sizes: BTreeSet<i64> = fit.actions.iter().filter_map(|action| action.reply).collect();
    if sizes.is_empty() {
        return None;
    }
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for size in observations.iter().flat_map(|one| one.replies.iter().flatten()) {
        *times.entry(*size).or_default() += 1;
    }
    let missing = fit.lost.clamp(MIN_SHARE, 0.5);
    let class = |size: &i64| {
        let seen = times.get(size).copied().unwrap_or(0).max(1);
        ReplyClass { missing, unseen: MIN_SHARE, sizes: vec![(*size, seen)] }
    };
    let of_action =
        |action: &BlindAction| sizes.iter().map(|size| u32::from(action.reply == Some(*size))).collect::<Vec<u32>>();
    Some(SingleReplies {
        merged: MIN_SHARE,
        shared: 0,
        foreign: fit.foreign.clamp(MIN_SHARE, 1.0),
        foreign_sizes: Vec::new(),
        per_command: vec![0; sizes.len()],
        per_action: fit.actions.iter().map(of_action).collect(),
        classes: sizes.iter().map(class).collect(),
    })
}
