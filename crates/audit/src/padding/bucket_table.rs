//! Tables of buckets that hold neighbouring sizes: what they are to achieve, all of them on the convex hull of leakage
//! and bytes, and a table as source code to paste into the sender of commands.
//!
//! The best table of the sizes from i on is a bucket of the sizes i to j and the best table of those beyond:
//! f(i) = minⱼ a · leakage(i..j) + b · bytes(i..j) + f(j + 1). Each ratio of the weights a and b gives a corner of the
//! convex hull of all pairs of leakage and bytes; between two corners, the weights for which both are as good tell
//! whether there is another.

use serde::Serialize;
use sizeleak_inference::space::SizeRow;
use sizeleak_model::policies::PaddingPolicy;

/// What must hold for each bucket: the worst case, where a leakage is an average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableRules {
    /// The most that the most probable command of a bucket may have of its probability; 1 for any.
    pub most_posterior: f64,
    pub fewest_commands: f64,
}

impl Default for TableRules {
    fn default() -> Self {
        Self { most_posterior: 1.0, fewest_commands: 1.0 }
    }
}

impl TableRules {
    /// Whether a bucket with these commands is allowed. A share that exceeds the limit by rounding alone is.
    pub fn allow(&self, bucket: &SizeRow) -> bool {
        bucket.commands >= self.fewest_commands * (1.0 - 1e-12)
            && bucket.greatest <= self.most_posterior * bucket.probability * (1.0 + 1e-12)
    }
}

/// What must be kept within, while the other of leakage and bytes is made small.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Goal {
    /// The least leakage with at most so many expected bytes added to a command.
    #[serde(rename = "added-bytes")]
    Budget(f64),
    /// The fewest bytes with at most so much leakage.
    #[serde(rename = "named")]
    Target(f64),
}

impl Goal {
    /// Whether a table is within the goal. One that exceeds it by rounding alone is.
    pub fn is_met(self, leakage: f64, added_bytes: f64) -> bool {
        match self {
            Self::Budget(most) => added_bytes <= most + most.abs() * 1e-12,
            Self::Target(most) => leakage <= most + most.abs() * 1e-12,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    /// The commands in it, padded to its size.
    pub(crate) row: SizeRow,
    /// The number of sizes up to its last one.
    pub(crate) end: usize,
    pub(crate) added_bytes: f64,
}

impl Bucket {
    /// What it adds to the Bayes vulnerability: how probable the observer's first guess is to be right, if sizes are
    /// determined by commands.
    pub(crate) fn leakage(&self) -> f64 {
        self.row.greatest
    }
}

/// The buckets that begin with the size at `first`, by ascending end.
pub(crate) fn buckets_from(rows: &[SizeRow], first: usize) -> impl Iterator<Item = Bucket> {
    let mut bucket: Option<Bucket> = None;
    rows.iter().enumerate().skip(first).map(move |(at, row)| {
        let next = match bucket {
            None => Bucket { row: *row, end: at + 1, added_bytes: 0.0 },
            Some(before) => {
                let further = before.row.probability * (row.bytes - before.row.bytes) as f64;
                let mut merged = *row;
                merged.add(&before.row);
                Bucket { row: merged, end: at + 1, added_bytes: before.added_bytes + further }
            }
        };
        bucket = Some(next);
        next
    })
}

/// Improvements of the weighted sum below this share are not looked for: reports show three digits.
const MIN_IMPROVEMENT: f64 = 1e-5;

/// A padding table whose buckets hold neighbouring sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct BucketTable {
    /// The sizes of the buckets in bytes, ascending; the last is the greatest size of all.
    pub buckets: Vec<u64>,
    pub leakage: f64,
    /// The expected bytes added to a command.
    pub added_bytes: f64,
}

/// The sizes of an inventory and what a table of them is to achieve.
#[derive(Debug, Clone, Copy)]
pub struct TableSearch<'a> {
    /// The commands of each size, by ascending size.
    pub rows: &'a [SizeRow],
    pub rules: TableRules,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    pub(crate) leakage: f64,
    pub(crate) bytes: f64,
}

