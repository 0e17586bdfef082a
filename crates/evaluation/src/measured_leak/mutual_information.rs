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
        let table = PairTable::new(secrets, secret_count, cells);
        let all: Vec<usize> = (0..secrets.len()).collect();
        let mut counts = table.counts();
        let Bits { counted, corrected: bits } = table.bits(&all, &mut counts);
        let covered = table.covered();
        let interval = (covered >= Confidence::USUAL.share()).then(|| {
            let mut bootstrap = BlockBootstrap::new(secrets.len(), seed);
            let draws = (DRAWN / secrets.len().max(1)).clamp(MIN_DRAWS, MAX_DRAWS);
            // What a sample differs by from the commands that it is drawn from, the truth may differ by from the estimate.
            let mut sample = || bits + table.bits(bootstrap.draw(), &mut counts).corrected - counted;
            let samples = (0..draws).map(|_| sample()).collect();
            let found = interval(bits, samples, IntervalMethod::Mirrored, Confidence::USUAL)?;
            Some(Interval { low: found.low.max(0.0), high: found.high.max(0.0) })
        });
        Self { bits: bits.max(0.0), interval: interval.flatten(), covered }
    }
}

/// The commands by secret, by output, and by both.
struct PairTable<'a> {
    secrets: &'a [u32],
    secret_count: usize,
    cells: Vec<usize>,
    cell_count: usize,
    pairs: Vec<usize>,
    pair_count: usize,
}

struct Bits {
    counted: f64,
    /// Less what so few commands seem to give away by chance.
    corrected: f64,
}

/// How often each secret, each output and each pair occurs.
struct Counts {
    secrets: Vec<u32>,
    cells: Vec<u32>,
    pairs: Vec<u32>,
}

impl<'a> PairTable<'a> {
    fn new(secrets: &'a [u32], secret_count: usize, cells: &OutputCells) -> Self {
        let of_rows = cells.of_rows();
        let mut named: Vec<(usize, u32)> = of_rows.iter().copied().zip(secrets.iter().copied()).collect();
        named.sort_unstable();
        named.dedup();
        let pair = |row: (&usize, &u32)| named.binary_search(&(*row.0, *row.1)).unwrap_or_default();
        let pairs = of_rows.iter().zip(secrets).map(pair).collect();
        let (cell_count, pair_count) = (cells.rows.len(), named.len());
        Self { secrets, secret_count, cells: of_rows, cell_count, pairs, pair_count }
    }

    fn counts(&self) -> Counts {
        Counts { secrets: vec![0; self.secret_count], cells: vec![0; self.cell_count], pairs: vec![0; self.pair_count] }
    }

    /// 1 less the share of commands whose secret and output occur together only once.
    fn covered(&self) -> f64 {
        let mut times = vec![0_u32; self.pair_count];
        self.pairs.iter().for_each(|pair| times[*pair] += 1);
        let once = times.iter().filter(|times| **times == 1).count();
        1.0 - once as f64 / self.secrets.len().max(1) as f64
    }

    fn bits(&self, rows: &[usize], counts: &mut Counts) -> Bits {
        for counts in [&mut counts.secrets, &mut counts.cells, &mut counts.pairs] {
            counts.fill(0);
        }
        for row in rows {
            counts.secrets[self.secrets[*row] as usize] += 1;
            counts.cells[self.cells[*row]] += 1;
            counts.pairs[self.pairs[*row]] += 1;
        }
        let entropy = |counts: &[u32]| Entropy::new(counts, rows.len());
        let (secrets, cells, pairs) = (entropy(&counts.secrets), entropy(&counts.cells), entropy(&counts.pairs));
        let by_chance = (pairs.values + 1.0 - secrets.values - cells.values) / (2.0 * rows.len().max(1) as f64);
        let counted = (secrets.nats + cells.nats - pairs.nats) / LN_2;
        Bits { counted, corrected: counted - by_chance / LN_2 }
    }
}

/// The entropy of counts, and how many values occur.
struct Entropy {
    nats: f64,
    values: f64,
}

impl Entropy {
    fn new(counts: &[u32], all: usize) -> Self {
        let (mut sum, mut values) = (0.0, 0.0);
        for count in counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count)) {
            sum += count * count.ln();
            values += 1.0;
        }
        let all = all.max(1) as f64;
        Self { nats: all.ln() - sum / all, values }
    }
}
