//! The sums that a command's actions may have, out of its size and the values of ε.

use std::collections::BTreeMap;

use sizeleak_frame::WeightedEpsilon;

/// A range of sizes wider than this, in bytes, comes from no block cipher.
const MAX_WIDTH: i64 = 4096;

/// Of the pairs of a size and a value of ε no more than this are looked at, those of the heaviest values.
const MAX_PAIRS: usize = 1 << 20;

/// A sum the actions may have, with what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sum {
    /// Σ |aᵢ|·nbᵢ in bytes.
    pub(crate) bytes: i64,
    /// The ε that leaves it; of several the heaviest.
    pub(crate) epsilon: i64,
    /// What speaks for it, as a multiple of what speaks for the heaviest ε.
    pub(crate) weight: f64,
}

/// The sums of a command.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Sums {
    /// Those above 0 (a command has one action at least), heaviest first, then smallest first.
    pub(crate) sums: Vec<Sum>,
    /// How many values of ε were not used: without weight, or too many.
    pub(crate) unused: u64,
}

/// Every size of the range with every value of ε leaves a sum: size − |ac| − ε. Where several leave the same, their
/// weights add up. `None` where the range is none that a cipher leaves.
pub(crate) fn sums([least, most]: [i64; 2], overhead: i64, epsilons: &[WeightedEpsilon]) -> Option<Sums> {
    let width = most.checked_sub(least).filter(|width| (0..MAX_WIDTH).contains(width))?;
    let values = weighted(epsilons);
    let used = values.len().min(MAX_PAIRS / (width as usize + 1));
    let heaviest = values.first().map_or(1.0, |(_, weight)| *weight);
    let mut by_bytes: BTreeMap<i64, Sum> = BTreeMap::new();
    // Heaviest first, so that it is the one a sum is named by.
    for (epsilon, weight) in values.into_iter().take(used) {
        for size in least..=most {
            let bytes = size.saturating_sub(overhead).saturating_sub(epsilon);
            if bytes > 0 {
                let sum = by_bytes.entry(bytes).or_insert(Sum { bytes, epsilon, weight: 0.0 });
                sum.weight += weight / heaviest;
            }
        }
    }
    let mut sums: Vec<Sum> = by_bytes.into_values().collect();
    sums.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.bytes.cmp(&b.bytes)));
    Some(Sums { sums, unused: (epsilons.len() - used) as u64 })
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

    fn of(sizes: [i64; 2], epsilons: &[(i64, f64)]) -> Option<Sums> {
        let epsilons: Vec<WeightedEpsilon> =
            epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight }).collect();
        sums(sizes, 60, &epsilons)
    }

    fn found(sums: &[(i64, i64, f64)], unused: u64) -> Sums {
        let sums =
            sums.iter().map(|(bytes, epsilon, weight)| Sum { bytes: *bytes, epsilon: *epsilon, weight: *weight });
        Sums { sums: sums.collect(), unused }
    }

    #[test]
    fn heavier_values_of_epsilon_come_first() {
        let sums = of([100, 100], &[(0, 0.5), (1, 0.25), (3, 0.25)]);
        assert_eq!(sums, Some(found(&[(40, 0, 1.0), (37, 3, 0.5), (39, 1, 0.5)], 0)));
    }

    #[test]
    fn equal_sums_of_a_range_are_one() {
        let sums = of([100, 101], &[(1, 0.25), (0, 0.75)]);
        assert_eq!(sums, Some(found(&[(40, 0, 4.0 / 3.0), (41, 0, 1.0), (39, 1, 1.0 / 3.0)], 0)));
    }

    #[test]
    fn a_command_has_an_action() {
        assert_eq!(of([60, 60], &[(0, 0.75), (-1, 0.25)]), Some(found(&[(1, -1, 0.25 / 0.75)], 0)));
        assert_eq!(of([0, 0], &[(0, 1.0)]), Some(found(&[], 0)));
    }

    #[test]
    fn strange_input_costs_little() {
        let without_weight = [(0, f64::NAN), (1, -1.0), (2, f64::INFINITY), (3, 0.0)];
        assert_eq!(of([100, 100], &without_weight), Some(found(&[], 4)));
        let huge = of([100, 100], &[(0, f64::MAX), (0, f64::MAX), (1, 1.0)]).unwrap();
        assert_eq!((huge.sums[0].bytes, huge.sums[0].weight), (40, 1.0));
        assert_eq!(of([0, i64::MAX], &[(0, 1.0)]), None);
        assert_eq!(of([i64::MAX, 0], &[(0, 1.0)]), None);
        assert_eq!(of([i64::MAX; 2], &[(i64::MIN, 1.0)]), Some(found(&[(i64::MAX, i64::MIN, 1.0)], 0)));
        let many: Vec<(i64, f64)> = (0..5000).map(|epsilon| (epsilon, 1.0)).collect();
        assert_eq!(of([10_000, 14_095], &many).unwrap().unused, 5000 - 256);
    }
}
