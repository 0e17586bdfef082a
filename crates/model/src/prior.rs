//! The prior P(A): how probable a command's actions are before its size is seen, learned from labels.
//!
//! P(A) = P(n) · P(A | n), n being the number of actions. P(n) is a table, and beyond it geometric. Given n, actions are
//! drawn one after another from a distribution that is itself uncertain (Pólya's urn), so that P(A | n) is proportional to a
//! product of one factor for each action,
//!
//! ```text
//! Γ(c·wₐ + nbₐ) / (Γ(c·wₐ) · nbₐ!)
//! ```
//!
//! with the actions' shares wₐ and the concentration c. A large c stands for devices that are told things independently
//! of each other, a small one for commands that tell many devices the same. How devices run out is the inventory's, and
//! comes in where the product is taken (the decomposer).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Action, Inventory, LabelledCommand, Limits};

/// Numbers of actions beyond this are not listed.
const MOST_LISTED: usize = 256;

/// The figures have six decimals, and none is smaller than that shows.
const LEAST: f64 = 1e-6;

/// The strengths of smoothing that are tried, in labelled commands (or actions).
const STRENGTHS: [f64; 13] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];

/// P(A) in plain figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prior {
    /// The shares of commands with 1, 2, 3… actions; what they leave to 1 is that of commands with more.
    pub numbers: Vec<f64>,
    /// How likely n + 1 actions are compared with n, beyond those listed.
    pub decay: f64,
    /// The share of each action among all actions, in the order of the model's; they sum to 1.
    pub shares: Vec<f64>,
    /// How little the shares vary from command to command, in actions.
    pub concentration: f64,
}

impl Prior {
    /// Learns from labelled commands; `actions` are in the order of their counts. Whole rounds of the paper's experiments
    /// (each action alone, and alone on two devices) are made to learn sizes and say nothing of habits: they are left out, and
    /// so is a further one that was broken off where nothing else was labelled.
    /// Numbers of actions are smoothed towards a geometric distribution, shares towards those of an inventory whose devices
    /// are all told each of their actions equally often, each as strongly as makes the labels likeliest. `None` where there
    /// is nothing to learn from.
    pub fn learn(
        commands: &[LabelledCommand],
        actions: &[Action],
        inventory: Option<&Inventory>,
        limits: &Limits,
    ) -> Option<Self> {
        let habits = without_experiments(commands, limits, actions.len());
        if habits.is_empty() {
            return None;
        }
        let (numbers, decay) = numbers(&habits, limits.max_actions());
        let shares = shares(&habits, &base_shares(actions, inventory));
        let concentration = concentration(&habits, &shares);
        Some(Self { numbers, decay, shares, concentration })
    }

    /// ln P(n actions); −∞ for none.
    pub fn ln_number(&self, actions: u32) -> f64 {
        let Some(place) = actions.checked_sub(1) else { return f64::NEG_INFINITY };
        if let Some(share) = self.numbers.get(place as usize) {
            return share.ln();
        }
        let rest = (1.0 - self.numbers.iter().sum::<f64>()).max(LEAST);
        rest.ln() + (1.0 - self.decay).ln() + (f64::from(place) - self.numbers.len() as f64) * self.decay.ln()
    }

    /// The logarithm of the factor by which the `nth` of an action (from 1) makes a command's actions likelier than `nth`
    /// − 1 of it. The sum of the first nb of them is that of the action's whole factor.
    pub fn ln_next(&self, action: usize, nth: u32) -> f64 {
        let share = self.shares.get(action).copied().unwrap_or(LEAST);
        let before = f64::from(nth.saturating_sub(1));
        // Divided by the concentration, so that the factors of independent actions are their shares.
        ((share + before / self.concentration) / (before + 1.0)).ln()
    }

    /// Says what is wrong with figures that are no prior of so many actions.
    pub(crate) fn fault(&self, actions: usize) -> Option<&'static str> {
        let is_share = |share: &f64| (LEAST / 2.0..=1.0).contains(share);
        let sum = |shares: &[f64]| shares.iter().sum::<f64>();
        if self.numbers.len() > MOST_LISTED || !self.numbers.iter().all(is_share) || sum(&self.numbers) > 1.001 {
            return Some("`numbers` of [prior] are no shares of commands");
        }
        if self.shares.len() != actions || !self.shares.iter().all(is_share) {
            return Some("`shares` of [prior] must be a share for each [[action]], above 0");
        }
        if !(LEAST..1.0).contains(&self.decay) {
            return Some("`decay` of [prior] must be above 0 and below 1");
        }
        if !(LEAST..=1e9).contains(&self.concentration) {
            return Some("`concentration` of [prior] must be above 0 and at most 1e9");
        }
        None
    }
}

