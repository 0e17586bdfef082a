//! All commands of a scenario listed one by one, and the limit computed from the list.

use std::collections::BTreeMap;

use crate::Scenario;
use crate::scenario::CommandSettings;

/// The distribution of a scenario's random commands, as multisets of actions.
#[derive(Debug)]
pub(super) struct CommandDistribution {
    /// Probabilities by key. The digits of a key in this base are the counts of the actions, the first action's the
    /// lowest.
    pub(super) probabilities: BTreeMap<u128, f64>,
    pub(super) base: u128,
}

impl CommandDistribution {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let (names, most) = (scenario.action_names(), scenario.command.most_actions);
        let base = u128::from(most) + 1;
        let digits: Vec<u128> = (0..names.len() as u32).map(|action| base.pow(action)).collect();
        // By key: the number of actions, and the number of ways to assign them to devices of the kinds so far.
        let mut ways = BTreeMap::from([(0_u128, (0_u32, 1.0_f64))]);
        for device in &scenario.devices {
            let digit = |name: &String| names.iter().position(|known| known == name).and_then(|at| digits.get(at));
            let actions: Vec<u128> = device.actions.iter().filter_map(digit).copied().collect();
            let kind = ways_of_kind(device.count, &actions, most);
            let mut both = BTreeMap::new();
            for (key, (total, weight)) in &ways {
                for (other, (more, factor)) in kind.iter().filter(|(_, (more, _))| total + more <= most) {
                    both.entry(key + other).or_insert((total + more, 0.0)).1 += weight * factor;
                }
            }
            ways = both;
        }
        let devices = scenario.devices.iter().map(|device| device.count).sum();
        let per_way: Vec<f64> = std::iter::once(0.0)
            .chain(number_probabilities(&scenario.command).iter().zip(1..).map(|(p, n)| p / choose(devices, n)))
            .collect();
        let probability = |total: u32| per_way.get(total as usize).copied().unwrap_or(0.0);
        let probabilities = ways.into_iter().map(|(key, (total, weight))| (key, weight * probability(total)));
        Self { probabilities: probabilities.filter(|(_, probability)| *probability > 0.0).collect(), base }
    }
}

/// For each multiset of a kind's actions: its total, and the number of ways to assign it to the devices, where each
/// choice of an action counts as its probability.
fn ways_of_kind(devices: u32, actions: &[u128], most: u32) -> BTreeMap<u128, (u32, f64)> {
    let mut found = BTreeMap::from([(0, (0, 1.0))]);
    for digit in actions {
        let mut more = BTreeMap::new();
        for (key, (total, weight)) in &found {
            // The action goes to devices without an action so far.
            for count in 0..=devices.min(most) - total {
                let weight = weight * choose(devices - total, count) * (actions.len() as f64).powf(-f64::from(count));
                more.insert(key + digit * u128::from(count), (total + count, weight));
            }
        }
        found = more;
    }
    found
}

/// The binomial coefficient.
pub(super) fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|at| f64::from(all.saturating_sub(at)) / f64::from(at + 1)).product()
}

/// The entropy of a distribution, in bits.
pub(super) fn entropy(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.filter(|probability| *probability > 0.0).map(|probability| -probability * probability.log2()).sum()
}

/// The probability of each number of actions of a random command, from one on.
pub(super) fn number_probabilities(command: &CommandSettings) -> Vec<f64> {
    let weights = || (0..command.most_actions).map(|n| command.decay.powf(f64::from(n)));
    weights().map(|weight| weight / weights().sum::<f64>()).collect()
}
