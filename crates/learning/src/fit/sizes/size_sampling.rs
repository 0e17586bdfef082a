//! The search for the sizes of actions, step by step, and how certain they are: sizes that fit the labelled commands
//! nearly as well.
//!
//! With few labels, or under a block cipher, several sizes of an action may fit. A Markov chain over the action sizes
//! (Metropolis et al. 1953) visits the sizes that the commands allow; as many bytes of deviation as commands usually
//! have make a state e times less probable. The share of time that it spends at a size is the size's posterior
//! probability. Where only ranges of the commands' sizes are known, the mean of the visited sizes is the estimate, and
//! each command gets the size that one state of the chain explains, so that ε reflects the uncertainty. The generator
//! has a fixed seed: the same commands yield the same sizes.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sizeleak_model::LabelledCommand;

use super::fitted_sizes::{action_bytes, fitted};

/// The probability that an interval holds the size: the usual level, and that of all others in the reports.
const CREDIBLE: f64 = 0.95;

/// The most commands that are used, evenly spaced, a bound of the time. With more, intervals are a little wide.
pub(crate) const MAX_SAMPLED: usize = 2000;

/// The states sampled: enough for 2.5 % at each end of an interval. Of n, the i-th gives commands i, i + n, i + 2n...
const SAMPLES: usize = 256;

/// Proposals between two samples.
const THINNING: usize = 24;

/// Proposals before the first sample.
const BURN_IN: usize = 512;

/// Sizes drawn from those that the commands allow: those of all actions in each visited state.
#[derive(Debug)]
pub(crate) struct SampledSizes {
    states: Vec<Vec<i64>>,
}

impl SampledSizes {
    /// Runs the chain, starting from the sizes of `search`, whose cost is a negative log-likelihood.
    pub(crate) fn sample(mut search: SizeSearch<'_>) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(0);
        run_chain(&mut search, BURN_IN, &mut random);
        let mut state = || {
            run_chain(&mut search, THINNING, &mut random);
            search.sizes.clone()
        };
        Self { states: std::iter::repeat_with(&mut state).take(SAMPLES).collect() }
    }

    /// The mean size of each action, in bytes.
    pub(crate) fn means(&self) -> Vec<i64> {
        let actions = self.states.first().map_or(0, Vec::len);
        let sum = |action: usize| self.states.iter().map(|state| state[action] as f64).sum::<f64>();
        (0..actions).map(|action| (sum(action) / self.states.len() as f64).round() as i64).collect()
    }

    /// What remains of each command, of exact size, without actions of these sizes, as a *new* command would have it: the
    /// commands that the sizes were learned from lie nearer to them. So where a state has other sizes, the command is
    /// predicted by that state: by what its neighbour in size leaves there, and by how far the sizes differ.
    pub(crate) fn remainders(&self, sizes: &[i64], commands: &[LabelledCommand], outliers: &[usize]) -> Vec<i64> {
        let is_kept = |at: &usize| outliers.binary_search(at).is_err();
        let mut order: Vec<usize> = (0..commands.len()).filter(is_kept).collect();
        order.sort_by_key(|at| commands[*at].sizes[0]);
        let mut neighbours: Vec<usize> = (0..commands.len()).collect();
        for pair in order.windows(2) {
            neighbours[pair[0]] = pair[1];
        }
        if let [.., before, last] = order[..] {
            neighbours[last] = before;
        }
        let remainder =
            |at: usize, sizes: &[i64]| commands[at].sizes[0].saturating_sub(action_bytes(sizes, &commands[at].counts));
        let predicted = |at: usize| {
            let state = &self.states[at * self.states.len() / commands.len()];
            if state == sizes {
                return remainder(at, sizes);
            }
            let farther = remainder(at, sizes).saturating_sub(remainder(at, state));
            remainder(neighbours[at], state).saturating_add(farther)
        };
        (0..commands.len()).map(predicted).collect()
    }

