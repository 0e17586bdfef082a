//! Observers who learned from other commands, and how often they are right.
//!
//! Both name the secret that was most frequent among the commands of which they saw the same. Where they never saw the
//! same, one names the most frequent secret of all (the frequentist estimate), the other that of the nearest outputs
//! (the nearest neighbours of Cherubin, Chatzikokolakis and Palamidessi, S&P 2019). Among equals, they name the one that
//! is more frequent in all, then the first.
//!
//! Each command is named by who learned from all others but its neighbours in time (h-block cross-validation: Burman,
//! Chow and Nolan, Biometrika 81 (1994) 351), since what varies with time, such as a message number, is alike in them.
//! So no observer knows the command that it is tested on, and what is expected of any is at most V. Parts of the commands
//! in which each secret has its share would not do: a secret that is frequent by chance would be so in every part.
//!
//! All these observers learned from nearly the same commands, so that chance favours all of them or none. Where that
//! matters, another one learns only from what came before (progressive validation: Blum, Kalai and Langford, COLT 1999).
//! Whatever came before, it is right about the next command with a probability of at most V, so that more than a binomial
//! count are never to be expected.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::output_cells::{NearestCells, OutputCells};
use crate::statistics::bootstrap::block_length;

/// So many secrets that are as frequent in a cell are compared by how frequent they are in all.
const MOST_COMPARED: usize = 1000;

/// How many commands observers name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NamedCounts {
    /// An observer who sees nothing.
    pub(super) guessing: u64,
    pub(super) frequentist: u64,
    pub(super) nearest: u64,
}

/// Which commands an observer learned from, besides those too near in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LearnedFrom {
    /// All others.
    Others,
    /// Those before.
    Past,
}

/// How many commands before and after each one observers do not learn from who name it: as many as a block of the
/// bootstrap has.
pub fn left_out_beside(commands: usize) -> usize {
    block_length(commands)
}

impl NamedCounts {
    /// Tests each command, in order of time.
    pub(super) fn new(secrets: &[u32], cells: &OutputCells, learned: LearnedFrom) -> Self {
        let beside = left_out_beside(secrets.len());
        let of_rows = cells.of_rows();
        let rows: Vec<(usize, u32)> = of_rows.into_iter().zip(secrets.iter().copied()).collect();
        let mut known = Known::new(cells);
        if learned == LearnedFrom::Others {
            rows.iter().skip(beside).for_each(|row| known.add(*row));
        }
        let mut counts = Self::default();
        for (at, (cell, secret)) in rows.iter().copied().enumerate() {
            // Not known are the rows from `at - beside` to `at + beside`, or to the end.
            if let Some(row) = rows.get(at + beside).filter(|_| learned == LearnedFrom::Others) {
                known.remove(*row);
            }
            if let Some(row) = at.checked_sub(beside + 1).and_then(|at| rows.get(at)) {
                known.add(*row);
            }
            let guess = known.of_all();
            let seen = known.of_cell(cell);
            counts.guessing += u64::from(guess == Some(secret));
            counts.frequentist += u64::from(seen.or(guess) == Some(secret));
            counts.nearest += u64::from(seen.or_else(|| known.of_nearest(cell)) == Some(secret));
        }
        counts
    }
}

/// The commands that an observer learned from.
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

    /// The most frequent secret.
    fn of_all(&self) -> Option<u32> {
        self.of_all.order.first().map(|(_, secret)| *secret)
    }

    /// The most frequent secret of a cell; `None` if no command of it is known.
    fn of_cell(&self, cell: usize) -> Option<u32> {
        let order = &self.of_cells.get(cell)?.order;
        let (most, _) = order.first()?;
        let equals = order.iter().take_while(|(votes, _)| votes == most).map(|(_, secret)| *secret);
        equals.take(MOST_COMPARED).max_by_key(|secret| (self.of_all.votes_of(*secret), Reverse(*secret)))
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

/// How many commands have each secret.
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
