//! Sizes of actions, and of the commands themselves, where only ranges of these are known.
//!
//! The ranges that a block cipher leaves let sizes of actions be off by some bytes. A Markov chain over the sizes of actions
//! (Metropolis et al. 1953), in which a byte out of the ranges makes a state e times less probable, goes through those that
//! the ranges allow: their mean is the estimate, their standard deviation how far it may be off. Each command is given the
//! size that one state of the chain explains, so that ε tells how uncertain the sizes are. The chain's randomness has a
//! fixed seed: the same commands give the same sizes.

use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::LabelledCommand;
use crate::robust::{Remainders, apply, changes};
use crate::steps;

/// The states that are looked at: each is that of every so manyth command.
const STATES: usize = 256;

/// Changes that are proposed between two of them.
const THINNING: usize = 24;

/// Changes that are proposed before the first.
const SETTLING: usize = 512;

/// What the chain went through.
#[derive(Debug)]
pub(crate) struct Imputed {
    /// The mean sizes of the actions.
    pub(crate) actions: Vec<i64>,
    /// Their standard deviations, in bytes.
    pub(crate) deviations: Vec<f64>,
    /// A size of each command.
    pub(crate) sizes: Vec<i64>,
}

/// Runs the chain from these sizes of actions.
pub(crate) fn impute(actions: Vec<i64>, commands: &[LabelledCommand]) -> Imputed {
    let states = STATES.min(commands.len());
    let mut chain = Chain::new(actions, commands);
    chain.run(SETTLING);
    let mut sums = vec![(0.0, 0.0); chain.actions.len()];
    let mut sizes: Vec<(usize, i64)> = Vec::with_capacity(commands.len());
    for state in 0..states {
        chain.run(THINNING);
        for ((sum, squares), size) in sums.iter_mut().zip(&chain.actions) {
            let size = *size as f64;
            *sum += size;
            *squares += size * size;
        }
        let all = Remainders::new(&chain.actions, commands).sizes();
        sizes.extend(all.into_iter().enumerate().skip(state).step_by(states));
    }
    sizes.sort_unstable();
    let all = states.max(1) as f64;
    let deviation = |(sum, squares): &(f64, f64)| (squares / all - (sum / all).powi(2)).max(0.0).sqrt();
    Imputed {
        actions: sums.iter().map(|(sum, _)| (sum / all).round() as i64).collect(),
        deviations: sums.iter().map(deviation).collect(),
        sizes: sizes.into_iter().map(|(_, size)| size).collect(),
    }
}

struct Chain<'a> {
    actions: Vec<i64>,
    commands: &'a [LabelledCommand],
    /// What is proposed.
    changes: Vec<Vec<(usize, i64)>>,
    /// In bytes.
    cost: f64,
    random: ChaCha8Rng,
}

impl<'a> Chain<'a> {
    fn new(actions: Vec<i64>, commands: &'a [LabelledCommand]) -> Self {
        let (changes, random) = (changes(actions.len()), ChaCha8Rng::seed_from_u64(0));
        let cost = steps::in_bytes(Remainders::new(&actions, commands).cost());
        Self { actions, commands, changes, cost, random }
    }

    fn run(&mut self, proposals: usize) {
        if self.changes.is_empty() {
            return;
        }
        for _ in 0..proposals {
            let Some(change) = self.changes.get(self.random.random_range(0..self.changes.len())) else { continue };
            apply(&mut self.actions, change, 1);
            let cost = steps::in_bytes(Remainders::new(&self.actions, self.commands).cost());
            if self.random.random::<f64>() < (self.cost - cost).exp() {
                self.cost = cost;
            } else {
                apply(&mut self.actions, change, -1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Gateway, in_blocks};

    fn gateway(seed: u64) -> Gateway<'static> {
        let actions = vec![28, 29, 32, 34, 36, 35, 40];
        Gateway { seed, actions, base: 67, steps: &[(126, 2)], ids: Gateway::MOSTLY_SIX_DIGITS, wrong_percent: 0 }
    }

    #[test]
    fn exact_sizes_stay_as_they_are() {
        let commands = gateway(1).mixed(100);
        let imputed = impute(gateway(1).actions, &commands);
        assert_eq!(imputed.actions, gateway(1).actions);
        assert!(imputed.sizes.iter().zip(&commands).all(|(size, command)| [*size; 2] == command.sizes));
        assert!(imputed.deviations.iter().all(|deviation| *deviation < 0.2), "{imputed:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn sizes_are_within_the_ranges_and_as_uncertain_as_they_are_off(seed in 0u64..1000) {
            let commands = in_blocks(gateway(seed).mixed(200));
            let imputed = impute(gateway(seed).actions, &commands);
            prop_assert!(imputed.sizes.len() == commands.len());
            for (size, command) in imputed.sizes.iter().zip(&commands) {
                prop_assert!(command.sizes[0] <= *size && *size <= command.sizes[1]);
            }
            for ((mean, deviation), size) in imputed.actions.iter().zip(&imputed.deviations).zip(gateway(seed).actions) {
                prop_assert!((mean - size).abs() as f64 <= 4.0 * deviation + 1.0, "{imputed:?}");
            }
            prop_assert!(impute(gateway(seed).actions, &commands).sizes == imputed.sizes, "the same again");
        }
    }
}