    /// The same of ranges: of each command the value that one state explains.
    pub(crate) fn remainders_of_ranges(&self, sizes: &[i64], commands: &[LabelledCommand]) -> Vec<i64> {
        let states = self.states.len();
        let mut remainders = vec![0; commands.len()];
        for (first, state) in self.states.iter().enumerate().take(commands.len()) {
            let (fitted, _) = fitted(state, commands);
            for at in (first..commands.len()).step_by(states) {
                let counts = &commands[at].counts;
                let size = fitted[at].value.saturating_add(action_bytes(state, counts));
                remainders[at] = size.saturating_sub(action_bytes(sizes, counts));
            }
        }
        remainders
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

/// Proposes random changes. One that costs n more is accepted with probability e⁻ⁿ.
fn run_chain(search: &mut SizeSearch<'_>, proposals: usize, random: &mut ChaCha8Rng) {
    for _ in 0..if search.changes() > 0 { proposals } else { 0 } {
        let index = random.random_range(0..search.changes());
        search.try_change(index, search.cost - random.random::<f64>().ln());
    }
}

/// Pairs of sizes are changed together for at most this many actions.
const MAX_PAIRED_ACTIONS: usize = 24;

const MAX_ROUNDS: usize = 50;

/// The cost of what sizes of actions leave unexplained, if it is below a limit.
type CostOf<'a> = dyn Fn(&[i64], f64) -> Option<f64> + 'a;

/// Sizes of actions, the cost of what they leave unexplained, and the changes to try.
pub(crate) struct SizeSearch<'a> {
    pub(crate) sizes: Vec<i64>,
    pub(crate) cost: f64,
    cost_of: Box<CostOf<'a>>,
    /// Each change is a list of action indices and the bytes to add.
    changes: Vec<Vec<(usize, i64)>>,
    /// The greatest limit that each change of these sizes has not been below: random changes repeat themselves.
    not_below: Vec<f64>,
}

impl<'a> SizeSearch<'a> {
    pub(crate) fn new(sizes: Vec<i64>, cost_of: impl Fn(&[i64], f64) -> Option<f64> + 'a) -> Self {
        let cost = cost_of(&sizes, f64::INFINITY).unwrap_or(f64::INFINITY);
        let changes = changes(sizes.len());
        let not_below = vec![f64::NEG_INFINITY; changes.len()];
        Self { sizes, cost, cost_of: Box::new(cost_of), changes, not_below }
    }

    pub(crate) fn changes(&self) -> usize {
        self.changes.len()
    }

    /// Tries a change and keeps it if what it costs is below a limit.
    fn try_change(&mut self, index: usize, limit: f64) {
        let (Some(change), Some(not_below)) = (self.changes.get(index), self.not_below.get_mut(index)) else { return };
        if limit <= *not_below {
            return;
        }
        add(&mut self.sizes, change, 1);
        if let Some(cost) = (self.cost_of)(&self.sizes, limit) {
            self.cost = cost;
            self.not_below.fill(f64::NEG_INFINITY);
        } else {
            add(&mut self.sizes, change, -1);
            *not_below = limit;
        }
    }

    /// Applies changes as long as one of them lowers the cost.
    pub(crate) fn descend(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.cost;
            for index in 0..self.changes.len() {
                self.try_change(index, self.cost);
            }
            if self.cost >= before {
                break;
            }
        }
    }
}

/// Changes of one size or of all sizes by up to 3 bytes; if there are few actions, also of two by one byte each.
fn changes(actions: usize) -> Vec<Vec<(usize, i64)>> {
    let by = [1, -1, 2, -2, 3, -3];
    let mut changes: Vec<Vec<(usize, i64)>> = by.map(|by| (0..actions).map(|at| (at, by)).collect()).into();
    changes.extend((0..actions).flat_map(|at| by.map(|by| vec![(at, by)])));
    if actions <= MAX_PAIRED_ACTIONS {
        for first in 0..actions {
            for second in first + 1..actions {
                changes.extend([(1, 1), (1, -1), (-1, 1), (-1, -1)].map(|(a, b)| vec![(first, a), (second, b)]));
            }
        }
    }
    changes
}

