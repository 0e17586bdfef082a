//! The sums that a command's actions may have, from its size and the values of ε.

use std::collections::BTreeMap;

use sizeleak_frame::WeightedEpsilon;

/// No block cipher leaves a wider range of sizes, in bytes, and no padding a wider one that says anything.
const MAX_WIDTH: i64 = 1 << 16;

/// The most pairs of a size and a value of ε that are looked at; the heaviest values come first.
const MAX_PAIRS: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TargetSum {
    /// Σ |aᵢ|·nbᵢ in bytes.
    pub(crate) bytes: i64,
    /// The ε that leaves it; the heaviest one of several.
    pub(crate) epsilon: i64,
    /// Its weight, as a multiple of the heaviest ε's.
    pub(crate) weight: f64,
}

/// The sums of a command, heaviest first, then smallest first, and how many values of ε were not used (without weight,
/// or too many). Every size of the range with every value of ε leaves a sum: size − |ac| − ε. Weights of equal sums add
/// up. Each size of the range has a weight, such as the probability that it is padded to what was seen. Sums are above 0,
/// since a command has at least one action. `None` if no cipher leaves such a range.
pub(crate) fn target_sums(
    [least, most]: [i64; 2],
    overhead: i64,
    epsilons: &[WeightedEpsilon],
    weight_of_size: impl Fn(i64) -> f64,
) -> Option<(Vec<TargetSum>, u64)> {
    let width = most.checked_sub(least).filter(|width| (0..MAX_WIDTH).contains(width))?;
    let values = weighted(epsilons);
    let used = values.len().min(MAX_PAIRS / (width as usize + 1));
    let heaviest = values.first().map_or(1.0, |(_, weight)| *weight);
    let mut by_bytes: BTreeMap<i64, TargetSum> = BTreeMap::new();
    let sizes: Vec<(i64, f64)> = (least..=most).map(|size| (size, weight_of_size(size))).collect();
    // Heaviest first: a sum keeps the first ε.
    for (epsilon, weight) in values.into_iter().take(used) {
        for (size, of_size) in sizes.iter().filter(|(_, of_size)| *of_size > 0.0) {
            let bytes = size.saturating_sub(overhead).saturating_sub(epsilon);
            if bytes > 0 {
                let sum = by_bytes.entry(bytes).or_insert(TargetSum { bytes, epsilon, weight: 0.0 });
                sum.weight += of_size * weight / heaviest;
            }
        }
    }
    let mut sums: Vec<TargetSum> = by_bytes.into_values().collect();
    sums.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.bytes.cmp(&b.bytes)));
    Some((sums, (epsilons.len() - used) as u64))
}

/// The values of ε that have weight, each once, heaviest first, then those nearest to 0.
fn weighted(epsilons: &[WeightedEpsilon]) -> Vec<(i64, f64)> {
    let mut weights: BTreeMap<i64, f64> = BTreeMap::new();
    for value in epsilons.iter().filter(|value| value.weight.is_finite() && value.weight > 0.0) {
        let weight = weights.entry(value.epsilon).or_default();
        *weight = (*weight + value.weight).min(f64::MAX);
    }
    let mut values: Vec<(i64, f64)> = weights.into_iter().collect();
    values.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.unsigned_abs().cmp(&b.0.unsigned_abs())).then(a.0.cmp(&b.0)));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums_of(sizes: [i64; 2], epsilons: &[(i64, f64)]) -> Option<(Vec<TargetSum>, u64)> {
        let epsilons: Vec<WeightedEpsilon> =
            epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight }).collect();
        target_sums(sizes, 60, &epsilons, |_| 1.0)
    }

    fn expected(sums: &[(i64, i64, f64)], unused: u64) -> (Vec<TargetSum>, u64) {
        let sum = |(bytes, epsilon, weight): &(i64, i64, f64)| TargetSum {
            bytes: *bytes,
            epsilon: *epsilon,
            weight: *weight,
        };
        (sums.iter().map(sum).collect(), unused)
    }

    #[test]
    fn heavier_values_of_epsilon_come_first() {
        let sums = sums_of([100, 100], &[(0, 0.5), (1, 0.25), (3, 0.25)]);
        assert_eq!(sums, Some(expected(&[(40, 0, 1.0), (37, 3, 0.5), (39, 1, 0.5)], 0)));
    }

    #[test]
    fn weights_of_equal_sums_add_up() {
        let sums = sums_of([100, 101], &[(1, 0.25), (0, 0.75)]);
        assert_eq!(sums, Some(expected(&[(40, 0, 4.0 / 3.0), (41, 0, 1.0), (39, 1, 1.0 / 3.0)], 0)));
    }

    #[test]
    fn sums_are_positive() {
        assert_eq!(sums_of([60, 60], &[(0, 0.75), (-1, 0.25)]), Some(expected(&[(1, -1, 0.25 / 0.75)], 0)));
        assert_eq!(sums_of([0, 0], &[(0, 1.0)]), Some(expected(&[], 0)));
    }

    #[test]
    fn invalid_weights_and_wide_ranges_are_not_used() {
        let without_weight = [(0, f64::NAN), (1, -1.0), (2, f64::INFINITY), (3, 0.0)];
        assert_eq!(sums_of([100, 100], &without_weight), Some(expected(&[], 4)));
        let (huge, _) = sums_of([100, 100], &[(0, f64::MAX), (0, f64::MAX), (1, 1.0)]).unwrap();
        assert_eq!((huge[0].bytes, huge[0].weight), (40, 1.0));
        assert_eq!(sums_of([0, i64::MAX], &[(0, 1.0)]), None);
        assert_eq!(sums_of([i64::MAX, 0], &[(0, 1.0)]), None);
        assert_eq!(sums_of([i64::MAX; 2], &[(i64::MIN, 1.0)]), Some(expected(&[(i64::MAX, i64::MIN, 1.0)], 0)));
        let many: Vec<(i64, f64)> = (0..5000).map(|epsilon| (epsilon, 1.0)).collect();
        assert_eq!(sums_of([10_000, 14_095], &many).unwrap().1, 5000 - 256);
    }

    #[test]
    fn sizes_weigh_as_much_as_they_are_likely() {
        let epsilons = [WeightedEpsilon { epsilon: 0, weight: 1.0 }, WeightedEpsilon { epsilon: 1, weight: 0.5 }];
        let weight = |size| if size == 101 { 0.0 } else { 0.25 };
        let sums = target_sums([100, 102], 60, &epsilons, weight);
        assert_eq!(sums, Some(expected(&[(40, 0, 0.25), (42, 0, 0.25), (39, 1, 0.125), (41, 1, 0.125)], 0)));
    }
}
