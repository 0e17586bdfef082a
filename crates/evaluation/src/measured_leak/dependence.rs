//! Whether secrets and outputs depend on each other: a test that holds for any number of commands and any distribution of
//! sizes, and the bits that sizes give away, corrected for the number of commands.

use std::f64::consts::LN_2;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;
use serde::Serialize;

use super::output_cells::{OutputCells, count_secrets};
use crate::statistics::{BlockBootstrap, Confidence, Interval, IntervalMethod, interval};

/// The most permutations, which make the least p-value 0.001…
const MAX_PERMUTATIONS: usize = 999;

/// …the fewest, of very many commands…
const MIN_PERMUTATIONS: usize = 199;

/// …and about this many commands are permuted in all.
const PERMUTED: usize = 50_000_000;

const ROUNDING: f64 = 1e-9;

/// A permutation test: how often labels that are dealt out anew fit as well as the true ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PermutationTest {
    /// How often they were dealt out.
    pub permutations: u64,
    /// How often they fitted as well as the true ones.
    pub as_great: u64,
    /// (`as_great` + 1) / (`permutations` + 1): if sizes say nothing, it is at most p with a probability of at most p.
    pub p_value: f64,
}

impl PermutationTest {
    /// Tests whether labels are independent of what is seen, by how often a command and one of those nearest to it have
    /// the same label.
    pub(super) fn of_outputs(secrets: &[u32], secret_count: usize, cells: &OutputCells, seed: u64) -> Self {
        let neighbours = Neighbours::new(cells);
        let mut counts = vec![0; secret_count];
        Self::new(secrets, seed, |secrets| neighbours.agreement(secrets, &mut counts))
    }

    /// Tests whether labels are independent of the order of commands, by how often one and the next have the same label.
    pub fn of_order(secrets: &[u32], seed: u64) -> Self {
        Self::new(secrets, seed, |secrets| secrets.windows(2).filter(|pair| pair.first() == pair.last()).count() as f64)
    }

    fn new(secrets: &[u32], seed: u64, mut statistic: impl FnMut(&[u32]) -> f64) -> Self {
        let observed = statistic(secrets);
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let mut dealt = secrets.to_vec();
        let permutations = (PERMUTED / secrets.len().max(1)).clamp(MIN_PERMUTATIONS, MAX_PERMUTATIONS);
        let mut as_great = 0;
        for _ in 0..permutations {
            dealt.shuffle(&mut random);
            as_great += u64::from(statistic(&dealt) >= observed - ROUNDING);
        }
        let permutations = permutations as u64;
        Self { permutations, as_great, p_value: (as_great + 1) as f64 / (permutations + 1) as f64 }
    }

    /// Whether nothing smaller could have been found.
    pub fn is_least(&self) -> bool {
        self.as_great == 0
    }
}

/// The commands nearest to each command: the others with the same output, or else those with the nearest ones.
struct Neighbours<'a> {
    cells: &'a OutputCells,
    /// For each cell the commands without company to which it is nearest, with the number of all commands as near.
    alone: Vec<Vec<(usize, f64)>>,
}

impl<'a> Neighbours<'a> {
    fn new(cells: &'a OutputCells) -> Self {
        let mut alone = vec![Vec::new(); cells.rows.len()];
        for (output, rows) in cells.outputs.iter().zip(&cells.rows) {
            let [row] = rows.as_slice() else { continue };
            let near = cells.nearest(*output, |_| true);
            let all: usize = near.iter().filter_map(|cell| cells.rows.get(*cell)).map(Vec::len).sum();
            for cell in near {
                if let Some(of_cell) = alone.get_mut(cell) {
                    of_cell.push((*row, all as f64));
                }
            }
        }
        Self { cells, alone }
    }

