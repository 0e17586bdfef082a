//! How certain an explanation is.

use crate::expectation::{Step, expect, normalised};
use crate::search::Candidate;
use crate::sparsity::Atom;
use crate::sums::Plan;

/// An explanation that is less likely by more than this, in nats, is excluded.
pub(crate) const EXCLUDED: f64 = 5.0;
/// How far from its most probable size an action's size is tried, in bytes.
const REACH: i64 = 4;

/// The smallest and the largest size of an action that the rows do not exclude, in bytes, all else being equal.
pub(crate) fn interval(candidate: &Candidate, plan: &Plan, atom: Atom, step: Step) -> [i64; 2] {
    let targets = candidate.targets(plan);
    let best = expect(plan, &targets, &candidate.parameters, step.outlier_density).log_likelihood;
    let is_open = |size: i64| {
        let mut moved = candidate.parameters.clone();
        let Some(sizes) = moved.sizes.get_mut(atom.class) else { return false };
        let mut all = std::collections::BTreeMap::new();
        for (old, probability) in sizes.iter() {
            *all.entry(if *old == atom.size { size } else { *old }).or_insert(0.0) += *probability;
        }
        *sizes = normalised(all.into_iter());
        size >= 1 && expect(plan, &targets, &moved, step.outlier_density).log_likelihood > best - EXCLUDED
    };
    let reach = |direction: i64| {
        (1..=REACH).map(|by| atom.size + direction * by).take_while(|size| is_open(*size)).last().unwrap_or(atom.size)
    };
    [reach(-1), reach(1)]
}

/// How many more commands make a difference of log-likelihoods large enough, if it goes on growing as it did.
pub(crate) fn more_commands(commands: usize, difference: f64) -> Option<usize> {
    let missing = EXCLUDED - difference;
    if missing <= 0.0 {
        return None;
    }
    let more = commands as f64 * missing / difference.max(0.0);
    (more.is_finite() && more < 1e7).then_some(more.ceil() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_grows_with_the_commands() {
        assert_eq!(more_commands(100, 2.5), Some(100));
        assert_eq!(more_commands(100, 5.0), None);
        assert_eq!(more_commands(100, 0.0), None);
    }
}
