//! Observers who learned from other commands, and how often they are right.
//!
//! Both name the secret that was most frequent among the commands of which they saw the same. Where they never saw the
//! same, one names the most frequent secret of all (the frequentist estimate), the other that of the nearest outputs
//! (the nearest neighbours of Cherubin, Chatzikokolakis and Palamidessi, S&P 2019). Among equals, they name the one that
//! is more frequent in all, then the first. No rule depends on the commands it is tested on, so what is expected of
//! either is at most V.

use super::output_cells::{NearestCells, OutputCells};
use super::time_blocks::TimeBlocks;

/// How many commands observers name who learned from all blocks but the one that a command is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NamedCounts {
    /// An observer who sees nothing.
    pub(super) guessing: u64,
    pub(super) frequentist: u64,
    pub(super) nearest: u64,
}

impl NamedCounts {
    /// Tests each command on what the other blocks teach. Secrets are below `secret_count`.
    pub(super) fn new(secrets: &[u32], secret_count: usize, cells: &OutputCells, blocks: &TimeBlocks) -> Self {
        let mut counts = Self::default();
        (0..blocks.count).for_each(|block| counts.add_block(secrets, secret_count, cells, &blocks.of_rows, block));
        counts
    }

    fn add_block(&mut self, secrets: &[u32], secret_count: usize, cells: &OutputCells, blocks: &[usize], block: usize) {
        let mut totals = vec![0_u64; secret_count];
        for (secret, of) in secrets.iter().zip(blocks) {
            totals[*secret as usize] += u64::from(*of != block);
        }
        let learned = |row: &&usize| blocks[**row] != block;
        let guess = most_frequent((0..).zip(&totals).map(|(secret, total)| (secret, *total)), &totals);
        let is_known = |(_, rows): &(_, &Vec<usize>)| rows.iter().any(|row| blocks[*row] != block);
        let known = cells.outputs.iter().copied().zip(0..).zip(&cells.rows).filter(is_known).map(|(cell, _)| cell);
        let nearest_cells = NearestCells::new(known);
        let mut votes = vec![0_u64; secret_count];
        for (output, rows) in cells.outputs.iter().zip(&cells.rows) {
            let tested = || rows.iter().filter(|row| blocks[**row] == block);
            if tested().next().is_none() {
                continue;
            }
            let right = |guess: Option<u32>| tested().filter(|row| Some(secrets[**row]) == guess).count() as u64;
            self.guessing += right(guess);
            let is_seen = rows.iter().any(|row| blocks[*row] != block);
            let near: Vec<&Vec<usize>> = if is_seen {
                vec![rows]
            } else {
                nearest_cells.others(*output).into_iter().filter_map(|cell| cells.rows.get(cell)).collect()
            };
            let neighbours = || near.iter().flat_map(|rows| rows.iter()).filter(learned).map(|row| secrets[*row]);
            for secret in neighbours() {
                votes[secret as usize] += 1;
            }
            let nearest = most_frequent(neighbours().map(|secret| (secret, votes[secret as usize])), &totals);
            for secret in neighbours() {
                votes[secret as usize] = 0;
            }
            self.nearest += right(nearest);
            self.frequentist += right(if is_seen { nearest } else { guess });
        }
    }
}

/// The secret with the most votes; among equals the one that is more frequent in all, then the first.
fn most_frequent(votes: impl Iterator<Item = (u32, u64)>, totals: &[u64]) -> Option<u32> {
    let order = |(secret, votes): &(u32, u64)| {
        (*votes, totals.get(*secret as usize).copied().unwrap_or(0), std::cmp::Reverse(*secret))
    };
    votes.filter(|(_, votes)| *votes > 0).max_by_key(order).map(|(secret, _)| secret)
}
