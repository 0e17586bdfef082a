//! A filter over the shift of a flow's sizes: a hidden Markov model whose state is by how many bytes its messages are
//! longer than those that the model was learned from.
//!
//! Before each command the shift may change ([`CHANGE`]); after it, every shift is weighed by the likelihood of the
//! command ([`ShiftFilter::observe`]). One command never decides alone, since a few fit by chance ([`ODD`]).

/// The greatest shift that is looked for, in bytes, in either direction.
const MOST_BYTES: i64 = 8;

/// The probability that sizes change between two commands: firmware and the digits of ids change once in thousands of
/// commands. Two commands that show a change clearly are just enough to believe it: 1 / ODD² is a little more than the
/// odds against it.
const CHANGE: f64 = 2e-4;

/// The share of commands that are odd: whatever their true shift, the one that suits them best is by chance. So one
/// command speaks for one shift against another by a factor of 1 + 1 / ODD at most: less than the odds against a change.
const ODD: f64 = 1e-3;

/// By how many bytes commands and single replies are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShiftState {
    pub(crate) bytes: i64,
    pub(crate) reply_bytes: i64,
}

/// What a gateway or a service may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shifted {
    /// Commands alone: replies are not told apart by their sizes.
    Commands,
    /// Commands, replies, or both by the same number of bytes.
    CommandsAndReplies,
}

/// All states, the one without a shift first, each with the probability that a change leads to it: the kinds of change
/// are equally likely, and so are all numbers of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShiftStates {
    states: Vec<ShiftState>,
    ln_arrival: Vec<f64>,
}

impl ShiftStates {
    pub(crate) fn new(shifted: Shifted) -> Self {
        let bytes = || (-MOST_BYTES..=MOST_BYTES).filter(|bytes| *bytes != 0);
        let commands = bytes().map(|bytes| ShiftState { bytes, reply_bytes: 0 });
        let both = bytes().map(|bytes| ShiftState { bytes, reply_bytes: bytes });
        let replies = bytes().map(|bytes| ShiftState { bytes: 0, reply_bytes: bytes });
        let unshifted = [ShiftState { bytes: 0, reply_bytes: 0 }];
        let (states, kinds): (Vec<ShiftState>, f64) = match shifted {
            Shifted::Commands => (unshifted.into_iter().chain(commands).collect(), 2.0),
            Shifted::CommandsAndReplies => {
                (unshifted.into_iter().chain(commands).chain(both).chain(replies).collect(), 4.0)
            }
        };
        let each = 1.0 / kinds / bytes().count() as f64;
        let ln_arrival = (0..states.len()).map(|at| if at == 0 { 1.0 / kinds } else { each }).map(f64::ln).collect();
        Self { states, ln_arrival }
    }

    /// The states, in the order of evidence and probabilities.
    pub(crate) fn list(&self) -> &[ShiftState] {
        &self.states
    }
}

/// How probable each shift of a flow is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ShiftFilter {
    /// After the last command, in the order of the states. Empty before the first one: there is no shift.
    after: Vec<ShiftBelief>,
}

/// How probable a shift is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ShiftBelief {
    pub(crate) probability: f64,
    /// The time of the first command with it, on the most probable way to it; `None` where it has always been so.
    pub(crate) since_ns: Option<i64>,
}

impl ShiftFilter {
    /// The belief in each state for a command at this time, before it is seen.
    pub(crate) fn predicted(&self, states: &ShiftStates, time_ns: i64) -> Vec<ShiftBelief> {
        let start = |at: usize| ShiftBelief { probability: if at == 0 { 1.0 } else { 0.0 }, since_ns: None };
        let before = |at: usize| self.after.get(at).copied().unwrap_or_else(|| start(at));
        let predict = |(at, ln_arrival): (usize, &f64)| {
            let ShiftBelief { probability, since_ns } = before(at);
            let (stays, arrives) = ((1.0 - CHANGE) * probability, CHANGE * ln_arrival.exp());
            let since_ns = if stays >= arrives { since_ns } else { Some(time_ns) };
            ShiftBelief { probability: stays + arrives, since_ns }
        };
        states.ln_arrival.iter().enumerate().map(predict).collect()
    }

