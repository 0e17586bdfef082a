//! Improves tables by exchange; buckets then need not hold neighbouring sizes, which can be better.
//!
//! With commands of 1, 2 and 3 bytes and priors of .30, .05 and .65, the buckets {1, 3} and {2} have a vulnerability of
//! .70 for .60 bytes; neighbouring buckets with as few bytes have .95. The rare size 2 need not go where the more
//! probable size 1 must.
//!
//! A bucket's cap is the greatest prior of a command that it may hold, so the vulnerability is the sum of the caps. Given
//! all caps, each size goes to the smallest bucket that is no smaller and whose cap is no less. A table is improved one
//! cap at a time, as long as that helps: not all best tables are found in this way. For other leakages than the
//! vulnerability, caps are but a way to open, move and close buckets.

use sizeleak_model::policies::PaddingPolicy;

use crate::padding::bucket_table::{Goal, TableSearch, Weights};
use sizeleak_inference::space::SizeRow;

/// Sizes of tables that are tried, at most, over all tables: less than a second of work.
const MAX_TRIED: usize = 50_000_000;

/// Steps of a staircase, at most, and the least grain with which it is kept below that: more are not told apart in reports
/// of three digits.
const MAX_STEPS: usize = 4096;
const MIN_GRAIN: f64 = 1e-5;

/// A map is longer and harder to read than a table: it must save this share of the leakage or of the bytes.
const WORTH_A_MAP: f64 = 0.005;

/// To which size each size of an inventory is padded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assignment {
    /// By place of a size, the place of that which it is padded to.
    pub(crate) to: Vec<usize>,
    /// By place of a size, the greatest prior of the commands that are padded to it; 0 without any.
    caps: Vec<f64>,
    pub(crate) sums: Sums,
}

/// What a table gives away and costs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    /// The leakage, by the objective.
    pub(crate) leakage: f64,
    /// The expected bytes added to a command.
    pub(crate) added_bytes: f64,
}

/// A padding policy on the frontier.
#[derive(Debug, Clone, PartialEq)]
pub struct BestTable {
    /// A table, or a map where not all buckets hold neighbouring sizes.
    pub policy: PaddingPolicy,
    /// The leakage, by the objective.
    pub leakage: f64,
    /// The expected bytes added to a command.
    pub added_bytes: f64,
}

/// Assignments of which none has at least the bytes and the leakage of another, by ascending bytes.
#[derive(Debug, Default)]
pub(crate) struct Staircase {
    pub(crate) steps: Vec<Assignment>,
    /// The share of the leakage by which a step is at least below the one before.
    grain: f64,
}

/// Tables that are tried, one after the other, in the same memory.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    to: Vec<usize>,
    open: Vec<(usize, f64)>,
    buckets: Vec<SizeRow>,
    sums: Sums,
    /// The best of all that were tried.
    pub(crate) best: Staircase,
    /// Sizes of all that were tried.
    sizes: usize,
}

