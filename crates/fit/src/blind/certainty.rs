//! How certain an explanation is.

use super::expectation::{Step, expect, normalised};
use super::search::Candidate;
use super::sparsity::Atom;
use super::sums::Plan;

/// An explanation that is less likely by more than this in nats is excluded: it is one of about a hundred and fifty.
pub(super) const EXCLUDED: f64 = 5.0;
/// How far from its most probable size an action's size is tried, in bytes; beyond it, other explanations are nearer.
const REACH: i64 = 4;

/// The sizes of an action that the rows do not exclude, all else being equal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Interval {
    /// The smallest and the largest, in bytes.
    pub(super) ends: [i64; 2],
    /// By how much the next best size is less likely, in nats.
    pub(super) difference: f64,
}

/// The interval of an action's size.
pub(super) fn interval(candidate: &Candidate, plan: &Plan, atom: Atom, step: Step) -> Interval {
    let targets = candidate.targets(plan);
    let best = expect(plan, &targets, &candidate.parameters, step.outlier_density).log_likelihood;
    let difference = |size: i64| {
        let mut moved = candidate.parameters.clone();
        let sizes = moved.sizes.get_mut(atom.class).filter(|_| size >= 1)?;
        let mut all = std::collections::BTreeMap::new();
        for (old, probability) in sizes.iter() {
            *all.entry(if *old == atom.size { size } else { *old }).or_insert(0.0) += *probability;
        }
        *sizes = normalised(all.into_iter());
        Some(best - expect(plan, &targets, &moved, step.outlier_density).log_likelihood)
    };
    let mut found = Interval { ends: [atom.size, atom.size], difference: f64::INFINITY };
    for (end, direction) in found.ends.iter_mut().zip([-1, 1]) {
        for size in (1..=REACH).map(|by| atom.size + direction * by) {
            let Some(difference) = difference(size) else { break };
            found.difference = found.difference.min(difference);
            if difference >= EXCLUDED {
                break;
            }
            *end = size;
        }
    }
    found
}

/// How many more commands make a difference of log-likelihoods large enough, if it goes on growing as it did.
pub(super) fn more_commands(commands: usize, difference: f64) -> Option<usize> {
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
