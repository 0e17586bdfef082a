//! The bits that sizes give away, corrected for the number of commands.

use std::f64::consts::LN_2;

use serde::Serialize;

use super::output_cells::OutputCells;
use crate::statistics::bootstrap::{BlockBootstrap, IntervalMethod, interval};
use crate::statistics::{Confidence, Interval};

/// The most samples of the bootstrap…
const MAX_DRAWS: usize = 1000;

/// …the fewest, of very many commands…
const MIN_DRAWS: usize = 200;

/// …and about this many commands are drawn in all.
const DRAWN: usize = 20_000_000;

/// The mutual information of secrets and outputs, in bits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredInformation {
    /// The estimate, corrected as Miller (1955) and Madow say.
    pub bits: f64,
    /// Its interval; `None` if less is `covered` than the interval is to hold.
    pub interval: Option<Interval>,
    /// The probability that a further command has a secret with an output that occurred together before (Good 1953).
    /// The correction knows of no others.
    pub covered: f64,
}

impl MeasuredInformation {
    /// Commands are in order of time; secrets are below `secret_count`.
    pub(super) fn new(secrets: &[u32], secret_count: usize, cells: &OutputCells, seed: u64) -> Self {
        let mut counts = PairCounts::new(secrets, secret_count, cells);
        let all: Vec<usize> = (0..secrets.len()).collect();
        let [counted, bits] = counts.bits(&all);
        let covered = counts.covered();
        let interval = (covered >= Confidence::USUAL.share()).then(|| {
            let mut bootstrap = BlockBootstrap::new(secrets.len(), seed);
            let draws = (DRAWN / secrets.len().max(1)).clamp(MIN_DRAWS, MAX_DRAWS);
            // What a sample differs by from the commands that it is drawn from, the truth may differ by from the estimate.
            let mut sample = || {
                let [_, corrected] = counts.bits(bootstrap.draw());
                bits + corrected - counted
            };
            let samples = (0..draws).map(|_| sample()).collect();
            let found = interval(bits, samples, IntervalMethod::Mirrored, Confidence::USUAL)?;
            Some(Interval { low: found.low.max(0.0), high: found.high.max(0.0) })
        });
        Self { bits: bits.max(0.0), interval: interval.flatten(), covered }
    }
}

/// The commands by secret, by output, and by both.
struct PairCounts {
    /// Of each of these, the number of each command.
    numbers: [Vec<usize>; 3],
    /// How often each number occurs.
    counts: [Vec<u32>; 3],
}

impl PairCounts {
    fn new(secrets: &[u32], secret_count: usize, cells: &OutputCells) -> Self {
        let of_cells = cells.of_rows();
        let secrets: Vec<usize> = secrets.iter().map(|secret| *secret as usize).collect();
        let pairs: Vec<(usize, usize)> = of_cells.iter().copied().zip(secrets.iter().copied()).collect();
        let mut named = pairs.clone();
        named.sort_unstable();
        named.dedup();
        let pairs = pairs.iter().map(|pair| named.binary_search(pair).unwrap_or_default()).collect();
        let counts = [secret_count, cells.rows.len(), named.len()].map(|count| vec![0; count]);
        Self { numbers: [secrets, of_cells, pairs], counts }
    }

    /// 1 less the share of the commands counted last whose secret and output occur together only once.
    fn covered(&self) -> f64 {
        let [.., pairs] = &self.counts;
        let once = pairs.iter().filter(|times| **times == 1).count();
        1.0 - once as f64 / self.numbers[0].len().max(1) as f64
    }

    /// The bits that these commands show, and the same less what so few commands seem to give away by chance.
    fn bits(&mut self, rows: &[usize]) -> [f64; 2] {
        for (numbers, counts) in self.numbers.iter().zip(&mut self.counts) {
            counts.fill(0);
            for row in rows {
                counts[numbers[*row]] += 1;
            }
        }
        let all = rows.len().max(1) as f64;
        let [secrets, cells, pairs] = self.counts.each_ref().map(|counts| entropy(counts, all));
        let by_chance = (pairs.1 + 1.0 - secrets.1 - cells.1) / (2.0 * all);
        let counted = (secrets.0 + cells.0 - pairs.0) / LN_2;
        [counted, counted - by_chance / LN_2]
    }
}

/// The entropy of counts in nats, and how many values occur.
fn entropy(counts: &[u32], all: f64) -> (f64, f64) {
    let (mut sum, mut values) = (0.0, 0.0);
    for count in counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count)) {
        sum += count * count.ln();
        values += 1.0;
    }
    (all.ln() - sum / all, values)
}
