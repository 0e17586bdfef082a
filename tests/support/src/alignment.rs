//! Two ordered lists side by side: what both have, what only one has. One missing entry does not shift the rest.

use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// How two lists compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment<T> {
    /// How many entries both have, in the same order.
    pub common: usize,
    /// What only the expected list has.
    pub missing: Vec<T>,
    /// What only the found list has.
    pub extra: Vec<T>,
}

/// Aligns what was found with what was expected.
pub fn align<T: Clone + Eq + Ord + Hash>(expected: &[T], found: &[T]) -> Alignment<T> {
    let mut alignment = Alignment { common: 0, missing: Vec::new(), extra: Vec::new() };
    for difference in capture_diff_slices(Algorithm::Myers, expected, found) {
        let (old, new) = (difference.old_range(), difference.new_range());
        if let DiffOp::Equal { len, .. } = difference {
            alignment.common += len;
        } else {
            alignment.missing.extend_from_slice(&expected[old]);
            alignment.extra.extend_from_slice(&found[new]);
        }
    }
    alignment
}
