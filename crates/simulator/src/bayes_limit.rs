//! The Bayes limit: how well any method can identify a scenario's random commands, computed from the distributions that
//! they are drawn from.
//!
//! The best answer to a size is the command A with the greatest P(A, size); it is right with probability Σ over sizes
//! of max over A of P(A, size). Framing and authenticated encryption do not matter: they map longer messages to longer
//! ones, so the size on the wire reveals the size of the JSON. Under a block cipher all sizes with the same number of
//! blocks look alike.

mod observed_sizes;

use std::collections::BTreeMap;

use observed_sizes::ObservedSizes;
use thiserror::Error;

use crate::command_generator::{DeviceAction, id_widths, number_probabilities};
use crate::message_encoder::MessageEncoder;
use crate::scenario::{DeviceIds, ReplyMode, Scenario};
use crate::{ScenarioError, SimulateError};

/// The largest number of multisets; as many take some seconds.
const MAX_MULTISETS: f64 = (1_u64 << 24) as f64;

/// The best result that any method can reach on a scenario's random commands from their sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BayesLimit {
    /// The probability that the best first answer is right, from the size of the command alone.
    pub top_1: f64,
    /// The same if the number and sizes of the replies are known too, without any other traffic between them.
    pub top_1_with_replies: f64,
    /// The entropy of a command's actions before anything is observed, in bits.
    pub prior_bits: f64,
    /// The mutual information of actions and size, in bits.
    pub leaked_bits: f64,
    /// The mutual information of actions and size with replies, in bits.
    pub leaked_bits_with_replies: f64,
}

/// Why a limit cannot be computed.
#[derive(Debug, Error)]
pub enum BayesLimitError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Sizes depend on the device.
    #[error("the limit can be computed only if `command.device-ids` is \"fixed\"")]
    DeviceIds,
    /// There are too many different commands.
    #[error("the limit cannot be computed: there are too many different commands; lower `command.most-actions`")]
    TooMany,
    /// A message does not fit its framing.
    #[error(transparent)]
    Message(#[from] SimulateError),
}

/// Computes the limit of a scenario, exact up to rounding. Timestamps are assumed to have as many digits as the
/// scenario's epoch.
///
/// # Errors
/// [`BayesLimitError`], which says what to change.
pub fn bayes_limit(scenario: &Scenario) -> Result<BayesLimit, BayesLimitError> {
    scenario.check()?;
    if scenario.command.device_ids != DeviceIds::Fixed {
        return Err(BayesLimitError::DeviceIds);
    }
    let commands = CommandDistribution::new(scenario)?;
    let prior_bits = entropy(commands.probabilities.values().copied());
    let groups = commands.groups(&action_sizes(scenario));
    let without_replies = Observations::new(&groups, scenario, ReplyMode::None)?;
    let with_replies = Observations::new(&groups, scenario, scenario.replies.mode)?;
    Ok(BayesLimit {
        top_1: without_replies.top_1(),
        top_1_with_replies: with_replies.top_1(),
        prior_bits,
        leaked_bits: without_replies.leaked_bits(),
        leaked_bits_with_replies: with_replies.leaked_bits(),
    })
}

/// The bytes that each further action adds to a message.
fn action_sizes(scenario: &Scenario) -> Vec<usize> {
    let encoder = MessageEncoder::new(scenario);
    let length = |actions: &[DeviceAction]| encoder.command(1, 0, actions).len();
    let added = |action| {
        let action = DeviceAction { device: 0, action };
        length(&[action, action]) - length(&[action])
    };
    (0..scenario.action_names().len()).map(added).collect()
}

/// The distribution of a scenario's random commands, as multisets of actions.
#[derive(Debug)]
struct CommandDistribution {
    /// Probabilities by key. The digits of a key in this base are the counts of the actions, the first action's the
    /// lowest.
    probabilities: BTreeMap<u128, f64>,
    base: u128,
}

impl CommandDistribution {
    fn new(scenario: &Scenario) -> Result<Self, BayesLimitError> {
        let (names, most) = (scenario.action_names(), scenario.command.most_actions);
        let base = u128::from(most) + 1;
        let digits: Option<Vec<u128>> = (0..names.len() as u32).map(|action| base.checked_pow(action)).collect();
        let digits = digits.filter(|digits| digits.last().is_none_or(|last| last.checked_mul(base).is_some()));
        let digits = digits.ok_or(BayesLimitError::TooMany)?;
        let pairs: f64 =
            scenario.devices.iter().map(|device| multisets(device.actions.len(), device.count.min(most))).product();
        if pairs > MAX_MULTISETS {
            return Err(BayesLimitError::TooMany);
        }
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
        if !per_way.iter().skip(1).all(|share| share.is_normal()) {
            return Err(BayesLimitError::TooMany);
        }
        let probability = |total: u32| per_way.get(total as usize).copied().unwrap_or(0.0);
        let probabilities = ways.into_iter().map(|(key, (total, weight))| (key, weight * probability(total)));
        Ok(Self { probabilities: probabilities.filter(|(_, probability)| *probability > 0.0).collect(), base })
    }

