//! What remains of the commands' sizes without their actions, how well a step function fits it, and how action sizes
//! may be changed to fit it better.

use crate::LabelledCommand;
use crate::labelled_command::action_bytes;
use crate::step_function::{StepFunction, step_cost};

/// Pairs of sizes are changed together for at most this many actions.
const MAX_PAIRED_ACTIONS: usize = 24;

/// Sizes of commands without their actions, ordered by the bytes of the actions. (Ordered by the sizes themselves,
/// their noise would look like steps.)
pub(crate) struct Remainders {
    /// Bytes of the actions.
    action_bytes: Vec<i64>,
    /// Smallest and largest remainder.
    ranges: Vec<[i64; 2]>,
    /// Indices of the commands.
    commands: Vec<usize>,
}

/// A remainder and the level of the step function at its command.
#[derive(Clone, Copy)]
pub(crate) struct Remainder {
    /// The remainder; of a range, the value nearest to the level.
    pub(crate) value: i64,
    /// The level.
    pub(crate) level: i64,
}

impl Remainders {
    pub(crate) fn new(actions: &[i64], commands: &[LabelledCommand]) -> Self {
        let bytes = |command: &LabelledCommand| action_bytes(actions, &command.counts);
        let mut order: Vec<(i64, usize)> = commands.iter().map(bytes).zip(0..).collect();
        order.sort_unstable();
        let range = |(bytes, at): &(i64, usize)| {
            commands.get(*at).map_or([0; 2], |command| command.sizes.map(|size| size.saturating_sub(*bytes)))
        };
        let ranges = order.iter().map(range).collect();
        let (action_bytes, commands) = order.into_iter().unzip();
        Self { action_bytes, ranges, commands }
    }

    /// The cost of the best step function.
    pub(crate) fn cost(&self) -> i64 {
        step_cost(&self.action_bytes, &self.ranges)
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

/// A change of one or several action sizes: pairs of an action's index and the bytes to add.
pub(crate) struct SizeChange(Vec<(usize, i64)>);

impl SizeChange {
    /// All changes to try: one size or all sizes by up to 3 bytes; if there are few actions, also two by one byte each.
    pub(crate) fn all(actions: usize) -> Vec<Self> {
        let by = [1, -1, 2, -2, 3, -3];
        let mut changes: Vec<Self> = by.map(|by| Self((0..actions).map(|at| (at, by)).collect())).into();
        changes.extend((0..actions).flat_map(|at| by.map(|by| Self(vec![(at, by)]))));
        if actions <= MAX_PAIRED_ACTIONS {
            for first in 0..actions {
                for second in first + 1..actions {
                    let pairs = [(1, 1), (1, -1), (-1, 1), (-1, -1)];
                    changes.extend(pairs.map(|(a, b)| Self(vec![(first, a), (second, b)])));
                }
            }
        }
        changes
    }

    /// Applies the change to the sizes.
    pub(crate) fn apply(&self, sizes: &mut [i64]) {
        self.add(sizes, 1);
    }

    /// Undoes [`Self::apply`].
    pub(crate) fn revert(&self, sizes: &mut [i64]) {
        self.add(sizes, -1);
    }

    fn add(&self, sizes: &mut [i64], sign: i64) {
        for (at, by) in &self.0 {
            if let Some(size) = sizes.get_mut(*at) {
                *size = size.saturating_add(sign * by);
            }
        }
    }
}
