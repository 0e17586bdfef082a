//! A first guess: a robust regression of sizes on numbers of replies.

use super::rows::Row;
use crate::least_absolute_deviations::{normal_equations, solve};

/// The quantile of sizes that the regression follows: below the median, since actions without a reply only add bytes.
const QUANTILE: f64 = 0.4;
/// The most rows that it looks at, a bound of the time.
const MAX_ROWS: usize = 1500;

/// The intercept, then the bytes for each class of replies. `sizes`: of each row, in bytes.
pub(super) fn regression(rows: &[Row], sizes: &[i64]) -> Vec<f64> {
    let unknowns = rows.first().map_or(0, |row| row.replies.len()) + 1;
    let every = rows.len().div_ceil(MAX_ROWS).max(1);
    let equation = |(row, size): (&Row, &i64)| {
        let counts = std::iter::once(1.0).chain(row.replies.iter().map(|count| f64::from(*count)));
        (counts.chain([*size as f64]).collect(), row.commands as f64)
    };
    let data: Vec<(Vec<f64>, f64)> = rows.iter().zip(sizes).step_by(every).map(equation).collect();
    let mut solution = vec![0.0; unknowns];
    for round in 0..40 {
        let weighted = data.iter().map(|(row, commands)| {
            let fitted: f64 = row.iter().zip(&solution).map(|(count, value)| count * value).sum();
            let rest = row[unknowns] - fitted;
            let side = if rest < 0.0 { 1.0 - QUANTILE } else { QUANTILE };
            (row.iter().copied(), commands * if round == 0 { 1.0 } else { side / rest.abs().max(1.0) })
        });
        let mut matrix = normal_equations(unknowns, weighted);
        for (index, line) in matrix.iter_mut().enumerate() {
            line[index] = line[index] * (1.0 + 1e-9) + 1e-6;
        }
        solution = solve(matrix, unknowns);
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_move_it() {
        let row = |replies: [u8; 2]| Row { size: 0, replies: replies.to_vec(), silent: None, commands: 5 };
        let counts = [[1, 0], [2, 0], [0, 1], [0, 2], [1, 1], [2, 1], [3, 1], [1, 3]];
        let rows: Vec<Row> = counts.iter().cycle().take(80).map(|counts| row(*counts)).collect();
        let sizes: Vec<i64> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let odd = if index % 9 == 0 { 37 } else { 0 };
                60 + 30 * i64::from(row.replies[0]) + 40 * i64::from(row.replies[1]) + odd
            })
            .collect();
        let solution = regression(&rows, &sizes);
        assert!((solution[0] - 60.0).abs() < 1.0, "{solution:?}");
        assert!((solution[2] - 40.0).abs() < 1.0, "{solution:?}");
    }
}
