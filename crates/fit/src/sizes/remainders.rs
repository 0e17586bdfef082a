//! What remains of the commands' sizes without their actions, and how well a step function fits it.

use std::collections::BTreeMap;

use sizeleak_model::LabelledCommand;
use sizeleak_model::step_function::{Residual, StepFunction, step_cost};

/// Bytes of the actions of a command: Σ |aᵢ|·nbᵢ.
pub(crate) fn action_bytes(sizes: &[i64], counts: &[u32]) -> i64 {
    let products = sizes.iter().zip(counts).map(|(size, count)| size.saturating_mul(i64::from(*count)));
    products.fold(0, i64::saturating_add)
}

/// Sizes of commands without their actions, in order of the actions' bytes: in their own, noise would look like steps.
pub(crate) struct Remainders {
    action_bytes: Vec<i64>,
    /// Smallest and largest remainder.
    ranges: Vec<[i64; 2]>,
    commands: Vec<usize>,
}

/// A remainder and the level of the step function at its command.
#[derive(Clone, Copy)]
pub(crate) struct Remainder {
    /// The remainder; of a range, the value nearest to the level.
    pub(crate) value: i64,
    pub(crate) level: i64,
}

impl Remainders {
    pub(crate) fn new(actions: &[i64], commands: &[LabelledCommand]) -> Self {
        let bytes = |command: &LabelledCommand| action_bytes(actions, &command.counts);
        let mut order: Vec<(i64, usize)> = commands.iter().map(bytes).zip(0..).collect();
        order.sort_unstable();
        let range = |(bytes, at): &(i64, usize)| commands[*at].sizes.map(|size| size.saturating_sub(*bytes));
        let ranges = order.iter().map(range).collect();
        let (action_bytes, commands) = order.into_iter().unzip();
        Self { action_bytes, ranges, commands }
    }

    /// What a step costs, in bytes: more where the remainders deviate much.
    pub(crate) fn step_bytes(&self) -> i64 {
        StepFunction::fit(&self.action_bytes, &self.ranges).step_bytes
    }

    /// The remainders with their levels, in the order of the commands.
    pub(crate) fn fitted(&self) -> Vec<Remainder> {
        let levels = StepFunction::fit(&self.action_bytes, &self.ranges).levels;
        let fitted = |([least, most], level): (&[i64; 2], i64)| Remainder {
            value: level.clamp(*least, *most.max(least)),
            level,
        };
        let mut ordered: Vec<(usize, Remainder)> =
            self.commands.iter().copied().zip(self.ranges.iter().zip(levels).map(fitted)).collect();
        ordered.sort_unstable_by_key(|(command, _)| *command);
        ordered.into_iter().map(|(_, remainder)| remainder).collect()
    }
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
