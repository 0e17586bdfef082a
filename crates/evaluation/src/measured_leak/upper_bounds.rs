//! What no observer exceeds: upper bounds of V that hold for any number of commands, as long as these are drawn
//! independently.

use serde::Serialize;

use super::output_cells::{OutputCells, count_secrets};
use crate::statistics::Confidence;
use crate::statistics::share::wilson;

/// Two upper bounds of V. Each alone is exceeded with half the probability that the usual confidence leaves at one end,
/// so that both hold together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UpperBounds {
    /// The share of commands that an observer names who learned from these very commands, and more for chance. Its mean
    /// is at least V, and a command changes it by at most 1/n, so that it is below V by more than √(ln(1/α) / 2n) with a
    /// probability of at most α (by the inequality of `McDiarmid`, 1989).
    pub learned_by_heart: f64,
    /// From the errors of a single nearest neighbour: its error R bounds the least error R* of anybody by
    /// R ≤ 2R* − L/(L − 1) · R*² for L secrets (Cover and Hart 1967).
    pub nearest_neighbour: f64,
}

impl UpperBounds {
    pub(super) fn new(secrets: &[u32], times: &[u64], cells: &OutputCells) -> Self {
        let rows = secrets.len().max(1);
        let (mut named, mut wrong) = (0, 0.0);
        count_secrets(cells, secrets, &mut vec![0; times.len()], |_, rows, counts| {
            let alike = |row: &usize| counts[secrets[*row] as usize];
            named += rows.iter().map(alike).max().unwrap_or(0);
            // Each command, with one of the others of its cell as its neighbour.
            let others = rows.len().saturating_sub(1).max(1) as f64;
            wrong += rows.iter().map(|row| f64::from(rows.len() as u32 - alike(row)) / others).sum::<f64>();
        });
        let chance = ((2.0 / Confidence::USUAL.tail()).ln() / (2.0 * rows as f64)).sqrt();
        Self {
            learned_by_heart: (f64::from(named) / rows as f64 + chance).min(1.0),
            nearest_neighbour: cover_hart(least_error(wrong, rows), limit_of_secrets(times)),
        }
    }

    pub fn least(&self) -> f64 {
        self.learned_by_heart.min(self.nearest_neighbour)
    }
}

/// The least error of a single nearest neighbour that `wrong` of this many commands allow. Where an output was seen before,
/// the neighbour has the same one, however few commands there are, so its error is that of the limit of the theorem.
/// Commands whose output no other has count as named.
fn least_error(wrong: f64, rows: usize) -> f64 {
    wilson(wrong as u64, rows as u64, Confidence::OF_TWO).low
}

/// (L − 1) / L for L secrets, or 1 if there may be any number: some secret occurs only once, so there are others that
/// do not occur (Good 1953).
fn limit_of_secrets(times: &[u64]) -> f64 {
    if times.contains(&1) || times.len() < 2 { 1.0 } else { 1.0 - 1.0 / times.len() as f64 }
}

/// The greatest V that leaves a single neighbour this error.
fn cover_hart(error: f64, limit: f64) -> f64 {
    1.0 - limit * (1.0 - (1.0 - error / limit).max(0.0).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured_leak::output_cells::SeenOutput;
    use crate::statistics::tests::assert_near;

    #[test]
    fn error_of_a_neighbour_bounds_that_of_anybody_as_cover_and_hart_say() {
        for secrets in [2_u32, 3, 10] {
            let limit = 1.0 - 1.0 / f64::from(secrets);
            for best in [0.0, 0.1, 0.3, limit] {
                let neighbour = 2.0 * best - best * best / limit;
                assert_near(cover_hart(neighbour, limit), 1.0 - best, 1e-7);
            }
        }
        assert_near(cover_hart(0.0, 1.0), 1.0, 0.0);
        assert!(cover_hart(0.5, 1.0) > cover_hart(0.5, 0.5));
    }

    #[test]
    fn bounds_are_those_of_a_small_sample_by_hand() {
        // 100 commands of one size, half of each secret: learned by heart, half are named.
        let secrets: Vec<u32> = (0..100).map(|row| row % 2).collect();
        let cells = OutputCells::new(&vec![SeenOutput::default(); 100]);
        let bounds = UpperBounds::new(&secrets, &[50, 50], &cells);
        assert_near(bounds.learned_by_heart, 0.5 + (80_f64.ln() / 200.0).sqrt(), 1e-12);
        // 100 · 50/99 neighbours are of the other secret.
        let error = wilson(50, 100, Confidence::OF_TWO).low;
        assert_near(bounds.nearest_neighbour, 0.5 + 0.5 * (1.0 - 2.0 * error).sqrt(), 1e-12);
        // A size of its own for each command says nothing of what others could do.
        let own: Vec<SeenOutput> = (0..100).map(|size| SeenOutput { size, replies: 0 }).collect();
        assert_near(UpperBounds::new(&secrets, &[50, 50], &OutputCells::new(&own)).least(), 1.0, 0.0);
    }
}
