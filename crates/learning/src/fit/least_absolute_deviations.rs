//! Least absolute deviations: sizes that a few wrong labels bias little.

use sizeleak_model::LabelledCommand;

const MAX_REWEIGHTINGS: usize = 60;

/// Pivots up to this share of the largest value in their column count as zero.
const PIVOT: f64 = 1e-9;

/// The iteration ends once no size changes by this much, in bytes.
const CONVERGED: f64 = 1e-3;

/// |ac| and the action sizes of the least sum of absolute deviations, not rounded, by iteratively reweighted squares.
pub(crate) fn least_absolute_deviations(actions: usize, commands: &[LabelledCommand]) -> Vec<f64> {
    let mut weights = vec![1.0; commands.len()];
    let mut solution = vec![0.0; actions + 1];
    for _ in 0..MAX_REWEIGHTINGS {
        let rows = commands.iter().map(|command| matrix_row(command).chain(std::iter::once(middle(command))));
        let next = solve(normal_equations(actions + 1, rows.zip(weights.iter().copied())), actions + 1);
        let change = next.iter().zip(&solution).map(|(next, size)| f64::abs(next - size)).fold(0.0, f64::max);
        solution = next;
        if change < CONVERGED {
            break;
        }
        for (weight, command) in weights.iter_mut().zip(commands) {
            let fitted: f64 = matrix_row(command).zip(&solution).map(|(count, size)| count * size).sum();
            // All sizes within a command's range are equally good.
            let [least, most] = command.sizes;
            let tolerance = (most - least) as f64 / 2.0 + 0.05;
            *weight = 1.0 / (middle(command) - fitted).abs().max(tolerance);
        }
    }
    solution
}

fn middle(command: &LabelledCommand) -> f64 {
    let [least, most] = command.sizes;
    f64::midpoint(least as f64, most as f64)
}

/// A command as a row of the design matrix: 1 for |ac|, then the counts.
fn matrix_row(command: &LabelledCommand) -> impl Iterator<Item = f64> + Clone + '_ {
    std::iter::once(1.0).chain(command.counts.iter().map(|count| f64::from(*count)))
}

/// The normal equations of weighted least squares. Rows, each with its weight, and equations have the right side last.
pub(crate) fn normal_equations<R>(unknowns: usize, rows: impl Iterator<Item = (R, f64)>) -> Vec<Vec<f64>>
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
pub(crate) fn solve(mut rows: Vec<Vec<f64>>, unknowns: usize) -> Vec<f64> {
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
