//! How well any method can do: the best possible answers to a scenario's random commands, computed from what it draws
//! them from.
//!
//! Who knows these distributions and sees a message's size answers best with the command A whose P(A, size) is greatest,
//! and is right with probability Σ over sizes of max over A of P(A, size). Neither framing nor an authenticated cipher
//! matters to that: a longer message is then longer on the wire, so the size on the wire tells the size of the JSON, and
//! nothing else. Under a block cipher all sizes that take as many blocks look alike.

mod observed_sizes;

use std::collections::BTreeMap;

use observed_sizes::ObservedSizes;
use thiserror::Error;

use crate::message::MessageEncoder;
use crate::plan::{DeviceAction, id_widths, numbers_of_actions};
use crate::scenario::{DeviceIds, ReplyMode, Scenario};
use crate::{ScenarioError, SimulateError};

/// The most pairs of multisets that are looked at: some seconds.
const MOST_PAIRS: f64 = (1_u64 << 24) as f64;

/// The best any method can do on a scenario's random commands, where only sizes tell commands apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BayesLimit {
    /// The greatest probability of a right first answer, by the size of the command alone.
    pub top_1: f64,
    /// The same for who also sees how many replies follow and how long they are, each apart from all other traffic.
    pub top_1_with_replies: f64,
    /// The entropy of a command's actions before anything is seen, in bits.
    pub prior_bits: f64,
    /// What the size says of them: their mutual information, in bits.
    pub leaked_bits: f64,
    /// What size and replies say of them, in bits.
    pub leaked_bits_with_replies: f64,
}

