//! Experiment design: which sizes the labelled commands determine, and which commands to record for the others.
//!
//! A command is a row of the design matrix: 1 for |ac|, then how often each action occurs. The sizes are determined if
//! the rank of the matrix is the number of unknowns. Linearly independent rows form a matroid, for which the greedy
//! choice is optimal: every proposed command increases the rank, so there are as few as possible, with as few actions
//! as possible.

use crate::{LabelledCommand, Limits};

/// The modulus of all arithmetic, a prime (2⁶¹ − 1). Rows that are independent modulo a prime are independent over the
/// rationals. The converse fails only for determinants divisible by the prime, which real counts do not have.
const PRIME: u64 = (1 << 61) - 1;

/// Commands to record next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentDesign {
    /// How often each action occurs in each command.
    pub commands: Vec<Vec<u32>>,
    /// Indices of the actions whose sizes remain undetermined: the inventory allows no command that would determine
    /// them.
    pub undeterminable: Vec<usize>,
}

impl ExperimentDesign {
    /// The commands that are missing to determine the sizes of all `actions`: as few as possible, with as few actions
    /// as possible. None if the labelled commands suffice.
    pub fn missing(actions: usize, commands: &[LabelledCommand], limits: &Limits) -> Self {
        let mut space = RowSpace::of(actions, commands);
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
                if let Some(count) = more.get_mut(turn % actions) {
                    *count += 1;
                }
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

/// Indices of the actions whose sizes the commands do not determine: those that can change without changing the size of
/// any command.
pub(crate) fn undetermined_actions(actions: usize, commands: &[LabelledCommand]) -> Vec<usize> {
    RowSpace::of(actions, commands).undetermined()
}

/// The row space of the design matrix, as a basis in echelon form.
struct RowSpace {
    /// The basis, indexed by each row's first non-zero column, which is 1.
    rows: Vec<Option<Vec<u64>>>,
}

impl RowSpace {
    fn of(actions: usize, commands: &[LabelledCommand]) -> Self {
        let mut space = Self { rows: vec![None; actions + 1] };
        let mut different: Vec<&[u32]> = commands.iter().map(|command| command.counts.as_slice()).collect();
        different.sort_unstable();
        different.dedup();
        for counts in different {
            if space.is_full() {
                break;
            }
            space.insert(counts);
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
        if let Some(basis) = self.rows.get_mut(column) {
            *basis = Some(row);
        }
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

    /// The actions whose unit row lies outside this space.
    fn undetermined(&self) -> Vec<usize> {
        let is_outside = |action: &usize| {
            let mut unit = vec![0; self.rows.len()];
            if let Some(cell) = unit.get_mut(action + 1) {
                *cell = 1;
            }
            self.reduce(&mut unit).is_some()
        };
        (0..self.rows.len().saturating_sub(1)).filter(is_outside).collect()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::labelled_command::action_bytes;
    use crate::testing::{actions, command, device, home};
    use crate::{Fit, FitMethod, Inventory};

    fn missing(counts: &[[u32; 3]]) -> ExperimentDesign {
        let commands: Vec<_> = counts.iter().map(|counts| command(100, counts)).collect();
        ExperimentDesign::missing(3, &commands, &home().limits(&actions(&["on", "off", "red"])).unwrap())
    }

    #[test]
    fn actions_in_fixed_proportions_are_undetermined() {
        let commands = [[1, 2, 0], [2, 4, 1], [3, 6, 0], [0, 0, 3]].map(|counts| command(100, &counts));
        assert_eq!(undetermined_actions(3, &commands), [0, 1]);
        let same_total = [[1, 2, 0], [2, 1, 0], [0, 3, 0]].map(|counts| command(100, &counts));
        assert_eq!(
            undetermined_actions(3, &same_total),
            [0, 1, 2],
            "three actions in every command: |ac| could be theirs"
        );
    }

    #[test]
    fn one_command_is_proposed_for_each_missing_dimension() {
        assert_eq!(missing(&[]).commands, [vec![1, 0, 0], vec![0, 1, 0], vec![0, 0, 1], vec![2, 0, 0]]);
        assert_eq!(missing(&[[1, 0, 0], [2, 0, 0], [0, 3, 1]]).commands, [[0, 1, 0]]);
        assert_eq!(missing(&[[1, 1, 0], [2, 2, 0], [0, 0, 1]]).commands, [[1, 0, 0]], "two that always occur together");
        assert_eq!(missing(&[[1, 0, 0], [0, 1, 0], [0, 0, 1]]).commands, [[2, 0, 0]], "one action in every command");
        assert_eq!(missing(&[[1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 1]]).commands, Vec::<Vec<u32>>::new());
    }

    #[test]
    fn only_commands_that_the_inventory_allows_are_proposed() {
        let actions = actions(&["open", "shut"]);
        let design = |devices: &[(u32, &[&str])]| {
            let kinds = devices.iter().zip(["a", "b"]).map(|((count, actions), name)| device(name, *count, actions));
            let limits = Inventory { devices: kinds.collect() }.limits(&actions).unwrap();
            ExperimentDesign::missing(2, &[], &limits)
        };
        let two_doors = design(&[(1, &["open"]), (1, &["shut"])]);
        assert_eq!(two_doors.commands, [[1, 0], [0, 1], [1, 1]], "never the same twice");
        assert_eq!(two_doors.undeterminable, Vec::<usize>::new());
        let one_door = design(&[(1, &["open", "shut"])]);
        assert_eq!(
            (one_door.commands.len(), one_door.undeterminable),
            (2, vec![0, 1]),
            "one action in every command leaves |ac| undetermined"
        );
    }

    #[test]
    fn long_commands_stay_within_the_inventory() {
        let limits = home().limits(&actions(&["on", "off", "red"])).unwrap();
        assert_eq!(ExperimentDesign::long_commands(3, &limits, 16).commands, [[1, 1, 1], [2, 2, 2], [4, 4, 4]]);
        assert_eq!(ExperimentDesign::long_commands(3, &limits, 6).commands.len(), 2);
        let free = ExperimentDesign::long_commands(2, &Limits::free(2), 12).commands;
        assert_eq!(free, [[2, 1], [3, 3], [6, 6]], "each action in turn");
        let few = Inventory { devices: vec![device("plug", 3, &["on"]), device("lamp", 1, &["red"])] };
        let few = few.limits(&actions(&["on", "red"])).unwrap();
        assert_eq!(ExperimentDesign::long_commands(2, &few, 16).commands, [[2, 1]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Whatever was labelled, the proposed commands determine every size, and none of them is superfluous.
        #[test]
        fn proposed_commands_determine_all_sizes(
            sizes in prop::collection::vec(20i64..60, 1..7),
            labelled in prop::collection::vec(prop::collection::vec(0u32..3, 6), 0..6),
            plugs in 2u32..5,
            lamps in 1u32..3,
        ) {
            let names: Vec<String> = (0..sizes.len()).map(|at| format!("a{at}")).collect();
            let refs: Vec<&str> = names.iter().map(String::as_str).collect();
            let half = &refs[..refs.len().div_ceil(2)];
            let inventory = Inventory { devices: vec![device("plug", plugs, half), device("lamp", lamps, &refs)] };
            let limits = inventory.limits(&actions(&refs)).unwrap();
            let recorded = |counts: &[u32]| command(70 + action_bytes(&sizes, counts), counts);
            let labelled = labelled.iter().map(|counts| &counts[..sizes.len()]).filter(|counts| limits.admits(counts));
            let mut commands: Vec<_> = labelled.map(recorded).collect();
            let design = ExperimentDesign::missing(sizes.len(), &commands, &limits);
            prop_assert_eq!(&design.undeterminable, &[] as &[usize]);
            prop_assert!(design.commands.len() <= sizes.len() + 1);
            for counts in &design.commands {
                prop_assert!(limits.admits(counts) && counts.iter().sum::<u32>() <= 2);
                commands.extend([recorded(counts), recorded(counts), recorded(counts)]);
            }
            let fit = Fit::learn(FitMethod::Robust, &names, &commands).unwrap();
            prop_assert_eq!(fit.actions.iter().map(|action| action.size).collect::<Vec<_>>(), sizes.clone());
            prop_assert_eq!(fit.overhead, 70);
            prop_assert!(ExperimentDesign::missing(sizes.len(), &commands, &limits).commands.is_empty());
            for left_out in &design.commands {
                let fewer: Vec<_> = commands.iter().filter(|command| command.counts != *left_out).cloned().collect();
                prop_assert!(!undetermined_actions(sizes.len(), &fewer).is_empty());
            }
        }
    }
}