    /// How many commands have the label of one of their neighbours, drawn at random. `counts` has a 0 for each label.
    fn agreement(&self, secrets: &[u32], counts: &mut [u32]) -> f64 {
        let mut sum = 0.0;
        count_secrets(self.cells, secrets, counts, |cell, rows, counts| {
            let alike = |row: &usize| f64::from(counts[secrets[*row] as usize]);
            let others = rows.len().saturating_sub(1).max(1) as f64;
            sum += rows.iter().map(|row| (alike(row) - 1.0) / others).sum::<f64>();
            sum += self.alone[cell].iter().map(|(row, all)| alike(row) / all).sum::<f64>();
        });
        sum
    }
}

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
            let samples: Vec<f64> = (0..draws).map(|_| sample()).collect();
            let mirrored = interval(bits, samples.clone(), IntervalMethod::Mirrored, Confidence::USUAL)?;
            // Where little is given away, samples deviate upwards the more, the more is: the truth may be above the
            // estimate by as much as a sample is, not by as little as one is below.
            let plain = interval(bits, samples, IntervalMethod::Percentile, Confidence::USUAL)?;
            Some(Interval { low: mirrored.low.max(0.0), high: mirrored.high.max(plain.high).max(0.0) })
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

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::measured_leak::output_cells::SeenOutput;

    fn outputs(sizes: &[u64]) -> OutputCells {
        OutputCells::new(&sizes.iter().map(|size| SeenOutput { size: *size, replies: 0 }).collect::<Vec<_>>())
    }

    #[test]
    fn agreement_is_that_of_all_pairs_by_hand() {
        // The two of 10 are each other's neighbours; 14 is nearest to 10 and to 18.
        let cells = outputs(&[10, 10, 14, 18]);
        let neighbours = Neighbours::new(&cells);
        let agreement = |secrets: &[u32]| neighbours.agreement(secrets, &mut [0; 3]);
        assert!((agreement(&[0, 0, 0, 0]) - 4.0).abs() < 1e-12);
        assert!((agreement(&[0, 0, 1, 1]) - (2.0 + 1.0 / 3.0 + 1.0)).abs() < 1e-12);
        assert!((agreement(&[0, 1, 2, 2]) - (1.0 / 3.0 + 1.0)).abs() < 1e-12);
    }

    #[test]
    fn p_value_is_uniform_where_sizes_say_nothing() {
        let mut random = ChaCha20Rng::seed_from_u64(7);
        let mut p_values = Vec::new();
        for seed in 0..400 {
            let secrets: Vec<u32> = (0..40).map(|_| random.random_range(0..3)).collect();
            let cells = outputs(&(0..40).map(|_| random.random_range(0..12)).collect::<Vec<_>>());
            p_values.push(PermutationTest::of_outputs(&secrets, 3, &cells, seed).p_value);
        }
        // Three standard deviations above what is expected; ties make the test conservative, not blind.
        for limit in [0.05, 0.1, 0.25, 0.5, 0.75] {
            let below = p_values.iter().filter(|p_value| **p_value <= limit).count() as f64;
            let spread = 3.0 * (400.0 * limit * (1.0 - limit)).sqrt();
            assert!((below - 400.0 * limit).abs() < spread, "{below} of 400 are at most {limit}");
        }
    }

    #[test]
    fn labels_that_sizes_give_away_are_never_dealt_out_so_again() {
        let secrets: Vec<u32> = (0..40).map(|row| row % 4).collect();
        let cells = outputs(&secrets.iter().map(|secret| u64::from(*secret) * 10).collect::<Vec<_>>());
        let test = PermutationTest::of_outputs(&secrets, 4, &cells, 1);
        assert!(test.is_least() && test.permutations == 999);
        assert!((test.p_value - 0.001).abs() < 1e-12);
        // All labels are equal: nothing can be told.
        assert!((PermutationTest::of_outputs(&[0; 40], 1, &cells, 1).p_value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn labels_that_were_recorded_in_a_row_are_told_from_others() {
        let in_a_row: Vec<u32> = (0..60).map(|row| row / 20).collect();
        assert!(PermutationTest::of_order(&in_a_row, 1).is_least());
        let alternating: Vec<u32> = (0..60).map(|row| row % 3).collect();
        assert!(PermutationTest::of_order(&alternating, 1).p_value > 0.9);
    }
}