/// The commands that are not part of a round of experiments: of a whole one, or of a further one that was broken
/// off, with nothing else beside.
fn without_experiments<'a>(
    commands: &'a [LabelledCommand],
    limits: &Limits,
    actions: usize,
) -> Vec<&'a LabelledCommand> {
    let experiment = |command: &LabelledCommand| {
        let mut occurring = command.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        match (occurring.next(), occurring.next()) {
            (Some((action, count @ 1..=2)), None) => Some((action, *count)),
            _ => None,
        }
    };
    let mut times: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for found in commands.iter().filter_map(experiment) {
        *times.entry(found).or_default() += 1;
    }
    // An action that one device alone can take has no experiment on two.
    let of_round = |action: usize| (1..=2.min(limits.max_of_class(limits.class_of(action)))).map(move |n| (action, n));
    let round = || (0..actions).flat_map(of_round);
    let rounds = round().map(|wanted| times.get(&wanted).copied().unwrap_or(0)).min().unwrap_or(0);
    let are_rounds = commands.iter().all(|command| experiment(command).is_some() || total(command) == 0);
    let broken_off = rounds > 0 && are_rounds && times.values().all(|times| *times <= rounds + 1);
    let rounds = rounds + usize::from(broken_off);
    let mut left: BTreeMap<(usize, u32), usize> = round().map(|wanted| (wanted, rounds)).collect();
    let is_habit = |command: &&LabelledCommand| {
        let Some(left) = experiment(command).and_then(|found| left.get_mut(&found)).filter(|left| **left > 0) else {
            return command.counts.iter().any(|count| *count > 0);
        };
        *left -= 1;
        false
    };
    commands.iter().filter(is_habit).collect()
}

fn total(command: &LabelledCommand) -> u64 {
    command.counts.iter().map(|count| u64::from(*count)).sum()
}

/// The shares of numbers of actions and their decay.
fn numbers(commands: &[&LabelledCommand], max_actions: u32) -> (Vec<f64>, f64) {
    let most_seen = commands.iter().map(|command| total(command)).max().unwrap_or(1);
    let most = u64::from(max_actions).max(most_seen);
    let listed = most_seen.min(MOST_LISTED as u64) as usize;
    let mut times = vec![0.0; listed];
    for command in commands {
        if let Some(times) = (total(command) as usize).checked_sub(1).and_then(|at| times.get_mut(at)) {
            *times += 1.0;
        }
    }
    let decay = decay(commands, most);
    let whole = 1.0 - decay.powf(most as f64);
    let base: Vec<f64> = (0..listed).map(|at| (1.0 - decay) * decay.powf(at as f64) / whole).collect();
    let smoothed = smoothed(&times, &base, commands.len() as f64);
    (smoothed.into_iter().map(rounded).collect(), rounded(decay))
}

/// The decay of a geometric distribution over 1 to `most` actions that makes the commands likeliest, held to the middle as
/// if there were one more with an action more and one without.
fn decay(commands: &[&LabelledCommand], most: u64) -> f64 {
    let beyond_first: f64 = commands.iter().map(|command| total(command).saturating_sub(1) as f64).sum();
    let likelihood = |decay: f64| {
        let whole = (1.0 - decay.powf(most as f64)).ln() - (1.0 - decay).ln();
        (beyond_first + 1.0) * decay.ln() - commands.len() as f64 * whole + (1.0 - decay).ln()
    };
    likeliest((1..1000).map(|thousandths| f64::from(thousandths) / 1000.0), likelihood)
}

/// Shares of actions where nothing was seen: all devices are told equally often, and each of their actions is.
fn base_shares(actions: &[Action], inventory: Option<&Inventory>) -> Vec<f64> {
    let Some(inventory) = inventory else { return vec![1.0 / actions.len() as f64; actions.len()] };
    let mut shares = vec![0.0; actions.len()];
    for device in &inventory.devices {
        for (share, action) in shares.iter_mut().zip(actions) {
            if device.actions.contains(&action.name) {
                *share += f64::from(device.count) / device.actions.len() as f64;
            }
        }
    }
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum).collect()
}

fn shares(commands: &[&LabelledCommand], base: &[f64]) -> Vec<f64> {
    let mut times = vec![0.0; base.len()];
    for command in commands {
        for (times, count) in times.iter_mut().zip(&command.counts) {
            *times += f64::from(*count);
        }
    }
    let all = times.iter().sum();
    let shares: Vec<f64> = smoothed(&times, base, all).into_iter().map(rounded).collect();
    shares
}

