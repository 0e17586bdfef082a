//! The two-sided geometric distribution: how far sizes and bytes deviate from what is expected.

/// The probability of an integer deviation, given the mean absolute deviation (above 0).
pub(crate) fn two_sided(deviation: f64, mean: f64) -> f64 {
    // The mean of |d| is 2r / (1 − r²) for the ratio r of consecutive probabilities.
    let ratio = ((1.0 + mean * mean).sqrt() - 1.0) / mean;
    (1.0 - ratio) / (1.0 + ratio) * ratio.powf(deviation)
}
