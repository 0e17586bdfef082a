//! The statistics that learning and answering share: middle values, and how far sizes and bytes deviate from what is
//! expected.

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

    #[test]
    fn the_middle_of_an_even_number_of_values_is_two() {
        assert_eq!(middle(&mut [9, 1, 4], Ord::cmp), Some([4, 4]));
        assert_eq!(middle(&mut [9, 1, 4, 5], Ord::cmp), Some([4, 5]));
        assert_eq!(middle::<i64>(&mut [], Ord::cmp), None);
    }
}
