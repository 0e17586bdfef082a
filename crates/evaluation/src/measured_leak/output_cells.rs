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

#[derive(Debug, Default)]
pub(super) struct NearestCells {
    by_size: BTreeMap<u64, BTreeMap<u64, usize>>,
}

impl NearestCells {
    pub(super) fn new(cells: impl Iterator<Item = (SeenOutput, usize)>) -> Self {
        let mut nearest = Self::default();
        cells.for_each(|(output, cell)| nearest.insert(output, cell));
        nearest
    }

    /// Adds the cell of an output, unless it is there.
    pub(super) fn insert(&mut self, SeenOutput { size, replies }: SeenOutput, cell: usize) {
        self.by_size.entry(size).or_default().insert(replies, cell);
    }

    /// All cells of the least distance to an output, without the cell of that very output.
    pub(super) fn others(&self, output: SeenOutput) -> Vec<usize> {
        let (mut least, mut cells) = (u128::MAX, Vec::new());
        let mut visit = |size: &u64, column: &BTreeMap<u64, usize>| {
            if square(size.abs_diff(output.size)) > least {
                return false;
            }
            let above =
                column.range(output.replies..).find(|(replies, _)| (**replies, *size) != (output.replies, output.size));
            let below = column.range(..output.replies).next_back();
            for (replies, cell) in above.into_iter().chain(below) {
                let distance = output.distance(SeenOutput { size: *size, replies: *replies });
                if distance < least {
                    least = distance;
                    cells.clear();
                }
                if distance == least {
                    cells.push(*cell);
                }
            }
            true
        };
        // Sizes are further and further away on either side.
        _ = self.by_size.range(output.size..).all(|(size, column)| visit(size, column));
        _ = self.by_size.range(..output.size).rev().all(|(size, column)| visit(size, column));
        cells
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nearest_cells_are_those_that_a_search_of_all_finds(
            outputs in prop::collection::vec((0_u64..30, 0_u64..30), 1..40),
            output in (0_u64..30, 0_u64..30),
        ) {
            let seen = |(size, replies)| SeenOutput { size, replies };
            let cells = OutputCells::new(&outputs.into_iter().map(seen).collect::<Vec<_>>());
            let output = seen(output);
            let nearest = NearestCells::new(cells.outputs.iter().copied().zip(0..));
            let mut found = nearest.others(output);
            found.sort_unstable();
            let others = || cells.outputs.iter().filter(|other| **other != output).map(|other| output.distance(*other));
            let least = others().min();
            let is_nearest = |cell: &usize| cells.outputs[*cell] != output && Some(output.distance(cells.outputs[*cell])) == least;
            prop_assert_eq!(found, (0..cells.outputs.len()).filter(is_nearest).collect::<Vec<_>>());
        }
    }

    #[test]
    fn distances_do_not_overflow() {
        let far = SeenOutput { size: u64::MAX, replies: u64::MAX };
        let nearest = NearestCells::new([(far, 7)].into_iter());
        assert_eq!(nearest.others(SeenOutput::default()), [7]);
        assert!(nearest.others(far).is_empty());
    }
}
