//! What was seen of commands, with the commands of which the same was seen, and what is nearest to it.

use std::collections::BTreeMap;

/// What an observer sees of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenOutput {
    pub size: u64,
    /// The number of replies, or their bytes; 0 if they are not seen.
    pub replies: u64,
}

impl SeenOutput {
    fn distance(self, other: Self) -> u128 {
        square(self.size.abs_diff(other.size)).saturating_add(square(self.replies.abs_diff(other.replies)))
    }
}

fn square(apart: u64) -> u128 {
    u128::from(apart) * u128::from(apart)
}

#[derive(Debug)]
pub(super) struct OutputCells {
    /// In ascending order.
    pub(super) outputs: Vec<SeenOutput>,
    pub(super) rows: Vec<Vec<usize>>,
}

impl OutputCells {
    pub(super) fn new(outputs: &[SeenOutput]) -> Self {
        let mut cells: BTreeMap<SeenOutput, Vec<usize>> = BTreeMap::new();
        for (row, output) in outputs.iter().enumerate() {
            cells.entry(*output).or_default().push(row);
        }
        let (outputs, rows) = cells.into_iter().unzip();
        Self { outputs, rows }
    }

    /// All known cells of the least distance to an output, without the cell of that very output.
    pub(super) fn nearest(&self, output: SeenOutput, is_known: impl Fn(usize) -> bool) -> Vec<usize> {
        let (mut least, mut nearest) = (u128::MAX, Vec::new());
        let mut visit = |cell: usize| {
            let other = self.outputs[cell];
            if other != output && is_known(cell) {
                let distance = output.distance(other);
                if distance < least {
                    least = distance;
                    nearest.clear();
                }
                if distance == least {
                    nearest.push(cell);
                }
            }
            // Sizes are further and further away on either side.
            square(other.size.abs_diff(output.size)) <= least
        };
        let at = self.outputs.partition_point(|other| *other < output);
        _ = (at..self.outputs.len()).all(&mut visit);
        _ = (0..at).rev().all(&mut visit);
        nearest
    }

    pub(super) fn of_rows(&self) -> Vec<usize> {
        let mut of_rows = vec![0; self.rows.iter().map(Vec::len).sum()];
        for (cell, rows) in self.rows.iter().enumerate() {
            for row in rows {
                of_rows[*row] = cell;
            }
        }
        of_rows
    }
}

/// Calls `visit` with the commands of each cell and how many of them have each secret. `counts` has a 0 for each secret,
/// before and after.
pub(super) fn count_secrets(
    cells: &OutputCells,
    secrets: &[u32],
    counts: &mut [u32],
    mut visit: impl FnMut(usize, &[usize], &[u32]),
) {
    for (cell, rows) in cells.rows.iter().enumerate() {
        for row in rows {
            counts[secrets[*row] as usize] += 1;
        }
        visit(cell, rows, counts);
        for row in rows {
            counts[secrets[*row] as usize] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nearest_cells_are_those_that_a_search_of_all_finds(
            outputs in prop::collection::vec((0_u64..30, 0_u64..30, any::<bool>()), 1..40),
            output in (0_u64..30, 0_u64..30),
        ) {
            let seen = |(size, replies)| SeenOutput { size, replies };
            let known: Vec<SeenOutput> =
                outputs.iter().filter(|(.., is_known)| *is_known).map(|one| seen((one.0, one.1))).collect();
            let cells = OutputCells::new(&outputs.iter().map(|one| seen((one.0, one.1))).collect::<Vec<_>>());
            let output = seen(output);
            let is_known = |cell: usize| known.contains(&cells.outputs[cell]);
            let mut found = cells.nearest(output, is_known);
            found.sort_unstable();
            let distance = |cell: &usize| output.distance(cells.outputs[*cell]);
            let is_other = |cell: &usize| is_known(*cell) && cells.outputs[*cell] != output;
            let others: Vec<usize> = (0..cells.outputs.len()).filter(is_other).collect();
            let least = others.iter().map(distance).min();
            prop_assert_eq!(found, others.into_iter().filter(|cell| Some(distance(cell)) == least).collect::<Vec<_>>());
        }
    }

    #[test]
    fn distances_do_not_overflow() {
        let far = SeenOutput { size: u64::MAX, replies: u64::MAX };
        let cells = OutputCells::new(&[far]);
        assert_eq!(cells.nearest(SeenOutput::default(), |_| true), [0]);
        assert!(cells.nearest(far, |_| true).is_empty());
    }
}