fn add(sizes: &mut [i64], change: &[(usize, i64)], sign: i64) {
    for (at, by) in change {
        if let Some(size) = sizes.get_mut(*at) {
            *size = size.saturating_add(sign * by);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_model::step_function::MIN_STEP_BYTES;

    use super::*;
    use crate::fit::sizes::fitted_sizes::EqualCommands;
    use crate::fit::testing::{SimulatedGateway, in_blocks};

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
        let commands = EqualCommands::new(commands);
        SampledSizes::sample(SizeSearch::new(gateway(seed).actions, |sizes, limit| {
            commands.cost(sizes, MIN_STEP_BYTES, limit)
        }))
    }

    #[test]
    fn exact_action_sizes_are_kept() {
        let commands = gateway(1).mixed(100);
        let sampled = sample(1, &commands);
        let truth = gateway(1).actions;
        assert_eq!(sampled.means(), truth);
        let remainders = sampled.remainders(&truth, &commands, &[]);
        let (fitted, _) = fitted(&truth, &commands);
        assert!(remainders.into_iter().eq(fitted.iter().map(|remainder| remainder.value)));
        assert!(sampled.share_of(&truth) > 0.9, "{sampled:?}");
        assert_eq!(sampled.intervals(&truth), truth.iter().map(|size| [*size; 2]).collect::<Vec<_>>());
    }

    /// Sizes that the labels leave open are not taken for certain.
    #[test]
    fn fits_of_few_labels_are_right_where_they_are_certain() {
        let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
        let (mut fitted, mut certain, mut certain_but_wrong, mut within, mut claimed) = (0, 0, 0, 0, 0.0);
        for seed in 0..200 {
            let commands = gateway(seed).mixed(8 + seed as usize % 13);
            let Ok(fit) = crate::fit::Fit::learn(sizeleak_model::FitMethod::Robust, &names, &commands) else {
                continue;
            };
            let truth = gateway(seed).actions;
            let is_right = fit.actions.iter().map(|action| action.size).eq(truth.iter().copied());
            let holds = |([least, most], size): (&[i64; 2], i64)| (*least..=*most).contains(&size);
            fitted += 1;
            certain += usize::from(fit.certainty >= 0.9);
            claimed += if fit.certainty >= 0.9 { 1.0 - fit.certainty } else { 0.0 };
            certain_but_wrong += usize::from(fit.certainty >= 0.9 && !is_right);
            within += fit.intervals.iter().zip(truth).filter(|pair| holds(*pair)).count();
        }
        assert!(fitted > 190 && certain > 90, "{fitted} fits, {certain} of them certain");
        assert!(certain_but_wrong <= 1, "{certain_but_wrong} of {certain} certain fits are wrong, claimed {claimed}");
        assert!(within * 100 >= fitted * 7 * 95, "{within} of {} sizes are in their intervals", fitted * 7);
    }

    /// Least absolute deviations are less exact the flatter ε is: as flat as random padding makes it, here.
    #[test]
    fn intervals_hold_sizes_under_random_padding() {
        let padding: Vec<(i64, u64)> = (0..9).map(|bytes| (bytes, 111)).collect();
        let names: Vec<String> = (0..7).map(|at| at.to_string()).collect();
        for commands in [50, 150] {
            let (mut within, mut all, mut right, mut claimed) = (0, 0, 0.0, 0.0);
            for seed in 0..20 {
                let gateway = SimulatedGateway { ids: &padding, ..gateway(seed) };
                let Ok(fit) =
                    crate::fit::Fit::learn(sizeleak_model::FitMethod::Robust, &names, &gateway.mixed(commands))
                else {
                    continue;
                };
                let pairs = fit.intervals.iter().zip(&gateway.actions);
                within += pairs.filter(|([least, most], size)| (least..=most).contains(size)).count();
                all += 7;
                claimed += fit.certainty;
                right += f64::from(fit.actions.iter().map(|action| action.size).eq(gateway.actions));
            }
            assert!(all > 125 && within * 100 >= all * 93, "{commands}: {within} of {all} sizes");
            assert!(
                claimed <= right + 2.8,
                "{commands}: all sizes of {claimed} are claimed right, of {right} they are"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn sizes_lie_within_the_ranges_and_the_true_ones_near_the_intervals(seed in 0u64..1000) {
            let commands = in_blocks(gateway(seed).mixed(200));
            let sampled = sample(seed, &commands);
            let sizes = sampled.means();
            let remainders = sampled.remainders_of_ranges(&sizes, &commands);
            for (remainder, command) in remainders.iter().zip(&commands) {
                let size = remainder + action_bytes(&sizes, &command.counts);
                prop_assert!(command.sizes[0] <= size && size <= command.sizes[1]);
            }
            for ([least, most], size) in sampled.intervals(&sizes).into_iter().zip(gateway(seed).actions) {
                prop_assert!((least - 1..=most + 1).contains(&size), "{sampled:?}");
            }
            let again = sample(seed, &commands);
            prop_assert!(again.states == sampled.states, "the result is reproducible");
        }
    }
}
