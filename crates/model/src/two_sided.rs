//! The two-sided geometric distribution: how far sizes and bytes deviate from what is expected.

/// The probability of an integer deviation, given the mean absolute deviation (above 0).
pub fn two_sided(deviation: f64, mean: f64) -> f64 {
    // The mean of |d| is 2r / (1 − r²) for the ratio r of consecutive probabilities.
    let ratio = ((1.0 + mean * mean).sqrt() - 1.0) / mean;
    (1.0 - ratio) / (1.0 + ratio) * ratio.powf(deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_sided_distribution_has_the_given_mean_deviation() {
        for mean in [0.05, 1.0, 40.0] {
            let deviations = || (-5000..=5000).map(f64::from);
            let all: f64 = deviations().map(|deviation| two_sided(deviation.abs(), mean)).sum();
            let found: f64 = deviations().map(|deviation| deviation.abs() * two_sided(deviation.abs(), mean)).sum();
            assert!((all - 1.0).abs() < 1e-9 && (found - mean).abs() < 1e-6 * mean.max(1.0), "{mean}: {all} {found}");
        }
    }
}
