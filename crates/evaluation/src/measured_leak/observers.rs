//! Observers who learned from other commands, and how often they are right; and what no observer exceeds: upper bounds
//! of V that hold for any number of commands, as long as these are drawn independently.
//!
//! Two observers learn. Both name the secret that was most frequent among the commands of which they saw the same.
//! Where they never saw the same, one names the most frequent secret of all (the frequentist estimate), the other that
//! of the nearest outputs (the nearest neighbours of Cherubin, Chatzikokolakis and Palamidessi, S&P 2019). Among
//! equals, they name the one that is more frequent in all, then the first.
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

use serde::Serialize;

use super::output_cells::{OutputCells, count_secrets};
use crate::statistics::{Confidence, block_length, wilson};

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
        let length = rows.len().div_ceil(PARTS).max(1);
        let mut counts = Self::default();
        for (part, tested) in rows.chunks(length).enumerate() {
            let mut known = Known::new(cells);
            let others = rows.chunks(length).enumerate().filter(|(other, _)| *other != part);
            for row in others.flat_map(|(_, rows)| rows) {
                known.add(*row);
            }
            for row in tested {
                counts.add(&known, *row);
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
}

impl<'a> Known<'a> {
    fn new(cells: &'a OutputCells) -> Self {
        let of_cells = cells.rows.iter().map(|_| SecretVotes::default()).collect();
        Self { cells, of_cells, of_all: SecretVotes::default() }
    }

    fn add(&mut self, (cell, secret): (usize, u32)) {
        self.of_all.add(secret);
        self.of_cells[cell].add(secret);
    }

    fn of_all(&self) -> Option<u32> {
        self.of_all.leaders.first().copied()
    }

    /// The most frequent secret of a cell; `None` if no command of it is known.
    fn of_cell(&self, cell: usize) -> Option<u32> {
        let leaders = self.of_cells.get(cell)?.leaders.iter().copied();
        leaders.take(MAX_COMPARED).max_by_key(|secret| (self.of_all.votes_of(*secret), Reverse(*secret)))
    }

    /// The most frequent secret of the cells that are nearest to one.
    fn of_nearest(&self, cell: usize) -> Option<u32> {
        let near = self.cells.nearest(self.cells.outputs[cell], |cell| self.of_cells[cell].most > 0);
        if let [only] = near.as_slice() {
            return self.of_cell(*only);
        }
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for (secret, votes) in near.iter().filter_map(|cell| self.of_cells.get(*cell)).flat_map(|cell| &cell.votes) {
            *sums.entry(*secret).or_default() += votes;
        }
        let order = |(secret, votes): &(u32, u64)| (*votes, self.of_all.votes_of(*secret), Reverse(*secret));
        sums.into_iter().max_by_key(order).map(|(secret, _)| secret)
    }
}

#[derive(Debug, Default)]
struct SecretVotes {
    votes: BTreeMap<u32, u64>,
    /// The most that one has, and those that have it.
    most: u64,
    leaders: BTreeSet<u32>,
}

impl SecretVotes {
    fn votes_of(&self, secret: u32) -> u64 {
        self.votes.get(&secret).copied().unwrap_or(0)
    }

    fn add(&mut self, secret: u32) {
        let votes = self.votes.entry(secret).or_default();
        *votes += 1;
        if *votes > self.most {
            self.most = *votes;
            self.leaders.clear();
        }
        if *votes == self.most {
            self.leaders.insert(secret);
        }
    }
}

/// Two upper bounds of V. Each alone is exceeded with half the probability that the usual confidence leaves at one end,
/// so that both hold together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UpperBounds {
    /// The share of commands that an observer names who learned from these very commands, and more for chance. Its mean
    /// is at least V, and a command changes it by at most 1/n, so that it is below V by more than √(ln(1/α) / 2n) with a
    /// probability of at most α (by the inequality of `McDiarmid`, 1989).
    pub learned_by_heart: f64,
    /// From the errors of a single nearest neighbour: its error R bounds the least error R* of anybody by
    /// R ≤ 2R* − L/(L − 1) · R*² for L secrets (Cover and Hart 1967).
    pub nearest_neighbour: f64,
}