/// Why a limit cannot be computed.
#[derive(Debug, Error)]
pub enum BayesLimitError {
    /// The scenario is not possible.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Sizes depend on which device is told.
    #[error("the limit is known only where `command.device-ids` is \"fixed\"")]
    DeviceIds,
    /// There are too many different commands.
    #[error("the limit cannot be computed: there are too many different commands; lower `command.most-actions`")]
    TooMany,
    /// A message that cannot be written.
    #[error(transparent)]
    Message(#[from] SimulateError),
}

/// Computes the limit of a scenario, exactly but for rounding.
///
/// Times are taken to have as many digits as the scenario's epoch has.
///
/// # Errors
/// [`BayesLimitError`]; it says what to change.
pub fn bayes_limit(scenario: &Scenario) -> Result<BayesLimit, BayesLimitError> {
    scenario.check()?;
    if scenario.command.device_ids != DeviceIds::Fixed {
        return Err(BayesLimitError::DeviceIds);
    }
    let commands = CommandDistribution::new(scenario)?;
    let prior_bits = entropy(commands.probabilities.values().copied());
    let groups = commands.groups(&sizes(scenario)?);
    let silent = Observations::new(&groups, scenario, ReplyMode::None)?;
    let heard = Observations::new(&groups, scenario, scenario.replies.mode)?;
    Ok(BayesLimit {
        top_1: silent.top_1(),
        top_1_with_replies: heard.top_1(),
        prior_bits,
        leaked_bits: silent.leaked_bits(),
        leaked_bits_with_replies: heard.leaked_bits(),
    })
}

/// What each action adds to a message that has others, in bytes: as the writer writes it.
fn sizes(scenario: &Scenario) -> Result<Vec<usize>, SimulateError> {
    let writer = MessageEncoder::new(scenario);
    let time_ns = scenario.epoch.as_second().saturating_mul(1_000_000_000);
    let length = |orders: &[DeviceAction]| writer.command(1, time_ns, orders).map(|message| message.len());
    let added = |action| {
        let order = DeviceAction { device: 0, action };
        Ok(length(&[order, order])? - length(&[order])?)
    };
    (0..scenario.action_names().len()).map(added).collect()
}

/// All random commands of a scenario, by how often each action occurs in them.
#[derive(Debug)]
struct CommandDistribution {
    /// Probabilities by key: the counts are its digits in this base, the first action's the lowest.
    probabilities: BTreeMap<u128, f64>,
    base: u128,
}

impl CommandDistribution {
    fn new(scenario: &Scenario) -> Result<Self, BayesLimitError> {
        let (names, most) = (scenario.action_names(), scenario.command.most_actions);
        let base = u128::from(most) + 1;
        let places: Option<Vec<u128>> = (0..names.len() as u32).map(|action| base.checked_pow(action)).collect();
        let places = places.filter(|places| places.last().is_none_or(|last| last.checked_mul(base).is_some()));
        let places = places.ok_or(BayesLimitError::TooMany)?;
        let pairs: f64 =
            scenario.devices.iter().map(|device| multisets(device.actions.len(), device.count.min(most))).product();
        if pairs > MOST_PAIRS {
            return Err(BayesLimitError::TooMany);
        }
        // Of n devices chosen alike, so many choices tell this to the devices of the kinds so far.
        let mut ways = BTreeMap::from([(0_u128, (0_u32, 1.0_f64))]);
        for device in &scenario.devices {
            let place = |name: &String| names.iter().position(|known| known == name).and_then(|at| places.get(at));
            let actions: Vec<u128> = device.actions.iter().filter_map(place).copied().collect();
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
            .chain(numbers_of_actions(&scenario.command).iter().zip(1..).map(|(p, n)| p / choose(devices, n)))
            .collect();
        if !per_way.iter().skip(1).all(|share| share.is_normal()) {
            return Err(BayesLimitError::TooMany);
        }
        let probability = |total: u32| per_way.get(total as usize).copied().unwrap_or(0.0);
        let probabilities = ways.into_iter().map(|(key, (total, weight))| (key, weight * probability(total)));
        Ok(Self { probabilities: probabilities.filter(|(_, probability)| *probability > 0.0).collect(), base })
    }

    /// Puts commands together that nothing tells apart: those of the same size and number of actions.
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

/// In how many ways each multiset of a kind's actions can be told to its devices, each choice of an action counted as its
/// probability; with the multiset's total.
fn ways_of_kind(devices: u32, actions: &[u128], most: u32) -> BTreeMap<u128, (u32, f64)> {
    let mut found = BTreeMap::from([(0, (0, 1.0))]);
    for place in actions {
        let mut more = BTreeMap::new();
        for (key, (total, weight)) in &found {
            // Devices that were told nothing so far are told this action.
            for count in 0..=devices.min(most) - total {
                let weight = weight * choose(devices - total, count) * (actions.len() as f64).powf(-f64::from(count));
                more.insert(key + place * u128::from(count), (total + count, weight));
            }
        }
        found = more;
    }
    found
}

/// How many multisets of up to `most` of so many actions there are.
fn multisets(actions: usize, most: u32) -> f64 {
    (1..=actions).map(|at| f64::from(most) / at as f64 + 1.0).product()
}

/// The binomial coefficient.
fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|at| f64::from(all.saturating_sub(at)) / f64::from(at + 1)).product()
}

/// What is seen alike.
#[derive(Debug, Clone, Copy, Default)]
struct Observation {
    /// How probable it is.
    mass: f64,
    /// How probable it is together with the command that it most probably comes from.
    best: f64,
}

impl Observation {
    fn add(&mut self, mass: f64, best: f64) {
        self.mass += mass;
        self.best = self.best.max(best);
    }
}

/// Everything that can be seen of a command: its size and what its replies tell.
#[derive(Debug)]
struct Observations {
    seen: BTreeMap<(usize, usize), Observation>,
    /// How many bits of what is seen do not come from the actions.
    noise_bits: f64,
}

impl Observations {
    fn new(
        groups: &BTreeMap<(usize, u32), Observation>,
        scenario: &Scenario,
        mode: ReplyMode,
    ) -> Result<Self, SimulateError> {
        let mut observed = ObservedSizes::new(scenario)?;
        let widths = id_widths(scenario.command.message_id);
        let mut seen: BTreeMap<_, Observation> = BTreeMap::new();
        let mut noise_bits = 0.0;
        for ((size, total), group) in groups {
            // What is seen alike of this group is one sight: numbers of two widths may be.
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
                seen.entry(key).or_default().add(group.mass * chance, group.best * chance);
            }
        }
        Ok(Self { seen, noise_bits })
    }

    fn top_1(&self) -> f64 {
        self.seen.values().map(|sight| sight.best).sum()
    }

    /// I(actions; seen) = H(seen) − H(seen | actions).
    fn leaked_bits(&self) -> f64 {
        entropy(self.seen.values().map(|sight| sight.mass)) - self.noise_bits
    }
}

/// What replies tell, each with its probability. Of replies to the actions that is how many come: how they share records
/// depends on nothing else. Of the reply to a whole command it is how long that is, which `repeated` says; 0 where it is
/// lost.
fn evidence(mode: ReplyMode, loss: f64, actions: u32, repeated: usize) -> Vec<(usize, f64)> {
    match mode {
        ReplyMode::None => vec![(0, 1.0)],
        ReplyMode::PerCommand => vec![(repeated, 1.0 - loss), (0, loss)],
        ReplyMode::PerAction => {
            let chance =
                |come: u32| choose(actions, come) * (1.0 - loss).powf(come.into()) * loss.powf((actions - come).into());
            (0..=actions).map(|come| (come as usize, chance(come))).collect()
        }
    }
}

/// In bits.
fn entropy(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.filter(|probability| *probability > 0.0).map(|probability| -probability * probability.log2()).sum()
}

#[cfg(test)]
mod tests;