/// Shares out of how often something occurred, of `all`, with a base of the strength that makes the occurrences
/// likeliest (of equally likely ones the greatest: few occurrences change little).
fn smoothed(times: &[f64], base: &[f64], all: f64) -> Vec<f64> {
    // Of a Dirichlet-multinomial distribution.
    let likelihood = |strength: f64| {
        let occurrences: f64 =
            times.iter().zip(base).map(|(times, base)| ln_rising(strength * base, *times)).sum::<f64>();
        let seen: f64 = times.iter().sum();
        occurrences - ln_rising(strength, seen)
    };
    let strength = likeliest(STRENGTHS.into_iter().rev(), likelihood);
    times.iter().zip(base).map(|(times, base)| (times + strength * base) / (all + strength)).collect()
}

/// The mean of what the labelled commands leave likely of the concentration, taken as 1 / (1 + c): between shares that
/// vary all the time and such that never do.
fn concentration(commands: &[&LabelledCommand], shares: &[f64]) -> f64 {
    let likelihood = |concentration: f64| -> f64 {
        let of_command = |command: &&LabelledCommand| {
            let counts = command.counts.iter().zip(shares);
            let of_actions: f64 =
                counts.map(|(count, share)| ln_rising(concentration * share, f64::from(*count))).sum();
            of_actions - ln_rising(concentration, total(command) as f64)
        };
        commands.iter().map(of_command).sum()
    };
    let grid: Vec<(f64, f64)> = (1..100)
        .map(|percent| f64::from(percent * percent) / 10_000.0)
        .map(|spread| (spread, likelihood(1.0 / spread - 1.0)))
        .collect();
    let greatest = grid.iter().map(|(_, likelihood)| *likelihood).fold(f64::NEG_INFINITY, f64::max);
    // The grid is dense near 0, as squares are; each place weighs as much as it stands for.
    let weight = |spread: f64, likelihood: f64| spread.sqrt() * (likelihood - greatest).exp();
    let (sum, weights) = grid.iter().fold((0.0, 0.0), |(sum, weights), (spread, likelihood)| {
        (sum + spread * weight(*spread, *likelihood), weights + weight(*spread, *likelihood))
    });
    ((weights / sum - 1.0) * 100.0).round().max(1.0) / 100.0
}

/// ln of x (x + 1) … (x + n − 1), for whole n.
fn ln_rising(x: f64, n: f64) -> f64 {
    // Term by term where that is exact and fast, by Stirling's series beyond.
    if n <= 64.0 {
        let mut product = 0.0;
        let mut at = 0.0;
        while at < n {
            product += (x + at).ln();
            at += 1.0;
        }
        return product;
    }
    ln_rising(x, 64.0) + stirling(x + n) - stirling(x + 64.0)
}

/// ln Γ(x) for x of 64 and more, less the constant.
fn stirling(x: f64) -> f64 {
    (x - 0.5) * x.ln() - x + 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x)
}

/// The first of the values with the greatest likelihood.
fn likeliest(values: impl Iterator<Item = f64>, likelihood: impl Fn(f64) -> f64) -> f64 {
    let mut best = (f64::NEG_INFINITY, 0.5);
    for value in values {
        let likelihood = likelihood(value);
        if likelihood > best.0 + 1e-9 {
            best = (likelihood, value);
        }
    }
    best.1
}

