//! How certain the sizes of actions are: sizes that fit the labelled commands nearly as well.
//!
//! With few labels, or under a block cipher, several sizes of an action may fit. A Markov chain over the action sizes
//! (Metropolis et al. 1953) visits the sizes that the commands allow; as many bytes of deviation as commands usually
//! have make a state e times less probable. The share of time that it spends at a size is the size's posterior
//! probability. Where only ranges of the commands' sizes are known, the mean of the visited sizes is the estimate, and
//! each command gets the size that one state of the chain explains, so that ε reflects the uncertainty. The generator
//! has a fixed seed: the same commands yield the same sizes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sizeleak_model::{LabelledCommand, step_function};

use super::remainders::{Remainder, Remainders, action_bytes};
use super::size_search::SizeSearch;

/// The probability that an interval holds the size: the usual level of intervals, and that of all others in the
/// reports.
const CREDIBLE: f64 = 0.95;

/// The most commands that are used, evenly spaced, a bound of the time. With more commands, intervals are a little
/// wide.
const MAX_COMMANDS: usize = 2000;

/// The number of states sampled: enough for 2.5 % of them at each end of an interval. With n samples, sample i gives
/// the sizes of commands i, i + n, i + 2n...
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
    /// One size for each command, in bytes.
    pub(crate) commands: Vec<i64>,
    /// The visited states: the sizes of all actions in each.
    states: Vec<Vec<i64>>,
}

impl SampledSizes {
    /// Runs the chain, starting from the sizes of `search`; `scale` is the mean deviation of a command in bytes.
    pub(crate) fn sample(mut search: SizeSearch<'_>, commands: &[LabelledCommand], scale: f64) -> Self {
        let samples = SAMPLES;
        let mut random = ChaCha8Rng::seed_from_u64(0);
        run_chain(&mut search, BURN_IN, scale, &mut random);
        let mut sums = vec![0.0; search.sizes.len()];
        let mut sizes: Vec<(usize, i64)> = Vec::with_capacity(commands.len());
        let mut states = Vec::with_capacity(samples);
        for sample in 0..samples {
            run_chain(&mut search, THINNING, scale, &mut random);
            for (sum, size) in sums.iter_mut().zip(&search.sizes) {
                *sum += *size as f64;
            }
            states.push(search.sizes.clone());
            if sample >= commands.len() {
                continue;
            }
            let fitted = Remainders::new(&search.sizes, commands).fitted();
            let size = |(remainder, command): (&Remainder, &LabelledCommand)| {
                remainder.value.saturating_add(action_bytes(&search.sizes, &command.counts))
            };
            sizes.extend(fitted.iter().zip(commands).map(size).enumerate().skip(sample).step_by(samples));
        }
        sizes.sort_unstable();
        Self {
            actions: sums.iter().map(|sum| (sum / samples as f64).round() as i64).collect(),
            commands: sizes.into_iter().map(|(_, size)| size).collect(),
            states,
        }
    }

    /// For each action the least and the greatest size of a credible interval, in bytes; it holds the estimate too.
    pub(crate) fn intervals(&self, estimates: &[i64]) -> Vec<[i64; 2]> {
        let interval = |(action, estimate): (usize, &i64)| {
            let mut visited: Vec<i64> = self.states.iter().filter_map(|state| state.get(action)).copied().collect();
            visited.sort_unstable();
            let outside = ((1.0 - CREDIBLE) / 2.0 * visited.len() as f64) as usize;
            let kept = visited.get(outside..visited.len() - outside).unwrap_or_default();
            let [least, most] = [kept.first(), kept.last()].map(|end| end.copied().unwrap_or(*estimate));
            [least.min(*estimate), most.max(*estimate)]
        };
        estimates.iter().enumerate().map(interval).collect()
    }

    /// The share of states in which all actions have these sizes.
    pub(crate) fn share_of(&self, sizes: &[i64]) -> f64 {
        let equal = self.states.iter().filter(|state| *state == sizes).count();
        equal as f64 / self.states.len().max(1) as f64
    }
}

/// Evenly spaced ones of many commands.
pub(crate) fn thinned(commands: &[LabelledCommand]) -> Vec<LabelledCommand> {
    commands.iter().step_by(commands.len() / MAX_COMMANDS + 1).cloned().collect()
}

/// Proposes random changes. A change that costs n scales more is accepted with probability e⁻ⁿ.
fn run_chain(search: &mut SizeSearch<'_>, proposals: usize, scale: f64, random: &mut ChaCha8Rng) {
    for _ in 0..if search.changes() > 0 { proposals } else { 0 } {
        let index = random.random_range(0..search.changes());
        let accept = |before, after| random.random::<f64>() < (step_function::in_bytes(before - after) / scale).exp();
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
        SampledSizes::sample(SizeSearch::new(gateway(seed).actions, commands), commands, 1.0)
    }

    #[test]
    fn exact_command_sizes_and_their_action_sizes_are_kept() {
        let commands = gateway(1).mixed(100);
        let sampled = sample(1, &commands);
        assert_eq!(sampled.actions, gateway(1).actions);
        assert!(sampled.commands.iter().zip(&commands).all(|(size, command)| [*size; 2] == command.sizes));
        assert!(sampled.share_of(&sampled.actions) > 0.9, "{sampled:?}");
        assert_eq!(
            sampled.intervals(&sampled.actions),
            gateway(1).actions.iter().map(|size| [*size; 2]).collect::<Vec<_>>()
        );
    }

    /// Sizes that the labels leave open are not taken for certain.
    #[test]
    fn fits_of_few_labels_are_right_where_they_are_certain() {
        let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
        let (mut fitted, mut certain, mut certain_but_wrong, mut within) = (0, 0, 0, 0);
        for seed in 0..200 {
            let commands = gateway(seed).mixed(8 + seed as usize % 13);
            let Ok(fit) = crate::Fit::learn(sizeleak_model::FitMethod::Robust, &names, &commands) else { continue };
            let truth = gateway(seed).actions;
            let is_right = fit.actions.iter().map(|action| action.size).eq(truth.iter().copied());
            let holds = |([least, most], size): (&[i64; 2], i64)| (*least..=*most).contains(&size);
            fitted += 1;
            certain += usize::from(fit.certainty >= 0.9);
            certain_but_wrong += usize::from(fit.certainty >= 0.9 && !is_right);
            within += fit.intervals.iter().zip(truth).filter(|pair| holds(*pair)).count();
        }
        assert!(fitted > 190 && certain > 100, "{fitted} fits, {certain} of them certain");
        assert!(certain_but_wrong <= 1, "{certain_but_wrong} of {certain} certain fits are wrong");
        assert!(within * 100 >= fitted * 7 * 95, "{within} of {} sizes are in their intervals", fitted * 7);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn sizes_lie_within_the_ranges_and_the_true_ones_near_the_intervals(seed in 0u64..1000) {
            let commands = in_blocks(gateway(seed).mixed(200));
            let sampled = sample(seed, &commands);
            prop_assert!(sampled.commands.len() == commands.len());
            for (size, command) in sampled.commands.iter().zip(&commands) {
                prop_assert!(command.sizes[0] <= *size && *size <= command.sizes[1]);
            }
            for ([least, most], size) in sampled.intervals(&sampled.actions).into_iter().zip(gateway(seed).actions) {
                prop_assert!((least - 1..=most + 1).contains(&size), "{sampled:?}");
            }
            let again = sample(seed, &commands);
            prop_assert!(again.commands == sampled.commands, "the result is reproducible");
        }
    }
}