impl UpperBounds {
    pub(super) fn new(secrets: &[u32], times: &[u64], cells: &OutputCells) -> Self {
        let rows = secrets.len().max(1);
        let (mut named, mut wrong) = (0, 0.0);
        count_secrets(cells, secrets, &mut vec![0; times.len()], |_, rows, counts| {
            let alike = |row: &usize| counts[secrets[*row] as usize];
            named += rows.iter().map(alike).max().unwrap_or(0);
            // Each command, with one of the others of its cell as its neighbour.
            let others = rows.len().saturating_sub(1).max(1) as f64;
            wrong += rows.iter().map(|row| f64::from(rows.len() as u32 - alike(row)) / others).sum::<f64>();
        });
        let chance = ((2.0 / Confidence::USUAL.tail()).ln() / (2.0 * rows as f64)).sqrt();
        Self {
            learned_by_heart: (f64::from(named) / rows as f64 + chance).min(1.0),
            nearest_neighbour: cover_hart(least_error(wrong, rows), limit_of_secrets(times)),
        }
    }

    pub fn least(&self) -> f64 {
        self.learned_by_heart.min(self.nearest_neighbour)
    }
}

/// The least error of a single nearest neighbour that `wrong` of this many commands allow. Where an output was seen before,
/// the neighbour has the same one, however few commands there are, so its error is that of the limit of the theorem.
/// Commands whose output no other has count as named.
fn least_error(wrong: f64, rows: usize) -> f64 {
    wilson(wrong as u64, rows as u64, Confidence::OF_TWO).low
}

/// (L − 1) / L for L secrets, or 1 if there may be any number: some secret occurs only once, so there are others that
/// do not occur (Good 1953).
fn limit_of_secrets(times: &[u64]) -> f64 {
    if times.contains(&1) || times.len() < 2 { 1.0 } else { 1.0 - 1.0 / times.len() as f64 }
}

/// The greatest V that leaves a single neighbour this error.
fn cover_hart(error: f64, limit: f64) -> f64 {
    1.0 - limit * (1.0 - (1.0 - error / limit).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured_leak::output_cells::SeenOutput;
    use crate::statistics::tests::assert_near;

    #[test]
    fn error_of_a_neighbour_bounds_that_of_anybody_as_cover_and_hart_say() {
        for secrets in [2_u32, 3, 10] {
            let limit = 1.0 - 1.0 / f64::from(secrets);
            for best in [0.0, 0.1, 0.3, limit] {
                let neighbour = 2.0 * best - best * best / limit;
                assert_near(cover_hart(neighbour, limit), 1.0 - best, 1e-7);
            }
        }
        assert_near(cover_hart(0.0, 1.0), 1.0, 0.0);
        assert!(cover_hart(0.5, 1.0) > cover_hart(0.5, 0.5));
    }

    #[test]
    fn bounds_are_those_of_a_small_sample_by_hand() {
        // 100 commands of one size, half of each secret: learned by heart, half are named.
        let secrets: Vec<u32> = (0..100).map(|row| row % 2).collect();
        let cells = OutputCells::new(&vec![SeenOutput::default(); 100]);
        let bounds = UpperBounds::new(&secrets, &[50, 50], &cells);
        assert_near(bounds.learned_by_heart, 0.5 + (80_f64.ln() / 200.0).sqrt(), 1e-12);
        // 100 · 50/99 neighbours are of the other secret.
        let error = wilson(50, 100, Confidence::OF_TWO).low;
        assert_near(bounds.nearest_neighbour, 0.5 + 0.5 * (1.0 - 2.0 * error).sqrt(), 1e-12);
        // A size of its own for each command says nothing of what others could do.
        let own: Vec<SeenOutput> = (0..100).map(|size| SeenOutput { size, replies: 0 }).collect();
        assert_near(UpperBounds::new(&secrets, &[50, 50], &OutputCells::new(&own)).least(), 1.0, 0.0);
    }
}
