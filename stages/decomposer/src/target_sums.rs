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