impl TableSearch<'_> {
    /// The table with buckets of neighbouring sizes.
    pub(crate) fn assignment_of(&self, buckets: &[u64]) -> Option<Assignment> {
        let place = |row: &SizeRow| {
            let bucket = buckets.get(buckets.partition_point(|bucket| *bucket < row.bytes))?;
            self.rows.binary_search_by_key(bucket, |row| row.bytes).ok()
        };
        let mut tried = Tried { to: self.rows.iter().map(place).collect::<Option<_>>()?, ..Tried::default() };
        self.filled(&mut tried)?;
        Some(tried.assignment())
    }

    /// Improves a table by changes that lower the weighted sum.
    pub(crate) fn descend(&self, from: &Assignment, weights: Weights, tried: &mut Tried) {
        let sum = |table: Sums| weights.of(table.leakage, table.added_bytes);
        self.improved(from, (0..self.rows.len()).rev(), |found, table| sum(found) < sum(table) * (1.0 - 1e-9), tried);
    }

    /// Improves a table that meets a goal by changes that still meet it, of the greatest sizes first and of the smallest
    /// first.
    pub(crate) fn within(&self, from: &Assignment, goal: Goal, tried: &mut Tried) {
        let value = |table: Sums| goal.value(table.leakage, table.added_bytes);
        let is_better = |found: Sums, table: Sums| {
            goal.is_met(found.leakage, found.added_bytes) && value(found) < value(table) * (1.0 - 1e-9)
        };
        self.improved(from, (0..self.rows.len()).rev(), is_better, tried);
        self.improved(from, 0..self.rows.len(), is_better, tried);
    }

    /// Changes caps in the order of these places, again and again, as long as one change is better.
    fn improved(
        &self,
        from: &Assignment,
        places: impl Iterator<Item = usize> + Clone,
        is_better: impl Fn(Sums, Sums) -> bool,
        tried: &mut Tried,
    ) {
        let mut table = from.clone();
        let mut unchanged = 0;
        for place in places.cycle() {
            let (now, mut best) = (table.sums, table.sums);
            let mut better = None;
            for cap in self.caps_to_try(&table, place) {
                let Some(found) = self.with_cap(&table, place, cap, tried) else { continue };
                // The last that is better than those before.
                if is_better(found, now) && (better.is_none() || is_better(found, best)) {
                    (best, better) = (found, Some(cap));
                }
            }
            unchanged += 1;
            if better.and_then(|cap| self.with_cap(&table, place, cap, tried)).is_some() {
                table = tried.assignment();
                unchanged = 0;
            }
            if unchanged > self.rows.len() || tried.is_enough() {
                return;
            }
        }
    }

    /// Caps of the bucket at a place that change the table: none, that of each size in it, and that of each smaller size
    /// which now passes it by.
    fn caps_to_try(&self, table: &Assignment, place: usize) -> Vec<f64> {
        let now = table.caps.get(place).copied().unwrap_or(0.0);
        let sizes = self.rows.iter().zip(&table.to).take(place + 1).filter(|(_, to)| **to >= place);
        let mut caps: Vec<f64> = sizes.map(|(row, _)| row.greatest).collect();
        caps.push(0.0);
        caps.sort_by(f64::total_cmp);
        caps.dedup();
        caps.retain(|cap| cap.total_cmp(&now).is_ne());
        caps
    }

    /// Tries the table with another cap at a place; `None` if it leaves a size without a bucket, or breaks the rules.
    fn with_cap(&self, table: &Assignment, place: usize, cap: f64, tried: &mut Tried) -> Option<Sums> {
        let Tried { to, open, .. } = tried;
        // Buckets that are still open for a size, the nearest last: each has a greater cap than all nearer ones.
        open.clear();
        to.resize(self.rows.len(), 0);
        for (at, ((row, to), own)) in self.rows.iter().zip(&mut *to).zip(&table.caps).enumerate().rev() {
            let own = if at == place { cap } else { *own };
            if own > 0.0 {
                while open.last().is_some_and(|(_, cap)| *cap <= own) {
                    open.pop();
                }
                open.push((at, own));
            }
            let above = open.partition_point(|(_, cap)| *cap >= row.greatest);
            *to = open.get(above.checked_sub(1)?)?.0;
        }
        self.filled(tried)
    }

    /// Fills the buckets of what is tried; `None` if one breaks the rules.
    fn filled(&self, tried: &mut Tried) -> Option<Sums> {
        let Tried { to, buckets, .. } = tried;
        let empty = SizeRow { bytes: 0, commands: 0.0, probability: 0.0, greatest: 0.0, plogp: 0.0 };
        buckets.clear();
        buckets.resize(self.rows.len(), empty);
        let mut added_bytes = 0.0;
        for (row, to) in self.rows.iter().zip(&*to) {
            buckets.get_mut(*to)?.add(row);
            added_bytes += row.probability * (self.rows.get(*to)?.bytes - row.bytes) as f64;
        }
        let held = || buckets.iter().filter(|bucket| bucket.commands > 0.0);
        if !held().all(|bucket| self.rules.allow(bucket)) {
            return None;
        }
        let leakage = held().map(|bucket| self.objective.of_bucket(bucket)).sum();
        tried.sums = Sums { leakage, added_bytes };
        tried.keep();
        Some(tried.sums)
    }
}

