//! How probable it is that a command has so many of the actions that the same kinds of device have.

use std::collections::BTreeMap;

use super::action_traits::ScenarioTraits;
use super::counting::{CountKey, choose, factorial};
use super::limit_error::BayesLimitError;
use crate::command_generator::number_probabilities;
use crate::scenario::{DeviceKind, Scenario};

/// The most combinations of totals.
const MAX_TOTALS: usize = 1 << 20;

/// The weight of each combination of totals.
#[derive(Debug)]
pub(super) struct TotalWeights {
    pub(super) key: CountKey,
    /// By totals t: the probability of one sequence of such actions, times Π t!.
    pub(super) weights: BTreeMap<u128, f64>,
}

impl TotalWeights {
    pub(super) fn new(scenario: &Scenario, traits: &ScenarioTraits) -> Result<Self, BayesLimitError> {
        let key = CountKey::new(traits.kind_sets.len(), scenario.command.most_actions);
        let key = key.ok_or(BayesLimitError::TooMany)?;
        let weights = probabilities_of_totals(scenario, traits, &key)?;
        Ok(Self { key, weights })
    }

    /// The weights of the totals so far if for each total so many actions are still to be added: the sum over all that
    /// these may contribute.
    pub(super) fn before(&self, left: &[u32]) -> BTreeMap<u128, f64> {
        let mut weights = self.weights.clone();
        for (at, actions) in left.iter().enumerate().filter(|(_, actions)| **actions > 0) {
            let unit = self.key.unit(at);
            let sum = |totals: &u128| {
                // Σ Π 1 / c! over the ways to add up to `more` is actions^more / more!.
                let terms = (0_u32..).map_while(|more| {
                    let weight = weights.get(&(totals + unit * u128::from(more)))?;
                    Some(weight * f64::from(*actions).powf(f64::from(more)) / factorial(more))
                });
                terms.sum::<f64>()
            };
            weights = weights.keys().map(|totals| (*totals, sum(totals))).collect();
        }
        weights
    }
}

/// For the totals t of actions that the same kinds have: the probability of one sequence of such actions, times Π t!.
fn probabilities_of_totals(
    scenario: &Scenario,
    traits: &ScenarioTraits,
    key: &CountKey,
) -> Result<BTreeMap<u128, f64>, BayesLimitError> {
    let most = scenario.command.most_actions;
    // The number of actions, and the ways to assign them to devices of the kinds so far.
    let mut ways = BTreeMap::from([(0_u128, (0_u32, 1.0_f64))]);
    for (index, device) in scenario.devices.iter().enumerate() {
        let own = (0..).zip(&traits.kind_sets).filter(|(_, kinds)| kinds.contains(&index));
        let own: Vec<u128> = own.map(|(at, _)| key.unit(at)).collect();
        let kind = ways_of_kind(device, &own, most);
        let mut both = BTreeMap::new();
        for (totals, (total, weight)) in &ways {
            for (other, (more, factor)) in kind.iter().filter(|(_, (more, _))| total + more <= most) {
                both.entry(totals + other).or_insert((total + more, 0.0)).1 += weight * factor;
            }
        }
        if both.len() > MAX_TOTALS {
            return Err(BayesLimitError::TooMany);
        }
        ways = both;
    }
    let devices = scenario.device_count();
    let per_way = number_probabilities(&scenario.command).into_iter().zip(1..).map(|(p, n)| p / choose(devices, n));
    let per_way: Vec<f64> = std::iter::once(0.0).chain(per_way).collect();
    let probability = |(totals, (total, weight)): (u128, (u32, f64))| {
        let orders: f64 = key.counts(totals).map(factorial).product();
        (totals, per_way.get(total as usize).copied().unwrap_or(0.0) * weight * orders)
    };
    let probabilities: BTreeMap<u128, f64> = ways.into_iter().map(probability).collect();
    // Beyond the range of floating point numbers nothing would be left of some commands.
    let is_exact = per_way.iter().skip(1).all(|share| share.is_normal());
    if is_exact && probabilities.values().all(|probability| probability.is_finite()) {
        Ok(probabilities)
    } else {
        Err(BayesLimitError::TooMany)
    }
}

/// For each choice of totals: their sum, and the number of ways to assign it to the devices of a kind, where each
/// choice of an action counts as its probability.
fn ways_of_kind(kind: &DeviceKind, totals: &[u128], most: u32) -> BTreeMap<u128, (u32, f64)> {
    let share = 1.0 / kind.actions.len().max(1) as f64;
    let mut found = BTreeMap::from([(0, (0, 1.0))]);
    for unit in totals {
        let mut more = BTreeMap::new();
        for (key, (total, weight)) in &found {
            // The actions go to devices without an action so far.
            for count in 0..=kind.count.min(most) - total {
                let weight = weight * choose(kind.count - total, count) * share.powf(f64::from(count));
                more.insert(key + unit * u128::from(count), (total + count, weight));
            }
        }
        found = more;
    }
    found
}
