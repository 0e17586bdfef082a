//! Experiment design: which sizes the labelled commands determine, which actions they separate, and which commands to
//! record for the others.
//!
//! A command is a row of the design matrix: 1 for |ac|, then how often each action occurs. The sizes are determined if
//! the rank of the matrix is the number of unknowns. Linearly independent rows form a matroid, for which the greedy
//! choice is optimal: every proposed command increases the rank, so there are as few as possible, with as few actions
//! as possible.

use std::collections::BTreeSet;

use sizeleak_model::{LabelledCommand, Limits};

/// The modulus of all arithmetic, a prime (2⁶¹ − 1). Rows that are independent modulo a prime are independent over the
/// rationals. The converse fails only for determinants divisible by the prime, which real counts do not have.
const PRIME: u64 = (1 << 61) - 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentDesign {
    /// How often each action occurs in each command.
    pub commands: Vec<Vec<u32>>,
    /// Indices of the actions whose sizes remain undetermined: the inventory allows no command that would do so.
    pub undeterminable: Vec<usize>,
}

impl ExperimentDesign {
    /// The commands that are missing to determine the sizes of all `actions`: as few as possible, with as few actions
    /// as possible. None if the labelled commands, each given by how often each action occurs, suffice.
    pub fn missing<'a>(actions: usize, labelled: impl Iterator<Item = &'a [u32]>, limits: &Limits) -> Self {
        let mut space = RowSpace::of(actions, labelled);
        let undetermined = space.undetermined();
        let mut proposed = Vec::new();
        let mut propose = |space: &mut RowSpace, counts: Vec<u32>| {
            if !space.is_full() && limits.admits(&counts) && space.insert(&counts) {
                proposed.push(counts);
            }
        };
        for action in 0..actions {
            propose(&mut space, with(actions, &[action]));
        }
        // All singles are in. If they leave |ac| undetermined, any one command of two actions determines it.
        let all = || undetermined.iter().copied().chain(0..actions);
        for action in all() {
            propose(&mut space, with(actions, &[action, action]));
        }
        for first in all() {
            for second in 0..actions {
                propose(&mut space, with(actions, &[first, second]));
            }
        }
        Self { commands: proposed, undeterminable: space.undetermined() }
    }

    /// Commands of many actions, which show where length fields grow: of 3, 6, 12... actions, at most `most` and what
    /// the inventory allows. They use all actions in turn.
    pub fn long_commands(actions: usize, limits: &Limits, most: u32) -> Self {
        let (mut commands, mut turn) = (Vec::new(), 0);
        let lengths = std::iter::successors(Some(3), |length| Some(2 * length));
        for length in lengths.take_while(|length| actions > 0 && *length <= most.min(limits.max_actions())) {
            let mut counts = vec![0; actions];
            let (mut total, mut refused) = (0, 0);
            while total < length && refused < actions {
                let mut more: Vec<u32> = counts.clone();
                more[turn % actions] += 1;
                turn += 1;
                if limits.admits(&more) {
                    (counts, total, refused) = (more, total + 1, 0);
                } else {
                    refused += 1;
                }
            }
            commands.push(counts);
        }
        Self { commands, undeterminable: Vec::new() }
    }
}

/// A command of these actions, as counts.
fn with(actions: usize, chosen: &[usize]) -> Vec<u32> {
    (0..actions).map(|action| chosen.iter().filter(|other| **other == action).count() as u32).collect()
}

/// Indices of the actions whose sizes commands do not determine: those that can change without changing any command's.
pub(crate) fn undetermined_actions(actions: usize, commands: &[LabelledCommand]) -> Vec<usize> {
    RowSpace::of(actions, commands.iter().map(|command| &command.counts[..])).undetermined()
}

/// The row space of the design matrix, as a basis in echelon form.
struct RowSpace {
    /// The basis, indexed by each row's first non-zero column, which is 1.
    rows: Vec<Option<Vec<u64>>>,
}

impl RowSpace {
    /// That of commands, each given by how often each action occurs.
    fn of<C: AsRef<[u32]> + Ord>(actions: usize, commands: impl Iterator<Item = C>) -> Self {
        let mut space = Self { rows: vec![None; actions + 1] };
        for counts in commands.collect::<BTreeSet<C>>() {
            if space.is_full() {
                break;
            }
            space.insert(counts.as_ref());
        }
        space
    }

