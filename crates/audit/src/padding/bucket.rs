//! Buckets of neighbouring sizes.

use sizeleak_inference::space::SizeRow;

use crate::padding::table_rules::Objective;

/// A bucket of neighbouring sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    /// The commands in it, padded to its size.
    pub(crate) row: SizeRow,
    /// The number of sizes up to its last one.
    pub(crate) end: usize,
    /// What it adds to the leakage.
    pub(crate) leakage: f64,
    /// The expected bytes that it adds to a command.
    pub(crate) added_bytes: f64,
}

/// The buckets that begin with the size at `first`, by ascending end.
pub(crate) fn buckets_from(rows: &[SizeRow], first: usize, objective: Objective) -> impl Iterator<Item = Bucket> {
    let mut bucket: Option<Bucket> = None;
    rows.iter().enumerate().skip(first).map(move |(at, row)| {
        let next = match bucket {
            None => Bucket { row: *row, end: at + 1, leakage: 0.0, added_bytes: 0.0 },
            Some(before) => {
                let further = before.row.probability * (row.bytes - before.row.bytes) as f64;
                let mut merged = *row;
                merged.add(&before.row);
                Bucket { row: merged, end: at + 1, leakage: 0.0, added_bytes: before.added_bytes + further }
            }
        };
        let next = Bucket { leakage: objective.of_bucket(&next.row), ..next };
        bucket = Some(next);
        next
    })
}