    /// Groups the commands that cannot be distinguished: those with the same size and number of actions.
    fn groups(&self, sizes: &[usize]) -> BTreeMap<(usize, u32), Observation> {
        let mut groups: BTreeMap<_, Observation> = BTreeMap::new();
        for (key, probability) in &self.probabilities {
            let (mut rest, mut size, mut total) = (*key, 0, 0);
            for added in sizes {
                let count = (rest % self.base) as u32;
                rest /= self.base;
                size += added * count as usize;
                total += count;
            }
            groups.entry((size, total)).or_default().add(*probability, *probability);
        }
        groups
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

/// The number of multisets of at most `most` out of `actions` actions.
fn multisets(actions: usize, most: u32) -> f64 {
    (1..=actions).map(|at| f64::from(most) / at as f64 + 1.0).product()
}

/// The binomial coefficient.
fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|at| f64::from(all.saturating_sub(at)) / f64::from(at + 1)).product()
}

/// The commands that look alike.
#[derive(Debug, Clone, Copy, Default)]
struct Observation {
    /// Their probability.
    mass: f64,
    /// The joint probability of the observation and its most probable command.
    best: f64,
}

impl Observation {
    fn add(&mut self, mass: f64, best: f64) {
        self.mass += mass;
        self.best = self.best.max(best);
    }
}

/// The distribution of what can be observed of a command: its size and its replies.
#[derive(Debug)]
struct Observations {
    by_sizes: BTreeMap<(usize, usize), Observation>,
    /// H(observation | actions), in bits.
    noise_bits: f64,
}

impl Observations {
    fn new(
        groups: &BTreeMap<(usize, u32), Observation>,
        scenario: &Scenario,
        mode: ReplyMode,
    ) -> Result<Self, SimulateError> {
        let mut observed = ObservedSizes::new(scenario);
        let widths = id_widths(scenario.command.message_id);
        let mut by_sizes: BTreeMap<_, Observation> = BTreeMap::new();
        let mut noise_bits = 0.0;
        for ((size, total), group) in groups {
            // Several widths of the message id may look alike.
            let mut chances: BTreeMap<_, f64> = BTreeMap::new();
            for (width, probability) in &widths {
                let command = observed.command(*size, *width)?;
                let repeated = observed.reply(*width)?;
                for (evidence, share) in evidence(mode, scenario.replies.loss, *total, repeated) {
                    *chances.entry((command, evidence)).or_default() += probability * share;
                }
            }
            noise_bits += group.mass * entropy(chances.values().copied());
            for (key, chance) in chances {
                by_sizes.entry(key).or_default().add(group.mass * chance, group.best * chance);
            }
        }
        Ok(Self { by_sizes, noise_bits })
    }

    fn top_1(&self) -> f64 {
        self.by_sizes.values().map(|observation| observation.best).sum()
    }

    /// I(actions; observation) = H(observation) − H(observation | actions).
    fn leaked_bits(&self) -> f64 {
        entropy(self.by_sizes.values().map(|observation| observation.mass)) - self.noise_bits
    }
}

/// What replies reveal, with probabilities. If each action has a reply, that is the number of replies, since coalescing
/// depends on nothing else. If the whole command has one, it is its length, `repeated`, or 0 if it is lost.
fn evidence(mode: ReplyMode, loss: f64, actions: u32, repeated: usize) -> Vec<(usize, f64)> {
    match mode {
        ReplyMode::None => vec![(0, 1.0)],
        ReplyMode::PerCommand => vec![(repeated, 1.0 - loss), (0, loss)],
        ReplyMode::PerAction => {
            let chance =
                |sent: u32| choose(actions, sent) * (1.0 - loss).powf(sent.into()) * loss.powf((actions - sent).into());
            (0..=actions).map(|sent| (sent as usize, chance(sent))).collect()
        }
    }
}

/// The entropy of a distribution, in bits.
fn entropy(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.filter(|probability| *probability > 0.0).map(|probability| -probability * probability.log2()).sum()
}

#[cfg(test)]
mod tests;
