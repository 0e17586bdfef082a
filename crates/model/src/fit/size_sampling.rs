//! Sizes of actions and commands if only ranges of the commands' sizes are known.
//!
//! Under a block cipher several sizes of an action may fit. A Markov chain over the action sizes (Metropolis et al.
//! 1953) visits the sizes that the ranges allow; a byte outside the ranges makes a state e times less probable. The
//! mean of the visited sizes is the estimate, their standard deviation its uncertainty. Each command gets the size that
//! one state of the chain explains, so that ε reflects the uncertainty. The generator has a fixed seed: the same
//! commands yield the same sizes.

use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::remainders::{Remainder, Remainders};
use super::size_search::SizeSearch;
use crate::LabelledCommand;
use crate::labelled_command::action_bytes;
use crate::step_function;

/// The number of states sampled. With n samples, sample i gives the sizes of commands i, i + n, i + 2n...
const SAMPLES: usize = 256;

/// Proposals between two samples.
const THINNING: usize = 24;

/// Proposals before the first sample.
const BURN_IN: usize = 512;

/// Sizes drawn from those that the commands' ranges allow.
#[derive(Debug)]
pub(crate) struct SampledSizes {
    /// Mean size of each action, in bytes.
    pub(crate) actions: Vec<i64>,
    /// Standard deviation of each action's size, in bytes.
    pub(crate) deviations: Vec<f64>,
    /// One size for each command, in bytes.
    pub(crate) commands: Vec<i64>,
}

impl SampledSizes {
    /// Runs the chain, starting from the sizes of `search`.
    pub(crate) fn sample(mut search: SizeSearch<'_>, commands: &[LabelledCommand]) -> Self {
        let samples = SAMPLES.min(commands.len());
        let mut random = ChaCha8Rng::seed_from_u64(0);
        run_chain(&mut search, BURN_IN, &mut random);
        let mut sums = vec![(0.0, 0.0); search.sizes.len()];
        let mut sizes: Vec<(usize, i64)> = Vec::with_capacity(commands.len());
        for sample in 0..samples {
            run_chain(&mut search, THINNING, &mut random);
            for ((sum, squares), size) in sums.iter_mut().zip(&search.sizes) {
                let size = *size as f64;
                *sum += size;
                *squares += size * size;
            }
            let fitted = Remainders::new(&search.sizes, commands).fitted();
            let size = |(remainder, command): (&Remainder, &LabelledCommand)| {
                remainder.value.saturating_add(action_bytes(&search.sizes, &command.counts))
            };
            sizes.extend(fitted.iter().zip(commands).map(size).enumerate().skip(sample).step_by(samples));
        }
        sizes.sort_unstable();
        let n = samples.max(1) as f64;
        let deviation = |(sum, squares): &(f64, f64)| (squares / n - (sum / n).powi(2)).max(0.0).sqrt();
        Self {
            actions: sums.iter().map(|(sum, _)| (sum / n).round() as i64).collect(),
            deviations: sums.iter().map(deviation).collect(),
            commands: sizes.into_iter().map(|(_, size)| size).collect(),
        }
    }
}

/// Proposes random changes. A change that costs n bytes more is accepted with probability e⁻ⁿ.
fn run_chain(search: &mut SizeSearch<'_>, proposals: usize, random: &mut ChaCha8Rng) {
    for _ in 0..if search.changes() > 0 { proposals } else { 0 } {
        let index = random.random_range(0..search.changes());
        let accept = |before, after| random.random::<f64>() < step_function::in_bytes(before - after).exp();
        search.try_change(index, accept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{SimulatedGateway, in_blocks};

    fn gateway(seed: u64) -> SimulatedGateway<'static> {
        let actions = vec![28, 29, 32, 34, 36, 35, 40];
        SimulatedGateway {
            seed,
            actions,
            base: 67,
            steps: &[(126, 2)],
            ids: SimulatedGateway::MOSTLY_SIX_DIGITS,
            wrong_percent: 0,
        }
    }

    fn sample(seed: u64, commands: &[LabelledCommand]) -> SampledSizes {
        SampledSizes::sample(SizeSearch::new(gateway(seed).actions, commands), commands)
    }

    #[test]
    fn exact_command_sizes_and_their_action_sizes_are_kept() {
        let commands = gateway(1).mixed(100);
        let sampled = sample(1, &commands);
        assert_eq!(sampled.actions, gateway(1).actions);
        assert!(sampled.commands.iter().zip(&commands).all(|(size, command)| [*size; 2] == command.sizes));
        assert!(sampled.deviations.iter().all(|deviation| *deviation < 0.2), "{sampled:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn sizes_lie_within_the_ranges_and_errors_within_the_deviations(seed in 0u64..1000) {
            let commands = in_blocks(gateway(seed).mixed(200));
            let sampled = sample(seed, &commands);
            prop_assert!(sampled.commands.len() == commands.len());
            for (size, command) in sampled.commands.iter().zip(&commands) {
                prop_assert!(command.sizes[0] <= *size && *size <= command.sizes[1]);
            }
            let estimates = sampled.actions.iter().zip(&sampled.deviations);
            for ((mean, deviation), size) in estimates.zip(gateway(seed).actions) {
                prop_assert!((mean - size).abs() as f64 <= 4.0 * deviation + 1.0, "{sampled:?}");
            }
            let again = sample(seed, &commands);
            prop_assert!(again.commands == sampled.commands, "the result is reproducible");
        }
    }
}
