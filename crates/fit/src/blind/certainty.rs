//! How certain an explanation is.

use super::expectation::{Step, expect, normalised};
use super::search::Candidate;
use super::sparsity::Atom;
use super::sums::Plan;

/// An explanation that is less likely by more than this in nats is excluded: it is one of about a hundred and fifty.
pub(super) const EXCLUDED: f64 = 5.0;
/// How far from its most probable size an action's size is tried, in bytes; beyond it, other explanations are nearer.
const REACH: i64 = 4;

/// The smallest and the largest size of an action in bytes that the rows do not exclude, all else being equal; and by
/// how much the next best size is less likely, in nats.
pub(super) fn interval(candidate: &Candidate, plan: &Plan, atom: Atom, step: Step) -> ([i64; 2], f64) {
    let targets = candidate.targets(plan);
    let best = expect(plan, &targets, &candidate.parameters, step.outlier_density).log_likelihood;
    let difference = |size: i64| {
        let mut moved = candidate.parameters.clone();
        let sizes = moved.sizes.get_mut(atom.class).filter(|_| size >= 1)?;
        let moved_size = |old: i64| if old == atom.size { size } else { old };
        *sizes = normalised(sizes.iter().map(|(old, probability)| (moved_size(*old), *probability)));
        Some(best - expect(plan, &targets, &moved, step.outlier_density).log_likelihood)
    };
    let (mut ends, mut least) = ([atom.size; 2], f64::INFINITY);
    for (end, direction) in ends.iter_mut().zip([-1, 1]) {
        for size in (1..=REACH).map(|by| atom.size + direction * by) {
            let Some(difference) = difference(size) else { break };
            least = least.min(difference);
            if difference >= EXCLUDED {
                break;
            }
            *end = size;
        }
    }
    (ends, least)
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