    /// Weighs the predicted beliefs by a command's likelihood in each state, and returns the beliefs after it. A command
    /// that no state explains says nothing.
    pub(crate) fn observe(&mut self, mut predicted: Vec<ShiftBelief>, ln_likelihoods: &[f64]) -> &[ShiftBelief] {
        let greatest = ln_likelihoods.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if greatest.is_finite() && ln_likelihoods.len() == predicted.len() {
            for (belief, ln_likelihood) in predicted.iter_mut().zip(ln_likelihoods) {
                belief.probability *= (1.0 - ODD) * (ln_likelihood - greatest).exp() + ODD;
            }
            let all: f64 = predicted.iter().map(|belief| belief.probability).sum();
            for belief in &mut predicted {
                belief.probability /= all;
            }
        }
        self.after = predicted;
        &self.after
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(states: &ShiftStates, bytes: i64, reply_bytes: i64) -> usize {
        states.list().iter().position(|state| *state == ShiftState { bytes, reply_bytes }).unwrap()
    }

    /// The likelihoods of a command that one state explains and the others do not.
    fn only(states: &ShiftStates, best: usize) -> Vec<f64> {
        (0..states.list().len()).map(|at| if at == best { 0.0 } else { -60.0 }).collect()
    }

    /// The beliefs after commands at 1, 2, 3 … seconds.
    fn after(states: &ShiftStates, commands: &[Vec<f64>]) -> Vec<ShiftBelief> {
        let mut filter = ShiftFilter::default();
        for (likelihoods, second) in commands.iter().zip(1..) {
            let predicted = filter.predicted(states, second * 1_000_000_000);
            filter.observe(predicted, likelihoods);
        }
        filter.after
    }

    #[test]
    fn arrivals_are_a_distribution_and_states_are_distinct() {
        for shifted in [Shifted::Commands, Shifted::CommandsAndReplies] {
            let states = ShiftStates::new(shifted);
            let sum: f64 = states.ln_arrival.iter().map(|ln| ln.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-12);
            let distinct: std::collections::BTreeSet<_> = states.list().iter().collect();
            assert_eq!(
                (distinct.len(), states.list()[0]),
                (states.list().len(), ShiftState { bytes: 0, reply_bytes: 0 })
            );
        }
    }

    #[test]
    fn two_commands_show_a_change_and_one_does_not() {
        for shifted in [Shifted::Commands, Shifted::CommandsAndReplies] {
            let states = ShiftStates::new(shifted);
            let (none, longer) = (only(&states, 0), only(&states, at(&states, 6, 0)));
            let changed = at(&states, 6, 0);
            let one = after(&states, &[none.clone(), none.clone(), longer.clone()]);
            assert!(one[changed].probability < 0.05 && one[0].probability > 0.95);
            let two = after(&states, &[none.clone(), none.clone(), longer.clone(), longer.clone()]);
            assert!(two[changed].probability > 0.7, "{:?}", two[changed]);
            assert_eq!(two[changed].since_ns, Some(3_000_000_000), "the first command that was longer");
            let back = after(&states, &[vec![longer; 6], vec![none; 3]].concat());
            assert!(back[0].probability > 0.99);
            assert_eq!(back[0].since_ns, Some(7_000_000_000));
        }
    }

    #[test]
    fn odd_commands_here_and_there_change_nothing() {
        let states = ShiftStates::new(Shifted::CommandsAndReplies);
        let commands: Vec<Vec<f64>> =
            (0..200).map(|number| only(&states, if number % 10 > 0 { 0 } else { at(&states, 3, 3) })).collect();
        let mut filter = ShiftFilter::default();
        for likelihoods in &commands {
            let predicted = filter.predicted(&states, 0);
            let beliefs = filter.observe(predicted, likelihoods);
            assert!(beliefs[0].probability > 0.9, "{:?}", beliefs[0]);
        }
    }

    #[test]
    fn commands_that_nothing_explains_say_nothing() {
        let states = ShiftStates::new(Shifted::Commands);
        let beliefs = after(&states, &vec![vec![f64::NEG_INFINITY; states.list().len()]; 50]);
        assert!(beliefs[0].probability > 0.97);
    }

    proptest! {
        /// The sum over all sequences of states.
        #[test]
        fn beliefs_are_those_of_the_sum_over_all_ways(
            commands in prop::collection::vec(prop::collection::vec(-12.0..0.0f64, 17), 1..4),
        ) {
            let states = ShiftStates::new(Shifted::Commands);
            let number = states.list().len();
            let likelihood = |command: &[f64], at: usize| {
                let greatest = command.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (1.0 - ODD) * (command[at] - greatest).exp() + ODD
            };
            let transition = |from: usize, to: usize| {
                let stays = if from == to { 1.0 - CHANGE } else { 0.0 };
                stays + CHANGE * states.ln_arrival[to].exp()
            };
            let mut totals = vec![0.0; number];
            for way in 0..number.pow(commands.len() as u32) {
                let (mut rest, mut from, mut weight) = (way, 0, 1.0);
                for command in &commands {
                    let to = rest % number;
                    rest /= number;
                    weight *= transition(from, to) * likelihood(command, to);
                    from = to;
                }
                totals[from] += weight;
            }
            let sum: f64 = totals.iter().sum();
            for (belief, total) in after(&states, &commands).iter().zip(&totals) {
                prop_assert!((belief.probability - total / sum).abs() < 1e-9);
            }
        }
    }
}