    fn is_full(&self) -> bool {
        self.rows.iter().all(Option::is_some)
    }

    /// Adds a command. Returns whether it increases the rank.
    fn insert(&mut self, counts: &[u32]) -> bool {
        let mut row: Vec<u64> = std::iter::once(1).chain(counts.iter().map(|count| u64::from(*count))).collect();
        row.resize(self.rows.len(), 0);
        let Some((column, value)) = self.reduce(&mut row) else { return false };
        let inverse = power(value, PRIME - 2);
        for cell in &mut row {
            *cell = product(*cell, inverse);
        }
        self.rows[column] = Some(row);
        true
    }

    /// Eliminates the basis from a row. Returns the first column that is not 0 afterwards, with its value.
    fn reduce(&self, row: &mut [u64]) -> Option<(usize, u64)> {
        for (column, basis) in self.rows.iter().enumerate() {
            let value = row.get(column).copied().filter(|value| *value > 0);
            match (value, basis) {
                (None, _) => {}
                (Some(value), None) => return Some((column, value)),
                (Some(value), Some(basis)) => {
                    for (cell, other) in row.iter_mut().zip(basis).skip(column) {
                        *cell = (*cell + PRIME - product(value, *other)) % PRIME;
                    }
                }
            }
        }
        None
    }

    fn undetermined(&self) -> Vec<usize> {
        (0..self.rows.len().saturating_sub(1)).filter(|action| !self.contains_unit(action + 1)).collect()
    }

    /// Whether the row of 1 in this column and 0 elsewhere is in the space: commands determine |ac| (0), or an action.
    fn contains_unit(&self, column: usize) -> bool {
        let mut unit = vec![0; self.rows.len()];
        unit[column] = 1;
        self.reduce(&mut unit).is_none()
    }
}

fn product(one: u64, other: u64) -> u64 {
    (u128::from(one) * u128::from(other) % u128::from(PRIME)) as u64
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let (mut power, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = product(power, square);
        }
        square = product(square, square);
        exponent >>= 1;
    }
    power
}

/// What labelled commands say about the parts of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Separation {
    /// Actions whose size is determined, by commands of such actions alone: indices in ascending order.
    pub separate: Vec<usize>,
    /// Actions that occur, and whose size is tied to |ac| or to the size of other actions.
    pub tied: Vec<usize>,
    pub absent: Vec<usize>,
}

impl Separation {
    /// What commands of `actions` actions separate; those without any may be of another form, and do not count.
    pub fn of(actions: usize, commands: &[LabelledCommand]) -> Self {
        let occurs = |action: &usize| commands.iter().any(|command| count(command, *action) > 0);
        let (present, absent): (Vec<usize>, Vec<usize>) = (0..actions).partition(occurs);
        let mut separate = present.clone();
        // What remains undetermined is left out with its commands, until the rest determines itself.
        loop {
            let left = commands.iter().filter_map(|command| counts_of(command, &separate));
            let space = RowSpace::of(separate.len(), left);
            if separate.is_empty() || !space.contains_unit(0) {
                separate.clear();
                break;
            }
            let undetermined = space.undetermined();
            if undetermined.is_empty() {
                break;
            }
            let determined = (0..).zip(separate).filter(|(at, _)| !undetermined.contains(at));
            separate = determined.map(|(_, action)| action).collect();
        }
        let tied = present.into_iter().filter(|action| !separate.contains(action)).collect();
        Self { separate, tied, absent }
    }

    /// The command with the counts of the separate actions alone; `None` if it has no action, or others.
    pub fn project(&self, command: &LabelledCommand) -> Option<LabelledCommand> {
        let counts = counts_of(command, &self.separate)?;
        Some(LabelledCommand { counts, ..command.clone() })
    }
}

/// How often each of some actions occurs; `None` if the command has none, or others.
fn counts_of(command: &LabelledCommand, actions: &[usize]) -> Option<Vec<u32>> {
    let counts: Vec<u32> = actions.iter().map(|action| count(command, *action)).collect();
    let total: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    (total > 0 && total == command.total()).then_some(counts)
}

fn count(command: &LabelledCommand, action: usize) -> u32 {
    command.counts.get(action).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
