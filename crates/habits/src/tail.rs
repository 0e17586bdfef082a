//! How rare the greatest scores of days are among each other: by their ranks, and beyond the upper quarter by a Pareto
//! distribution whose shape and scale share one estimate (Lomax), so that even greater values are told apart.

/// The fewest days beside the one that is looked at.
pub(crate) const LEAST: usize = 4;

/// Scores are sums of logarithms of estimated rates; a smaller difference is one of the estimates. Without it, a score that
/// is nearly the same every day and creeps upwards would be a record every day.
const RESOLUTION: f64 = 0.25;

/// −ln P(another day has at least this score), of each day among the others; at least [`LEAST`] and one.
pub(crate) fn rareness(scores: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let sorted: Vec<f64> = order.iter().map(|day| scores[*day]).collect();
    let mut rareness = vec![0.0; scores.len()];
    for (place, day) in order.into_iter().enumerate() {
        rareness[day] = among_others(&sorted, place);
    }
    rareness
}

/// The rareness of one of some scores, which are in descending order.
fn among_others(sorted: &[f64], place: usize) -> f64 {
    let (score, others) = (sorted[place], sorted.len() - 1);
    let other = |rank: usize| sorted[rank + usize::from(rank >= place)];
    let days = (others + 1) as f64;
    let upper = (others / 4).max(3).min(others - 1);
    let threshold = other(upper);
    let score = score - RESOLUTION;
    if score > threshold {
        let excess = (0..upper).map(|rank| other(rank) - threshold).sum::<f64>().max(upper as f64 * RESOLUTION);
        let upper = upper as f64;
        return -((upper + 0.5) / days).ln() + upper * ((score - threshold) / excess).ln_1p();
    }
    let above = (0..others).take_while(|rank| other(*rank) >= score).count();
    -((above + 1) as f64 / days).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greater_scores_are_rarer_and_great_ones_are_told_apart() {
        let of_new = |score: f64| rareness(&[&[score], &(0..28).map(f64::from).collect::<Vec<_>>()[..]].concat())[0];
        let found: Vec<f64> = (-5..60).map(|score| of_new(f64::from(score))).collect();
        assert!(found.is_sorted_by(|one, next| one <= next), "{found:?}");
        assert!((of_new(13.5) - (29.0_f64 / 15.0).ln()).abs() < 1e-12);
        assert!(found[64] > found[44] + 1.0);
        assert!(rareness(&[2.0; 9]).iter().all(|rareness| rareness.abs() < 1e-9), "equal days are not rare");
    }

    #[test]
    fn each_day_is_compared_with_the_others_alone() {
        let days = [3.0, 9.0, 1.0, 4.0, 2.0, 6.0, 5.0];
        let turned: Vec<f64> = days.iter().rev().copied().collect();
        let (mut found, again) = (rareness(&days), rareness(&turned));
        found.reverse();
        assert_eq!(found, again);
    }
}
