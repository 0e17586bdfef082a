//! Least absolute deviations: sizes that a few wrong labels bias little.

use std::borrow::Cow;

use sizeleak_model::LabelledCommand;

const MAX_REWEIGHTINGS: usize = 60;

/// Pivots up to this share of the largest value in their column count as zero.
const PIVOT: f64 = 1e-9;

/// The iteration ends once no size changes by this much, in bytes.
const CONVERGED: f64 = 1e-3;

/// Deviations of fewer bytes are alike.
const ALIKE: f64 = 0.05;

/// Commands with the same actions, as far as these are known.
#[derive(Debug, Clone)]
pub(crate) struct Observed<'a> {
    pub(crate) counts: Cow<'a, [u32]>,
    /// The least and the greatest size that they may have, in bytes: all between are equally good.
    pub(crate) sizes: [i64; 2],
    pub(crate) commands: f64,
}

impl<'a> From<&'a LabelledCommand> for Observed<'a> {
    fn from(command: &'a LabelledCommand) -> Self {
        Self { counts: Cow::Borrowed(&command.counts), sizes: command.sizes, commands: 1.0 }
    }
}

impl Observed<'_> {
    fn middle(&self) -> f64 {
        let [least, most] = self.sizes;
        f64::midpoint(least as f64, most as f64)
    }

    /// The row of the design matrix: 1 for |ac|, then the counts.
    fn matrix_row(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        std::iter::once(1.0).chain(self.counts.iter().map(|count| f64::from(*count)))
    }
}

/// |ac| and the action sizes of the least sum of absolute deviations, not rounded.
pub(crate) fn least_absolute_deviations(actions: usize, commands: &[LabelledCommand]) -> Vec<f64> {
    regression(actions, &commands.iter().map(Observed::from).collect::<Vec<_>>(), 0.5)
}

/// |ac| and the action sizes that this share of the commands, as near as can be, does not exceed: with a half, those of
/// the least sum of absolute deviations (Koenker and Bassett 1978). By iteratively reweighted squares.
pub(crate) fn regression(actions: usize, observed: &[Observed<'_>], quantile: f64) -> Vec<f64> {
    let mut weights: Vec<f64> = observed.iter().map(|one| one.commands).collect();
    let mut solution = vec![0.0; actions + 1];
    for _ in 0..MAX_REWEIGHTINGS {
        let rows = observed.iter().map(|one| one.matrix_row().chain(std::iter::once(one.middle())));
        let next = solve(normal_equations(actions + 1, rows.zip(weights.iter().copied())), actions + 1);
        let change = next.iter().zip(&solution).map(|(next, size)| f64::abs(next - size)).fold(0.0, f64::max);
        solution = next;
        if change < CONVERGED {
            break;
        }
        for (weight, one) in weights.iter_mut().zip(observed) {
            let fitted: f64 = one.matrix_row().zip(&solution).map(|(count, size)| count * size).sum();
            let rest = one.middle() - fitted;
            let side = if rest < 0.0 { 1.0 - quantile } else { quantile };
            let tolerance = (one.sizes[1] - one.sizes[0]) as f64 / 2.0 + ALIKE;
            *weight = one.commands * 2.0 * side / rest.abs().max(tolerance);
        }
    }
    solution
}

/// The normal equations of weighted least squares. Rows, each with its weight, and equations have the right side last.
fn normal_equations<R>(unknowns: usize, rows: impl Iterator<Item = (R, f64)>) -> Vec<Vec<f64>>
where
    R: Iterator<Item = f64> + Clone,
{
    let mut matrix = vec![vec![0.0; unknowns + 1]; unknowns];
    for (row, weight) in rows {
        for (equation, a) in matrix.iter_mut().zip(row.clone()) {
            for (cell, b) in equation.iter_mut().zip(row.clone()) {
                *cell += weight * a * b;
            }
        }
    }
    matrix
}

/// Solves linear equations, whose last column is the right-hand side, by Gauss–Jordan elimination with partial
/// pivoting. Unknowns that the equations do not determine are 0.
fn solve(mut rows: Vec<Vec<f64>>, unknowns: usize) -> Vec<f64> {
    let mut solution = vec![0.0; unknowns];
    let mut pivots = Vec::new();
    for column in 0..unknowns {
        let top = pivots.len();
        let value = |row: &Vec<f64>| row[column];
        let scale = rows.iter().map(|row| value(row).abs()).fold(0.0, f64::max);
        let candidate = (top..rows.len()).max_by(|a, b| {
            let size = |row: &usize| value(&rows[*row]).abs();
            size(a).total_cmp(&size(b))
        });
        let Some(candidate) = candidate else { break };
        let pivot = value(&rows[candidate]);
        if pivot.abs() <= PIVOT * scale.max(1.0) {
            continue;
        }
        rows.swap(top, candidate);
        for cell in &mut rows[top] {
            *cell /= pivot;
        }
        let pivot_row = rows[top].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != top) {
            let factor = value(row);
            if factor != 0.0 {
                for (cell, pivot) in row.iter_mut().zip(&pivot_row) {
                    *cell -= factor * pivot;
                }
            }
        }
        pivots.push(column);
    }
    for (row, column) in rows.iter().zip(pivots) {
        solution[column] = row[unknowns];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::testing::command;

    #[test]
    fn one_wrong_label_barely_changes_the_solution() {
        let mut commands: Vec<_> = (0..30).map(|at| command(70 + 40 * (at % 5), &[at as u32 % 5])).collect();
        commands[7].sizes = commands[7].sizes.map(|size| size + 500);
        let fit = least_absolute_deviations(1, &commands);
        assert!((fit[0] - 70.0).abs() < 0.1 && (fit[1] - 40.0).abs() < 0.1, "{fit:?}");
    }
}
