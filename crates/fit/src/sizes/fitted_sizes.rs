//! The result of either fit, before it becomes a [`crate::Fit`].

/// |ac|, every |aᵢ|, and the commands that do not fit them.
pub(crate) struct FittedSizes {
    /// |ac| in bytes.
    pub(crate) overhead: i64,
    /// |aᵢ| in bytes.
    pub(crate) actions: Vec<i64>,
    /// As [`crate::Fit::intervals`].
    pub(crate) intervals: Vec<[i64; 2]>,
    /// As [`crate::Fit::certainty`].
    pub(crate) certainty: f64,
    /// Size of each command without its actions; one possible value if the size is a range.
    pub(crate) remainders: Vec<i64>,
    /// Indices of commands, in ascending order.
    pub(crate) outliers: Vec<usize>,
    /// As [`crate::Fit::ambiguous_shifts`].
    pub(crate) ambiguous_shifts: Vec<i64>,
}

/// The median, the lower one of two; 0 for no values.
pub(crate) fn median(values: &mut [i64]) -> i64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}
