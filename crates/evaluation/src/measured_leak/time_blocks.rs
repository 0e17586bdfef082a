//! Which commands are left out together while an observer learns from the others: those that follow each other in time.
//!
//! What varies with time (a message number, an open session) is alike in neighbours. An observer who learned from the
//! command just before and the one just after would name more than one who learned on another day, so whole blocks of
//! time are left out. The commands of each secret are divided by themselves: where all of one kind were recorded in a
//! row, a block of the whole recording would leave none of them to learn from.

use std::collections::BTreeMap;

use super::secret_numbers::SecretNumbers;

/// So many blocks, as is usual.
const BLOCKS: usize = 10;

/// The block of each command.
#[derive(Debug, Clone)]
pub struct TimeBlocks {
    pub(super) count: usize,
    pub(super) of_rows: Vec<usize>,
}

impl TimeBlocks {
    /// Blocks of commands in order of time, whose labels are numbered. Fewer than ten are left out one by one.
    pub fn new(labels: &SecretNumbers) -> Self {
        let secrets = labels.numbers();
        let count = BLOCKS.min(secrets.len()).max(1);
        let mut by_secret: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, secret) in secrets.iter().enumerate() {
            by_secret.entry(*secret).or_default().push(row);
        }
        let mut of_rows = vec![0; secrets.len()];
        for rows in by_secret.values() {
            // Secrets with fewer commands than blocks are spread over all blocks by the time of their first command.
            let first = rows.first().map_or(0, |row| row * count / secrets.len());
            for (rank, row) in rows.iter().enumerate() {
                of_rows[*row] = (first + rank * count / rows.len()) % count;
            }
        }
        Self { count, of_rows }
    }

    /// The block of each command, as a number from 0 on.
    pub fn of_rows(&self) -> &[usize] {
        &self.of_rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_each_other_in_time_where_secrets_alternate() {
        let secrets: Vec<u32> = (0..200).map(|row| row % 2).collect();
        let TimeBlocks { count, of_rows } = TimeBlocks::new(&SecretNumbers::new(&secrets));
        assert_eq!(count, 10);
        assert!(of_rows.iter().enumerate().all(|(row, block)| *block == row / 20), "{of_rows:?}");
    }

    #[test]
    fn every_block_leaves_some_commands_of_each_secret_that_has_two() {
        // One after another, as in experiments.
        let runs = [5, 2, 40, 1, 12].iter().zip(0..);
        let secrets: Vec<u32> = runs.flat_map(|(times, secret)| vec![secret; *times]).collect();
        let TimeBlocks { count, of_rows } = TimeBlocks::new(&SecretNumbers::new(&secrets));
        for block in 0..count {
            for secret in [0, 1, 2, 4] {
                let left =
                    secrets.iter().zip(&of_rows).filter(|(other, of)| **other == secret && **of != block).count();
                assert!(left > 0, "secret {secret} is wholly in block {block}");
            }
        }
        assert_eq!(TimeBlocks::new(&SecretNumbers::new(&[0, 1, 0])).count, 3);
    }
}
