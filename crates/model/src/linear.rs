//! Linear algebra of the robust fit: least absolute deviations.

use crate::LabelledCommand;

const REWEIGHTINGS: usize = 60;
const PIVOT: f64 = 1e-9;

/// A reweighting that moves no size by more is the last, in bytes.
const SETTLED: f64 = 1e-3;

/// |ac| and the sizes that minimise the sum of absolute deviations, before rounding, by iteratively reweighted least
/// squares.
pub(crate) fn least_absolute_deviations(actions: usize, commands: &[LabelledCommand]) -> Vec<f64> {
    let mut weights = vec![1.0; commands.len()];
    let mut solution = vec![0.0; actions + 1];
    for _ in 0..REWEIGHTINGS {
        let next = weighted_least_squares(actions, commands, &weights);
        let moved =
            next.iter().zip(&solution).map(|(next, size): (&f64, &f64)| (next - size).abs()).fold(0.0, f64::max);
        solution = next;
        if moved < SETTLED {
            break;
        }
        for (weight, command) in weights.iter_mut().zip(commands) {
            let fitted: f64 = row(command).zip(&solution).map(|(count, size)| count * size).sum();
            // All within a range of sizes is as near.
            let [least, most] = command.sizes;
            let reach = (most - least) as f64 / 2.0 + 0.05;
            *weight = 1.0 / (middle(command) - fitted).abs().max(reach);
        }
    }
    solution
}

/// The middle of the sizes a command may have.
fn middle(command: &LabelledCommand) -> f64 {
    let [least, most] = command.sizes;
    f64::midpoint(least as f64, most as f64)
}

/// A command as a row of the design matrix: 1 for |ac|, then the counts.
fn row(command: &LabelledCommand) -> impl Iterator<Item = f64> + Clone + '_ {
    std::iter::once(1.0).chain(command.counts.iter().map(|count| f64::from(*count)))
}

fn weighted_least_squares(actions: usize, commands: &[LabelledCommand], weights: &[f64]) -> Vec<f64> {
    let mut matrix = vec![vec![0.0; actions + 2]; actions + 1];
    for (command, weight) in commands.iter().zip(weights) {
        for (equation, a) in matrix.iter_mut().zip(row(command)) {
            let right = std::iter::once(middle(command));
            for (cell, b) in equation.iter_mut().zip(row(command).chain(right)) {
                *cell += weight * a * b;
            }
        }
    }
    let reduced = reduce(matrix, actions + 1);
    (0..=actions).map(|column| reduced.value(column)).collect()
}

/// A matrix in reduced row echelon form.
struct Reduced {
    rows: Vec<Vec<f64>>,
    /// The pivot column of each row.
    pivots: Vec<usize>,
}

/// Gauss–Jordan elimination with partial pivoting over the first `unknowns` columns.
fn reduce(mut rows: Vec<Vec<f64>>, unknowns: usize) -> Reduced {
    let mut pivots = Vec::new();
    for column in 0..unknowns {
        let top = pivots.len();
        let value = |row: &Vec<f64>| row.get(column).copied().unwrap_or(0.0);
        let scale = rows.iter().map(|row| value(row).abs()).fold(0.0, f64::max);
        let candidate = (top..rows.len()).max_by(|a, b| {
            let at = |row: &usize| rows.get(*row).map_or(0.0, |row| value(row).abs());
            at(a).total_cmp(&at(b))
        });
        let Some(candidate) = candidate else { break };
        let pivot = rows.get(candidate).map_or(0.0, value);
        if pivot.abs() <= PIVOT * scale.max(1.0) {
            continue;
        }
        rows.swap(top, candidate);
        let Some(pivot_row) = rows.get_mut(top) else { break };
        for cell in pivot_row.iter_mut() {
            *cell /= pivot;
        }
        let pivot_row = pivot_row.clone();
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
    Reduced { rows, pivots }
}

impl Reduced {
    /// The value of an unknown, where the last column is the right-hand side.
    fn value(&self, column: usize) -> f64 {
        let row = self.pivots.iter().position(|pivot| *pivot == column).and_then(|row| self.rows.get(row));
        row.and_then(|row| row.last()).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::command;

    #[test]
    fn a_wrong_label_does_not_pull() {
        let mut commands: Vec<_> = (0..30).map(|at| command(70 + 40 * (at % 5), &[at as u32 % 5])).collect();
        commands[7].sizes = commands[7].sizes.map(|size| size + 500);
        let fit = least_absolute_deviations(1, &commands);
        assert!((fit[0] - 70.0).abs() < 0.1 && (fit[1] - 40.0).abs() < 0.1, "{fit:?}");
    }
}
