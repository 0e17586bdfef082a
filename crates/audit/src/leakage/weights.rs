//! The prior probability of commands as a product: P(A) = g(t) · Π fₐ(cₐ), for the counts c of the actions and the totals
//! t of their classes (actions that the same kinds of device have).
//!
//! | prior | fₐ(c) | g(t) |
//! |---|---|---|
//! | learned | Pólya's urn, as [`Prior::ln_next`] | P(n) · share of free devices / sum over all commands of n actions |
//! | devices | 1 / c! | P(n) / C(devices, n) · ways to give the actions to devices · Π t! |
//! | flat | 1 | 1 / number of commands |

use std::collections::BTreeMap;

use sizeleak_model::{Condition, Limits, Model, Prior, choose};

use crate::leakage::device_ways::{ActionWeight, DeviceWays};
use crate::leakage::error::LeakageError;
use crate::leakage::premises::{Premises, PriorKind};

/// The most combinations of totals.
const MAX_TOTALS: usize = 1 << 18;

/// The factors of the probability of commands.
#[derive(Debug, Clone)]
pub(crate) struct CommandWeights {
    /// fₐ(c) by action and count.
    pub(crate) of_action: Vec<Vec<f64>>,
    /// g(t), where it is above 0.
    pub(crate) of_totals: BTreeMap<Vec<u32>, f64>,
}

impl CommandWeights {
    /// The weights of the commands of a model that `limits` allow; these count actions ([`Limits::counting`]).
    pub(crate) fn new(model: &Model, limits: &Limits, premises: &Premises) -> Result<Self, LeakageError> {
        let most = limits.max_actions();
        let totals = all_totals(limits)?;
        let of_action: Vec<Vec<f64>> = (0..model.actions.len())
            .map(|action| {
                let most_of_action = limits.max_of_class(limits.class_of(action)).min(most);
                factors_of(model.prior.as_ref(), premises.prior, action, most_of_action)
            })
            .collect::<Option<_>>()
            .ok_or(LeakageError::NoPrior)?;
        let of_class = class_sums(&of_action, limits);
        // All commands with these totals, without g.
        let all_of = |totals: &[u32]| -> f64 {
            let of_class = of_class.iter().zip(totals);
            of_class.map(|(sums, total)| sums.get(*total as usize).copied().unwrap_or(0.0)).product()
        };
        let unnormalised: Vec<(Vec<u32>, f64)> = match premises.prior {
            PriorKind::Learned => {
                let order = limits.class_order();
                totals
                    .into_iter()
                    .map(|totals| {
                        let free = share_of_free(limits, &order, &totals);
                        (totals, free)
                    })
                    .collect()
            }
            PriorKind::Flat => totals.into_iter().map(|totals| (totals, 1.0)).collect(),
            PriorKind::Devices => {
                let inventory = model.inventory.as_ref().ok_or(LeakageError::NoInventory("devices"))?;
                let ways = DeviceWays::new(model, limits, &ActionWeight::Share)?;
                let ways = ways.ok_or(LeakageError::NoInventory("devices"))?;
                let devices = inventory.devices.iter().fold(0_u32, |sum, kind| sum.saturating_add(kind.count));
                totals
                    .into_iter()
                    .map(|totals| {
                        let orders: f64 = totals.iter().map(|total| factorial(*total)).product();
                        let weight = ways.all(&totals) * orders / choose(devices, totals.iter().sum());
                        (totals, weight)
                    })
                    .collect()
            }
        };
        let of_number = if premises.prior == PriorKind::Flat { None } else { Some(numbers(model, premises, most)?) };
        let mut by_number = vec![0.0; most as usize + 1];
        for (totals, weight) in &unnormalised {
            if let Some(sum) = by_number.get_mut(totals.iter().sum::<u32>() as usize) {
                *sum += weight * all_of(totals);
            }
        }
        let scales = scales(&by_number, of_number.as_deref());
        let mut of_totals = BTreeMap::new();
        for (totals, weight) in unnormalised {
            let number = totals.iter().sum::<u32>() as usize;
            let of_command = weight * scales.get(number).copied().unwrap_or(0.0);
            let has_no_share = of_number.as_ref().is_some_and(|shares| shares.get(number) == Some(&0.0));
            if of_command.is_normal() {
                of_totals.insert(totals, of_command);
            } else if number > 0 && weight != 0.0 && !has_no_share {
                return Err(LeakageError::OutOfRange);
            }
        }
        Ok(Self { of_action, of_totals })
    }
}

/// What to multiply the weights of commands of each number of actions by, so that these have the probability
/// `of_number`, or without it all commands have the sum 1. There is no command without actions, and what the limits do
/// not allow takes no share.
fn scales(by_number: &[f64], of_number: Option<&[f64]>) -> Vec<f64> {
    let possible = |number: usize| number > 0 && by_number.get(number).is_some_and(|sum| *sum > 0.0);
    match of_number {
        None => {
            let all: f64 = by_number.iter().skip(1).sum();
            (0..by_number.len()).map(|number| if number > 0 { 1.0 / all } else { 0.0 }).collect()
        }
        Some(of_number) => {
            let all: f64 = of_number.iter().enumerate().filter(|(number, _)| possible(*number)).map(|(_, p)| p).sum();
            let scale = |(number, (sum, probability)): (usize, (&f64, &f64))| {
                if possible(number) { probability / all / sum } else { 0.0 }
            };
            by_number.iter().zip(of_number).enumerate().map(scale).collect()
        }
    }
}