impl Tried {
    /// Keeps what was tried last if it is better than all others.
    fn keep(&mut self) {
        self.sizes += self.to.len();
        if self.best.is_better(self.sums) {
            self.best.offer(self.assignment());
        }
    }

    /// What was tried last.
    fn assignment(&self) -> Assignment {
        let caps = self.buckets.iter().map(|bucket| bucket.greatest).collect();
        Assignment { to: self.to.clone(), caps, sums: self.sums }
    }

    /// Whether no more are to be tried.
    pub(crate) fn is_enough(&self) -> bool {
        self.sizes > MAX_TRIED
    }
}

impl Assignment {
    /// Whether each size goes to the next bucket.
    pub(crate) fn is_of_neighbours(&self) -> bool {
        let mut next = usize::MAX;
        self.to.iter().enumerate().rev().all(|(at, to)| {
            next = if *to == at { at } else { next };
            *to == next
        })
    }

    /// The policy for these sizes.
    pub(crate) fn table(&self, rows: &[SizeRow]) -> BestTable {
        let bytes = |at: &usize| rows.get(*at).map_or(0, |row| row.bytes);
        let policy = if self.is_of_neighbours() {
            let mut buckets: Vec<u64> = self.to.iter().map(bytes).collect();
            buckets.dedup();
            PaddingPolicy::Table { buckets }
        } else {
            PaddingPolicy::Map { sizes: rows.iter().zip(&self.to).map(|(row, to)| [row.bytes, bytes(to)]).collect() }
        };
        BestTable { policy, leakage: self.sums.leakage, added_bytes: self.sums.added_bytes }
    }
}

impl Staircase {
    /// Whether an assignment with these sums is better than all others in leakage or in bytes.
    fn is_better(&self, found: Sums) -> bool {
        let above = self.steps.partition_point(|step| step.sums.added_bytes <= found.added_bytes * (1.0 + 1e-9));
        let before = above.checked_sub(1).and_then(|below| self.steps.get(below));
        before.is_none_or(|step| step.sums.leakage * (1.0 - self.grain.max(1e-9)) > found.leakage)
    }

    /// Keeps an assignment that is better than all others in leakage or in bytes.
    pub(crate) fn offer(&mut self, found: Assignment) {
        if !self.is_better(found.sums) {
            return;
        }
        let from = self.steps.partition_point(|step| step.sums.added_bytes < found.sums.added_bytes);
        let worse = self.steps.iter().skip(from).take_while(|step| step.sums.leakage >= found.sums.leakage).count();
        self.steps.splice(from..from + worse, [found]);
        while self.steps.len() > MAX_STEPS {
            self.grain = (2.0 * self.grain).max(MIN_GRAIN);
            let mut least = f64::INFINITY;
            self.steps.retain(|step| {
                let is_kept = step.sums.leakage < least * (1.0 - self.grain);
                least = if is_kept { step.sums.leakage } else { least };
                is_kept
            });
        }
    }

    /// From now on keeps steps that are as near each other as they may be.
    pub(crate) fn refine(&mut self) {
        self.grain = 0.0;
    }

    /// So many of them: the first, the middle one, those of the quarters, and so on.
    pub(crate) fn spread(&self, most: usize) -> impl Iterator<Item = &Assignment> {
        let count = self.steps.len();
        let share = |number: usize| f64::from((number as u32).reverse_bits()) / 2.0_f64.powi(32);
        (0..count.next_power_of_two().min(most))
            .filter_map(move |number| self.steps.get((share(number) * count as f64) as usize))
    }

    /// Whether one has nearly as few bytes and as little leakage.
    pub(crate) fn is_about_as_good_as(&self, map: &Assignment) -> bool {
        let most = map.sums.added_bytes / (1.0 - WORTH_A_MAP) * (1.0 + 1e-9);
        let above = self.steps.partition_point(|table| table.sums.added_bytes <= most);
        let below = above.checked_sub(1).and_then(|at| self.steps.get(at));
        below.is_some_and(|table| table.sums.leakage * (1.0 - WORTH_A_MAP) <= map.sums.leakage)
    }
}
