//! What remains of the commands' sizes without their actions, and how well a step function fits it.

use std::collections::BTreeMap;

use sizeleak_model::LabelledCommand;
use sizeleak_model::step_function::{Residual, StepFunction, step_cost};

/// Bytes of the actions of a command: Σ |aᵢ|·nbᵢ.
pub(crate) fn action_bytes(sizes: &[i64], counts: &[u32]) -> i64 {
    let products = sizes.iter().zip(counts).map(|(size, count)| size.saturating_mul(i64::from(*count)));
    products.fold(0, i64::saturating_add)
}

/// A remainder and the level of the step function at its command.
#[derive(Clone, Copy)]
pub(crate) struct Remainder {
    /// The remainder; of a range, the value nearest to the level.
    pub(crate) value: i64,
    pub(crate) level: i64,
}

/// What remains of commands without actions of these sizes, in their order; and what a step costs, in bytes: more where
/// remainders deviate much. Steps are along the actions' bytes: along sizes, noise would look like steps.
pub(crate) fn fitted(actions: &[i64], commands: &[LabelledCommand]) -> (Vec<Remainder>, i64) {
    let bytes = |command: &LabelledCommand| action_bytes(actions, &command.counts);
    let mut order: Vec<(i64, usize)> = commands.iter().map(bytes).zip(0..).collect();
    order.sort_unstable();
    let range = |(bytes, at): &(i64, usize)| commands[*at].sizes.map(|size| size.saturating_sub(*bytes));
    let ranges: Vec<[i64; 2]> = order.iter().map(range).collect();
    let (bytes, order): (Vec<i64>, Vec<usize>) = order.into_iter().unzip();
    let StepFunction { levels, step_bytes, .. } = StepFunction::fit(&bytes, &ranges);
    let mut fitted = vec![Remainder { value: 0, level: 0 }; commands.len()];
    for ((at, [least, most]), level) in order.into_iter().zip(ranges).zip(levels) {
        fitted[at] = Remainder { value: level.clamp(least, most.max(least)), level };
    }
    (fitted, step_bytes)
}

/// Labelled commands, those with the same actions together: there are few different ones.
pub(crate) struct EqualCommands<'a> {
    of_actions: Vec<(&'a [u32], SizesSeen)>,
}

/// The ranges of sizes that some commands have, each with how often.
type SizesSeen = BTreeMap<[i64; 2], u32>;

impl<'a> EqualCommands<'a> {
    pub(crate) fn new(commands: &'a [LabelledCommand]) -> Self {
        let mut of_actions: BTreeMap<&[u32], SizesSeen> = BTreeMap::new();
        for LabelledCommand { counts, sizes, .. } in commands {
            *of_actions.entry(counts).or_default().entry(*sizes).or_default() += 1;
        }
        Self { of_actions: of_actions.into_iter().collect() }
    }

    /// The cost of the best step function for these sizes, in bytes of deviation; `None` if it is not below a limit.
    pub(crate) fn cost(&self, actions: &[i64], step_bytes: i64, limit: f64) -> Option<f64> {
        let bytes = self.of_actions.iter().map(|(counts, _)| action_bytes(actions, counts));
        let mut ordered: Vec<(i64, usize)> = bytes.zip(0..).collect();
        ordered.sort_unstable();
        let residuals = ordered.into_iter().flat_map(|(size, at)| {
            let without = move |end: i64| end.saturating_sub(size);
            let (_, seen) = &self.of_actions[at];
            seen.iter().map(move |(range, times)| Residual { size, range: range.map(without), times: *times })
        });
        step_cost(&residuals.collect::<Vec<Residual>>(), step_bytes, limit)
    }
}