fn rounded(share: f64) -> f64 {
    ((share * 1e6).round() / 1e6).max(LEAST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{TestRandom, actions, command, home};

    fn learn(commands: &[LabelledCommand]) -> Option<Prior> {
        let actions = actions(&["on", "off", "red"]);
        Prior::learn(commands, &actions, Some(&home()), &home().limits(&actions).unwrap())
    }

    fn free(commands: &[LabelledCommand]) -> Prior {
        Prior::learn(commands, &actions(&["on", "off", "red"]), None, &Limits::free(3)).unwrap()
    }

    /// Commands of up to 12 actions, of which `on` is six in ten, `red` one in ten.
    fn habits(commands: usize) -> Vec<LabelledCommand> {
        let mut random = TestRandom(3);
        let mut made = Vec::new();
        for _ in 0..commands {
            let mut counts = [0; 3];
            let mut more = true;
            while more && counts.iter().sum::<u32>() < 12 {
                counts[[0, 0, 0, 0, 0, 0, 1, 1, 1, 2][random.below(10) as usize]] += 1;
                more = random.below(4) > 0;
            }
            made.push(command(100, &counts));
        }
        made
    }

    #[test]
    fn habits_are_learned() {
        let prior = learn(&habits(2000)).unwrap();
        for (share, expected) in prior.shares.iter().zip([0.6, 0.3, 0.1]) {
            assert!((share - expected).abs() < 0.03, "{prior:?}");
        }
        assert!((prior.numbers[0] - 0.25).abs() < 0.03 && (prior.decay - 0.75).abs() < 0.05, "{prior:?}");
        assert!(prior.concentration > 50.0, "each device is told something of its own: {prior:?}");
    }

    #[test]
    fn commands_that_tell_all_the_same_are_told_from_others() {
        let same: Vec<_> = (0..60).map(|at| command(0, &[[6, 0, 0], [0, 5, 0], [0, 0, 4]][at % 3])).collect();
        let prior = free(&same);
        assert!(prior.concentration < 1.0, "{prior:?}");
        let together = prior.ln_next(0, 1) + prior.ln_next(0, 2);
        assert!(together > prior.ln_next(0, 1) + prior.ln_next(1, 1));
    }

    #[test]
    fn few_labels_change_little() {
        let base = learn(&[command(0, &[1, 0, 0])]).unwrap();
        // Plugs do red not at all; lamps as often as on and off.
        let expected = [22.0 / 3.0, 22.0 / 3.0, 4.0 / 3.0];
        for (share, expected) in base.shares.iter().zip(expected) {
            assert!((share - expected / 16.0).abs() < 0.01, "{base:?}");
        }
        assert!(base.ln_number(16) > 1e-8_f64.ln() && base.concentration < 10.0, "{base:?}");
    }

    #[test]
    fn experiments_are_no_habits() {
        let experiments: Vec<_> = (0..3)
            .flat_map(|action| (1..=2).map(move |times| (action, times)))
            .map(|(action, times)| {
                let mut counts = [0; 3];
                counts[action] = times;
                command(0, &counts)
            })
            .collect();
        assert_eq!(learn(&experiments), None);
        assert_eq!(learn(&[]), None);
        for broken_off in 1..6 {
            let second = [&experiments, &experiments[..broken_off]].concat();
            assert_eq!(learn(&second), None, "a second round broken off after {broken_off}");
        }
        let twice = [&experiments[..], &experiments[..1], &experiments[..1]].concat();
        assert!(learn(&twice).is_some(), "one of them more often than a round has it");
        let five = (0..5).flat_map(|_| experiments.clone()).collect();
        let both = [five, habits(40)].concat();
        let habits_hold_no_round = habits(40).iter().all(|command| command.counts != [0, 0, 2]);
        assert!(habits_hold_no_round);
        assert_eq!(learn(&both), learn(&habits(40)));
    }

    #[test]
    fn numbers_beyond_the_list_have_the_rest() {
        let prior = free(&habits(100));
        let all: f64 = (1..2000).map(|number| prior.ln_number(number).exp()).sum();
        assert!((all - 1.0).abs() < 1e-3, "{all}");
        assert!(prior.ln_number(0) < -1e300 && prior.ln_number(u32::MAX) < prior.ln_number(400));
    }

    #[test]
    fn rising_factorials_agree_with_their_terms() {
        for (x, n) in [(0.3, 65_u32), (7.0, 200), (1e5, 1000)] {
            let terms: f64 = (0..n).map(|at| (x + f64::from(at)).ln()).sum();
            assert!((ln_rising(x, f64::from(n)) - terms).abs() < 1e-6);
        }
    }

    proptest! {
        #[test]
        fn what_is_learned_is_a_prior(
            counts in prop::collection::vec([0u32..4, 0..3, 0..200_000], 1..12),
            with_inventory: bool,
        ) {
            let commands: Vec<_> = counts.iter().map(|counts| command(0, counts)).collect();
            let prior = if with_inventory { learn(&commands) } else {
                Prior::learn(&commands, &actions(&["on", "off", "red"]), None, &Limits::free(3))
            };
            if let Some(prior) = prior {
                prop_assert_eq!(prior.fault(3), None, "{:?}", prior);
                prop_assert!((prior.shares.iter().sum::<f64>() - 1.0).abs() < 1e-4);
            }
        }

        /// The factors of all ways to give n actions, times n!, are Pólya's distribution, which sums to 1.
        #[test]
        fn factors_are_those_of_the_urn(first in 0.05f64..0.9, concentration in 0.1f64..100.0, n in 1u32..12) {
            let prior = Prior { numbers: vec![], decay: 0.5, shares: vec![first, 1.0 - first], concentration };
            let factor = |action, times: u32| (1..=times).map(|nth| prior.ln_next(action, nth)).sum::<f64>();
            let all: f64 = (0..=n).map(|times| (factor(0, times) + factor(1, n - times)).exp()).sum();
            let urn = (0..n).map(|at| (1.0 + f64::from(at) / concentration) / (f64::from(at) + 1.0)).product::<f64>();
            prop_assert!((all / urn - 1.0).abs() < 1e-9, "{} {}", all, urn);
        }
    }
}
