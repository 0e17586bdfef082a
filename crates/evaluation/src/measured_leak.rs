//! How much labelled commands show that sizes give away, with intervals and without a model: the empirical counterpart of
//! what `sizeleak-audit` computes.
//!
//! V is the share of commands that an observer names who knows how probable each secret is with each output, and 1 − V
//! the least error of anybody. It is bounded from below by an observer who learned from other commands (`observers`)
//! and from above by two theorems ([`UpperBounds`]). All of it takes commands to be drawn independently from the same
//! home; what varies slowly with time is met by leaving out those just before ([`left_out_before`]).

mod dependence;
mod observers;
mod output_cells;

use serde::Serialize;

use crate::statistics::{Confidence, Interval, wilson};
use observers::NamedCounts;
use output_cells::OutputCells;

pub use dependence::{MeasuredInformation, PermutationTest};
pub use observers::{UpperBounds, left_out_before};
pub use output_cells::SeenOutput;

/// More commands than this are not asked for.
const MAX_ASKED: u64 = 100_000;

/// Sizes or replies are reported to give labels away if the p-value is at most this.
pub const SIGNIFICANT: f64 = 0.05;

/// How much an observer of some outputs learns of a secret, as far as labelled commands show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredLeak {
    pub commands: u64,
    pub secrets: u64,
    /// How many of them have a secret that no other has: nobody can learn it from the others.
    pub secrets_once: u64,
    pub outputs: u64,
    /// How often an observer who sees nothing is right: the share of the most frequent secret.
    pub guessing: MeasuredShare,
    /// How often an observer is right who learned from the commands before, and guesses where the output is new.
    pub frequentist: MeasuredShare,
    /// How often an observer is right who learned from the commands before, and names the secret of the nearest output
    /// where it is new. It is the figure that counts, whichever is greater.
    pub named: MeasuredShare,
    /// The same of an observer who learned from all commands but a tenth, on that tenth, for each of ten. Where chance
    /// favours all its guesses together, its interval is too narrow.
    pub from_others: MeasuredShare,
    /// V lies here: at least what is named, at most the smaller of the upper bounds.
    pub vulnerability: Interval,
    pub upper_bounds: UpperBounds,
    pub times_guessing: MeasuredRatio,
    /// Whether outputs say nothing.
    pub independence: PermutationTest,
    pub information: MeasuredInformation,
    /// The fewest commands by which an observer who is always right could be told from one who guesses; `None` if all
    /// commands, or nearly all, have the same secret.
    pub fewest_commands: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredShare {
    pub share: f64,
    pub interval: Interval,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredRatio {
    /// What is named by the share of the most frequent secret.
    pub ratio: f64,
    /// V / V₀ lies here.
    pub interval: Interval,
}

impl MeasuredShare {
    /// Of `whole` commands `part`, with Wilson's interval.
    pub fn new(part: u64, whole: u64) -> Self {
        let interval = wilson(part, whole, Confidence::USUAL);
        Self { share: part as f64 / whole.max(1) as f64, interval }
    }
}

impl MeasuredLeak {
    /// What commands in order of time show: the secret and the output of each. The same `seed` gives the same figures.
    pub fn new(secrets: &SecretNumbers, outputs: &[SeenOutput], seed: u64) -> Self {
        let cells = OutputCells::new(outputs);
        let (numbers, count) = (secrets.numbers(), secrets.count());
        let times = secrets.times();
        let (commands, most) = (numbers.len() as u64, times.iter().copied().max().unwrap_or(0));
        let (past, others) = (NamedCounts::by_past(numbers, &cells), NamedCounts::by_others(numbers, &cells));
        let share = |part: u64| MeasuredShare::new(part, commands);
        let guessing = guessing(share(most), share(past.guessing));
        let named = share(past.nearest);
        let upper_bounds = UpperBounds::new(numbers, &times, &cells);
        let low = named.interval.low;
        let vulnerability = Interval { low, high: upper_bounds.least().max(low) };
        let times_guessing = MeasuredRatio {
            ratio: named.share / guessing.share,
            interval: Interval {
                low: (vulnerability.low / guessing.interval.high).max(1.0),
                high: vulnerability.high / guessing.interval.low,
            },
        };
        Self {
            commands,
            secrets: count as u64,
            secrets_once: times.iter().filter(|times| **times == 1).count() as u64,
            outputs: cells.outputs.len() as u64,
            guessing,
            frequentist: share(past.frequentist),
            named,
            from_others: share(others.nearest),
            vulnerability,
            upper_bounds,
            times_guessing,
            independence: PermutationTest::of_outputs(numbers, count, &cells, seed),
            information: MeasuredInformation::new(numbers, count, &cells, seed),
            fewest_commands: fewest_commands(guessing.share),
        }
    }

    /// Whether it is certain that outputs give secrets away: more are named than by guessing, their intervals are apart,
    /// and labels that are dealt out anew do not fit as well.
    pub fn is_certain(&self) -> bool {
        self.named.interval.low > self.guessing.interval.high && self.independence.p_value <= SIGNIFICANT
    }

    /// Whether there are too few commands to tell anything from guessing.
    pub fn has_too_few_commands(&self) -> bool {
        self.fewest_commands.is_none_or(|fewest| self.commands < fewest)
    }
}

/// The secret of each of some commands, as a number from 0 on, each of which occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretNumbers {
    numbers: Vec<u32>,
    count: usize,
}

impl SecretNumbers {
    /// Numbers secrets in ascending order.
    pub fn new<S: Ord + Clone>(secrets: &[S]) -> Self {
        let mut known = secrets.to_vec();
        known.sort();
        known.dedup();
        let number = |secret: &S| known.binary_search(secret).unwrap_or_default() as u32;
        Self { numbers: secrets.iter().map(number).collect(), count: known.len() }
    }

    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn times(&self) -> Vec<u64> {
        let mut times = vec![0; self.count];
        self.numbers.iter().for_each(|number| times[*number as usize] += 1);
        times
    }
}

/// V₀: the share of the most frequent secret among the commands. It is at least what was learned from commands before and
/// named blindly, and at most what the most frequent secret, which is chosen after counting, may be in all.
fn guessing(most_frequent: MeasuredShare, learned: MeasuredShare) -> MeasuredShare {
    let low = learned.interval.low.min(most_frequent.interval.low);
    MeasuredShare { interval: Interval { low, ..most_frequent.interval }, ..most_frequent }
}

/// The fewest commands for which the interval of being always right lies above that of guessing this share.
fn fewest_commands(guessing: f64) -> Option<u64> {
    let is_enough = |commands: &u64| {
        let guessed = (guessing * *commands as f64).ceil() as u64;
        wilson(*commands, *commands, Confidence::USUAL).low > wilson(guessed, *commands, Confidence::USUAL).high
    };
    if guessing < 1.0 { (1..=MAX_ASKED).find(is_enough) } else { None }
}

#[cfg(test)]
mod tests;
