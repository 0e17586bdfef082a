//! Observers who learned from other commands, and how often they are right.
//!
//! Both name the secret that was most frequent among the commands of which they saw the same. Where they never saw the
//! same, one names the most frequent secret of all (the frequentist estimate), the other that of the nearest outputs
//! (the nearest neighbours of Cherubin, Chatzikokolakis and Palamidessi, S&P 2019). Among equals, they name the one that
//! is more frequent in all, then the first.
//!
//! An observer names each command by what came before it (progressive validation: Blum, Kalai and Langford, COLT 1999),
//! without the commands just before, since what varies with time, such as a message number, is alike in neighbours.
//! Whatever came before, the next guess is right with a probability of at most V. So no more than a binomial count of
//! right guesses is to be expected. Leaving out one command after the other would not do: where two secrets are equally
//! frequent, the one that is left out is always the rarer one, and never named. Nor would parts in which each secret has
//! its share: a secret that is frequent by chance would be so in every part.
//!
//! Another observer learned from all commands but a tenth, in order of time, and is tested on that tenth. It knows more,
//! but chance favours all its guesses together, or none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::output_cells::{NearestCells, OutputCells};
use crate::statistics::bootstrap::block_length;

/// Of the secrets that are equally frequent in a cell, at most this many are compared by their frequency in all.
const MAX_COMPARED: usize = 1000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NamedCounts {
    pub(super) guessing: u64,
    pub(super) frequentist: u64,
    pub(super) nearest: u64,
}

/// How many commands just before each one an observer does not learn from who names it: as many as a block of the
/// bootstrap has.
pub fn left_out_before(commands: usize) -> usize {
    block_length(commands)
}

/// Commands are divided into this many parts; an observer who learned from the others is tested on each.
const PARTS: usize = 10;

impl NamedCounts {
    /// Tests each command, in order of time, on those before.
    pub(super) fn by_past(secrets: &[u32], cells: &OutputCells) -> Self {
        let rows = rows(secrets, cells);
        let before = left_out_before(secrets.len());
        let mut known = Known::new(cells);
        let mut counts = Self::default();
        for (at, row) in rows.iter().enumerate() {
            if let Some(row) = at.checked_sub(before + 1).and_then(|at| rows.get(at)) {
                known.add(*row);
            }
            counts.add(&known, *row);
        }
        counts
    }

    /// Tests each tenth, in order of time, on the others.
    pub(super) fn by_others(secrets: &[u32], cells: &OutputCells) -> Self {
        let rows = rows(secrets, cells);
        let mut known = Known::new(cells);
        for row in &rows {
            known.add(*row);
        }
        let mut counts = Self::default();
        for part in rows.chunks(rows.len().div_ceil(PARTS).max(1)) {
            for row in part {
                known.remove(*row);
            }
            for row in part {
                counts.add(&known, *row);
            }
            for row in part {
                known.add(*row);
            }
        }
        counts
    }

    fn add(&mut self, known: &Known<'_>, (cell, secret): (usize, u32)) {
        let (guess, seen) = (known.of_all(), known.of_cell(cell));
        self.guessing += u64::from(guess == Some(secret));
        self.frequentist += u64::from(seen.or(guess) == Some(secret));
        self.nearest += u64::from(seen.or_else(|| known.of_nearest(cell)) == Some(secret));
    }
}

fn rows(secrets: &[u32], cells: &OutputCells) -> Vec<(usize, u32)> {
    cells.of_rows().into_iter().zip(secrets.iter().copied()).collect()
}

struct Known<'a> {
    cells: &'a OutputCells,
    of_cells: Vec<SecretVotes>,
    of_all: SecretVotes,
    /// The cells with such commands.
    nearest: NearestCells,
}

impl<'a> Known<'a> {
    fn new(cells: &'a OutputCells) -> Self {
        let of_cells = cells.rows.iter().map(|_| SecretVotes::default()).collect();
        Self { cells, of_cells, of_all: SecretVotes::default(), nearest: NearestCells::default() }
    }

    fn add(&mut self, (cell, secret): (usize, u32)) {
        self.of_all.add(secret);
        if let (Some(votes), Some(output)) = (self.of_cells.get_mut(cell), self.cells.outputs.get(cell)) {
            votes.add(secret);
            self.nearest.insert(*output, cell);
        }
    }

    fn remove(&mut self, (cell, secret): (usize, u32)) {
        self.of_all.remove(secret);
        if let (Some(votes), Some(output)) = (self.of_cells.get_mut(cell), self.cells.outputs.get(cell)) {
            votes.remove(secret);
            if votes.order.is_empty() {
                self.nearest.remove(*output);
            }
        }
    }

    fn of_all(&self) -> Option<u32> {
        self.of_all.order.first().map(|(_, secret)| *secret)
    }

    /// The most frequent secret of a cell; `None` if no command of it is known.
    fn of_cell(&self, cell: usize) -> Option<u32> {
        let order = &self.of_cells.get(cell)?.order;
        let (most, _) = order.first()?;
        let equals = order.iter().take_while(|(votes, _)| votes == most).map(|(_, secret)| *secret);
        equals.take(MAX_COMPARED).max_by_key(|secret| (self.of_all.votes_of(*secret), Reverse(*secret)))
    }

    /// The most frequent secret of the cells that are nearest to one.
    fn of_nearest(&self, cell: usize) -> Option<u32> {
        let near = self.nearest.others(*self.cells.outputs.get(cell)?);
        if let [only] = near.as_slice() {
            return self.of_cell(*only);
        }
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for (secret, votes) in near.iter().filter_map(|cell| self.of_cells.get(*cell)).flat_map(|cell| &cell.votes) {
            *sums.entry(*secret).or_default() += votes;
        }
        let order = |(secret, votes): &(u32, u64)| (*votes, self.of_all.votes_of(*secret), Reverse(*secret));
        sums.into_iter().filter(|(_, votes)| *votes > 0).max_by_key(order).map(|(secret, _)| secret)
    }
}

#[derive(Debug, Default)]
struct SecretVotes {
    votes: BTreeMap<u32, u64>,
    /// Those with a command, the most frequent one first.
    order: BTreeSet<(Reverse<u64>, u32)>,
}

impl SecretVotes {
    fn votes_of(&self, secret: u32) -> u64 {
        self.votes.get(&secret).copied().unwrap_or(0)
    }

    fn add(&mut self, secret: u32) {
        self.set(secret, self.votes_of(secret) + 1);
    }

    fn remove(&mut self, secret: u32) {
        self.set(secret, self.votes_of(secret).saturating_sub(1));
    }

    fn set(&mut self, secret: u32, votes: u64) {
        if let Some(before) = self.votes.insert(secret, votes) {
            self.order.remove(&(Reverse(before), secret));
        }
        if votes > 0 {
            self.order.insert((Reverse(votes), secret));
        }
    }
}