/// The probability of each number of actions up to `most`.
fn numbers(model: &Model, premises: &Premises, most: u32) -> Result<Vec<f64>, LeakageError> {
    let logarithm = |number: u32| match (premises.decay, &model.prior) {
        (Some(decay), _) => Ok(if number > 0 { f64::from(number) * decay.ln() } else { f64::NEG_INFINITY }),
        (None, Some(prior)) => Ok(prior.ln_number(number)),
        (None, None) => Err(LeakageError::NoNumbers),
    };
    let probability = |logarithm: f64| match logarithm.exp() {
        probability if probability.is_normal() || logarithm == f64::NEG_INFINITY => Ok(probability),
        _ => Err(LeakageError::OutOfRange),
    };
    (0..=most).map(|number| logarithm(number).and_then(probability)).collect()
}

/// The probability of more than `most` actions, where nothing limits their number.
pub(crate) fn more_actions(model: &Model, premises: &Premises, most: u32) -> f64 {
    match (premises.prior, premises.decay, &model.prior) {
        (PriorKind::Flat, ..) | (_, None, None) => 1.0,
        (_, Some(decay), _) => decay.powf(f64::from(most)),
        (_, None, Some(prior)) => (1.0 - (1..=most).map(|number| prior.ln_number(number).exp()).sum::<f64>()).max(0.0),
    }
}

/// fₐ(c) for c up to `most`; `None` if it is not learned.
fn factors_of(prior: Option<&Prior>, kind: PriorKind, action: usize, most: u32) -> Option<Vec<f64>> {
    Some(match kind {
        PriorKind::Flat => vec![1.0; most as usize + 1],
        PriorKind::Devices => (0..=most).map(|count| factorial(count).recip()).collect(),
        PriorKind::Learned => {
            let prior = prior?;
            let logarithm = |ln: &mut f64, nth: u32| {
                if nth > 0 {
                    *ln += prior.ln_next(action, nth);
                }
                Some(ln.exp())
            };
            (0..=most).scan(0.0, logarithm).collect()
        }
    })
}

/// All totals of classes that the limits allow.
fn all_totals(limits: &Limits) -> Result<Vec<Vec<u32>>, LeakageError> {
    let mut found = vec![vec![0; limits.classes()]];
    for class in 0..limits.classes() {
        let mut more = Vec::new();
        for totals in found {
            let mut totals: Vec<u32> = totals;
            while limits.admits_totals(&totals) {
                more.push(totals.clone());
                let Some(total) = totals.get_mut(class) else { break };
                *total += 1;
            }
            if more.len() > MAX_TOTALS {
                return Err(LeakageError::TooMany);
            }
        }
        found = more;
    }
    Ok(found)
}

/// For each class, the sum of Π fₐ(cₐ) over all multisets of its actions, by how many they are.
fn class_sums(of_action: &[Vec<f64>], limits: &Limits) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![1.0]; limits.classes()];
    for (action, factors) in of_action.iter().enumerate() {
        let class = limits.class_of(action);
        let most = limits.max_of_class(class).min(limits.max_actions()) as usize;
        let Some(sums) = sums.get_mut(class) else { continue };
        let mut next = vec![0.0; most + 1];
        for (before, sum) in sums.iter().enumerate() {
            for (next, factor) in next.iter_mut().skip(before).zip(factors) {
                *next += sum * factor;
            }
        }
        *sums = next;
    }
    sums
}

/// The share of devices that are free, for all actions one after the other (`docs/inference.md`), given the order in
/// which classes take devices.
fn share_of_free(limits: &Limits, order: &[usize], totals: &[u32]) -> f64 {
    let mut used = vec![0_u32; totals.len()];
    let mut share = 1.0;
    for class in order.iter().copied() {
        let of_class = || limits.conditions().iter().filter(move |condition| condition.holds_class(class));
        let devices = of_class().map(Condition::devices).min().unwrap_or(u32::MAX);
        for _ in 0..totals.get(class).copied().unwrap_or(0) {
            let sum = |condition: &Condition| {
                let held = used.iter().enumerate().filter(|(class, _)| condition.holds_class(*class));
                held.fold(0_u32, |sum, (_, used)| sum.saturating_add(*used))
            };
            let counted = of_class().filter(|condition| condition.devices() < u32::MAX);
            let free = counted.map(|condition| condition.devices().saturating_sub(sum(condition))).min();
            if let Some(free) = free.filter(|_| devices < u32::MAX) {
                share *= f64::from(free) / f64::from(devices);
            }
            if let Some(used) = used.get_mut(class) {
                *used += 1;
            }
        }
    }
    share
}

/// n!
fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}