impl Weights {
    /// Weights for which two tables are as good; `right` adds more bytes.
    pub(crate) fn between(left: &BucketTable, right: &BucketTable) -> Option<Self> {
        let leakage = right.added_bytes - left.added_bytes;
        let bytes = left.leakage - right.leakage;
        (leakage > 0.0 && bytes > 0.0).then_some(Self { leakage, bytes })
    }

    pub(crate) fn of(self, leakage: f64, added_bytes: f64) -> f64 {
        self.leakage * leakage + self.bytes * added_bytes
    }
}

impl BucketTable {
    fn weighed(&self, weights: Weights) -> f64 {
        weights.of(self.leakage, self.added_bytes)
    }
}

impl TableSearch<'_> {
    /// The tables on the lower convex hull of leakage and expected bytes, by ascending bytes; none if no table obeys the
    /// rules.
    pub fn hull(&self) -> Vec<BucketTable> {
        // The smallest of one kind, and of these about the smallest of the other.
        let greatest = self.rows.last().map_or(1.0, |row| row.bytes as f64).max(1.0);
        let cheapest = self.best(Weights { leakage: 1e-9, bytes: 1.0 });
        let tightest = self.best(Weights { leakage: 1.0, bytes: 1e-9 / greatest });
        let (Some(cheapest), Some(tightest)) = (cheapest, tightest) else { return Vec::new() };
        let mut hull = vec![cheapest];
        // Corners that are known to be on the hull, those with the fewest bytes last.
        let mut ahead = vec![tightest];
        while let (Some(left), Some(right)) = (hull.last(), ahead.last()) {
            let between = Weights::between(left, right).and_then(|weights| {
                let least = left.weighed(weights) * (1.0 - MIN_IMPROVEMENT);
                self.best(weights).filter(|table| table.weighed(weights) < least)
            });
            match between {
                Some(table) => ahead.push(table),
                None => hull.extend(ahead.pop().filter(|right| right.leakage < left.leakage)),
            }
        }
        hull
    }

    /// The best table for these weights; `None` if none obeys the rules.
    fn best(&self, weights: Weights) -> Option<BucketTable> {
        let completions = self.completions(weights);
        completions.first().filter(|(sum, _)| sum.is_finite())?;
        let mut ends = Vec::new();
        let mut first = 0;
        while first < self.rows.len() {
            first = completions.get(first)?.1;
            ends.push(first);
        }
        Some(self.table(&ends))
    }

    /// Of the sizes from each one on: the least weighted sum, which is infinite if the rules cannot be obeyed, and the
    /// number of sizes up to the end of the first bucket. After the last size it is 0.
    pub(crate) fn completions(&self, weights: Weights) -> Vec<(f64, usize)> {
        let mut best = vec![(f64::INFINITY, 0); self.rows.len()];
        best.push((0.0, 0));
        for first in (0..self.rows.len()).rev() {
            let mut least = (f64::INFINITY, 0);
            for bucket in buckets_from(self.rows, first) {
                if weights.bytes * bucket.added_bytes >= least.0 {
                    break;
                }
                let beyond = best.get(bucket.end).map_or(f64::INFINITY, |(beyond, _)| *beyond);
                let sum = weights.of(bucket.leakage(), bucket.added_bytes) + beyond;
                if sum < least.0 && self.rules.allow(&bucket.row) {
                    least = (sum, bucket.end);
                }
            }
            if let Some(best) = best.get_mut(first) {
                *best = least;
            }
        }
        best
    }

    /// The table whose buckets end after these numbers of sizes.
    pub(crate) fn table(&self, ends: &[usize]) -> BucketTable {
        let mut table = BucketTable { buckets: Vec::with_capacity(ends.len()), leakage: 0.0, added_bytes: 0.0 };
        let mut first = 0;
        for end in ends {
            let is_it = |bucket: &Bucket| bucket.end == *end;
            let Some(bucket) = buckets_from(self.rows, first).find(is_it) else { continue };
            table.buckets.push(bucket.row.bytes);
            table.leakage += bucket.leakage();
            table.added_bytes += bucket.added_bytes;
            first = *end;
        }
        table
    }
}

