//! The statistics that learning and answering share: middle values, sums by logarithms, and how far sizes and bytes deviate
//! from what is expected.

use std::cmp::Ordering;

/// The middle value, twice; of an even number of values the lower and the upper one. `None` without values.
pub fn middle<T: Copy>(values: &mut [T], order: impl FnMut(&T, &T) -> Ordering) -> Option<[T; 2]> {
    values.sort_unstable_by(order);
    let lower = values.len().checked_sub(1)? / 2;
    Some([*values.get(lower)?, *values.get(values.len() / 2)?])
}

/// The two-sided geometric distribution: the probability of an integer deviation, given the mean absolute deviation
/// (above 0).
pub fn two_sided(deviation: f64, mean: f64) -> f64 {
    // The mean of |d| is 2r / (1 − r²) for the ratio r of consecutive probabilities.
    let ratio = ((1.0 + mean * mean).sqrt() - 1.0) / mean;
    (1.0 - ratio) / (1.0 + ratio) * ratio.powf(deviation)
}

/// By how much (in nats) a term of a sum is below rounding beside the greatest.
const NEGLIGIBLE: f64 = 40.0;

/// The natural logarithm of the sum of terms with these logarithms, which may be beyond what a number can hold; −∞ without
/// terms.
pub fn ln_sum(ln_terms: &[f64]) -> f64 {
    let greatest = ln_terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !greatest.is_finite() {
        return greatest;
    }
    let matters = ln_terms.iter().filter(|term| **term > greatest - NEGLIGIBLE);
    greatest + matters.map(|term| (term - greatest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_terms_beyond_numbers_are_known_by_their_logarithms() {
        assert!((ln_sum(&[-900.0, -900.0 + 3_f64.ln()]) - (4_f64.ln() - 900.0)).abs() < 1e-12);
        assert!((ln_sum(&[2_f64.ln(), f64::NEG_INFINITY, 5_f64.ln()]) - 7_f64.ln()).abs() < 1e-12);
        for nothing in [&[f64::NEG_INFINITY; 2][..], &[]] {
            assert!(ln_sum(nothing).is_infinite() && ln_sum(nothing) < 0.0);
        }
    }

    #[test]
    fn the_two_sided_distribution_has_the_given_mean_deviation() {
        for mean in [0.05, 1.0, 40.0] {
            let deviations = || (-5000..=5000).map(f64::from);
            let all: f64 = deviations().map(|deviation| two_sided(deviation.abs(), mean)).sum();
            let found: f64 = deviations().map(|deviation| deviation.abs() * two_sided(deviation.abs(), mean)).sum();
            assert!((all - 1.0).abs() < 1e-9 && (found - mean).abs() < 1e-6 * mean.max(1.0), "{mean}: {all} {found}");
        }
    }

    #[test]
    fn the_middle_of_an_even_number_of_values_is_two() {
        assert_eq!(middle(&mut [9, 1, 4], Ord::cmp), Some([4, 4]));
        assert_eq!(middle(&mut [9, 1, 4, 5], Ord::cmp), Some([4, 5]));
        assert_eq!(middle::<i64>(&mut [], Ord::cmp), None);
    }
}