const COLUMNS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLanguage {
    /// C99, without anything but its headers.
    C,
    /// Rust, without anything but its core library.
    Rust,
}

/// A table in source code; `None` for policies that are no tables. `note` says in a comment what the table was made for.
///
/// The code defines `padded_size`: from the bytes of a message to those that it is padded to, as
/// [`PaddingPolicy::padded`] has it for all sizes.
pub fn table_source(policy: &PaddingPolicy, language: SourceLanguage, note: &str) -> Option<String> {
    let (from, to): (Vec<u64>, Vec<u64>) = match policy {
        PaddingPolicy::Table { buckets } => (buckets.clone(), buckets.clone()),
        PaddingPolicy::Map { sizes } => sizes.iter().map(|[from, to]| (*from, *to)).unzip(),
        _ => return None,
    };
    let greatest = to.iter().max().copied()?;
    // On one line, and no end of a comment.
    let note: String =
        note.chars().map(|letter| if letter.is_control() || letter == '*' { ' ' } else { letter }).collect();
    let count = from.len();
    let mut arrays = vec![("PADDING_SIZES", &from)];
    if from != to {
        arrays.push(("PADDED_SIZES", &to));
    }
    let (found, _) = *arrays.last()?;
    let array = |(name, sizes): (&str, &Vec<u64>)| match language {
        SourceLanguage::C => format!("static const uint64_t {name}[{count}] = {{\n{}}};\n", lines(sizes)),
        SourceLanguage::Rust => format!("const {name}: [u64; {count}] = [\n{}];\n", lines(sizes)),
    };
    let arrays: String = arrays.into_iter().map(array).collect();
    Some(match language {
        SourceLanguage::C => format!(
            "/* {note}\n   padded_size() gives the bytes to pad a message of so many bytes to. Messages that are larger than \
             all sizes\n   of the table are padded to the next multiple of {greatest}. */\n#include <stddef.h>\n\
             #include <stdint.h>\n\n{arrays}\nuint64_t padded_size(uint64_t size)\n{{\n    \
             const uint64_t greatest = UINT64_C({greatest});\n    size_t from = 0, to = {count};\n    \
             while (from < to) {{\n        size_t middle = from + (to - from) / 2;\n        \
             if (PADDING_SIZES[middle] < size) {{\n            from = middle + 1;\n        }} else {{\n            \
             to = middle;\n        }}\n    }}\n    \
             if (from < {count}) {{\n        return {found}[from];\n    }}\n    \
             uint64_t units = size / greatest + (size % greatest != 0);\n    \
             return units > UINT64_MAX / greatest ? UINT64_MAX : units * greatest;\n}}\n"
        ),
        SourceLanguage::Rust => format!(
            "// {note}\n\n{arrays}\n/// The bytes to pad a message of so many bytes to. Messages that are larger than all \
             sizes of the table are\n/// padded to the next multiple of {greatest}.\n\
             pub fn padded_size(size: u64) -> u64 {{\n    \
             match {found}.get(PADDING_SIZES.partition_point(|known| *known < size)) {{\n        \
             Some(padded) => *padded,\n        \
             None => size.checked_next_multiple_of({greatest}).unwrap_or(u64::MAX),\n    }}\n}}\n"
        ),
    })
}

/// Sizes with commas, on lines that are not too long.
fn lines(sizes: &[u64]) -> String {
    let (mut text, mut line) = (String::new(), String::from("   "));
    for size in sizes {
        let item = format!(" {size},");
        if line.len() + item.len() > COLUMNS {
            text += &line;
            text.push('\n');
            line = String::from("   ");
        }
        line += &item;
    }
    text + &line + "\n"
}
