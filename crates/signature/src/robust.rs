//! The robust fit: integer sizes from all labelled commands, whatever they are made of.
//!
//! Least absolute deviations (by iteratively reweighted least squares) give a start that wrong labels do not pull far.
//! It is then improved over integers by what the method needs: that commands of nearly the same size leave nearly the
//! same ε. That cost is blind to steps of length fields, which shift all commands above some size alike, and counts a
//! wrong label no more than [`CAP`] bytes.

use crate::fit::{FitError, LabelledCommand, Sizes, median, weigh};

/// A residual farther than this from those of its neighbours is no worse than one just as far, in bytes.
const CAP: i64 = 12;

/// A residual this far from the median of those around it, in bytes, is an outlier.
const OUTLIER: i64 = 16;

/// How many residuals around one decide whether it is an outlier.
const AROUND: usize = 8;

const REWEIGHTINGS: usize = 60;
const SEARCH_ROUNDS: usize = 50;
const PIVOT: f64 = 1e-9;

pub(crate) fn sizes(names: &[String], commands: &[LabelledCommand]) -> Result<Sizes, FitError> {
    let unknown = unidentifiable(names.len(), commands);
    if !unknown.is_empty() {
        let name = |at: &usize| names.get(*at).cloned().unwrap_or_default();
        return Err(FitError::Unidentifiable(unknown.iter().map(name).collect()));
    }
    let mut sorted: Vec<(usize, &LabelledCommand)> = commands.iter().enumerate().collect();
    sorted.sort_by_key(|(_, command)| command.size);
    let ordered: Vec<&LabelledCommand> = sorted.iter().map(|(_, command)| *command).collect();
    let start = least_absolute_deviations(names.len(), commands);
    let actions = search(start.iter().skip(1).map(|size| size.round() as i64).collect(), &ordered);
    let residuals = residuals(&actions, &ordered);
    let outliers: Vec<usize> = sorted
        .iter()
        .zip(0..)
        .filter(|(_, at)| is_outlier(&residuals, *at))
        .map(|((command, _), _)| *command)
        .collect();
    let kept = sorted.iter().zip(&residuals).filter(|((command, _), _)| !outliers.contains(command));
    let overhead = median(&mut kept.map(|(_, residual)| *residual).collect::<Vec<_>>());
    Ok(Sizes { overhead, actions, outliers })
}

/// What remains of each command's size without its actions.
fn residuals(actions: &[i64], commands: &[&LabelledCommand]) -> Vec<i64> {
    commands.iter().map(|command| command.size - weigh(actions, &command.counts)).collect()
}

/// How much commands next to each other in size differ in what remains.
fn cost(actions: &[i64], commands: &[&LabelledCommand]) -> i64 {
    let residuals = residuals(actions, commands);
    residuals.windows(2).map(|pair| if let [a, b] = pair { (a - b).abs().min(CAP) } else { 0 }).sum()
}

/// Changes one size, or two at once, by a byte or two as long as that lowers the cost.
fn search(mut actions: Vec<i64>, commands: &[&LabelledCommand]) -> Vec<i64> {
    let mut best = cost(&actions, commands);
    for _ in 0..SEARCH_ROUNDS {
        let before = best;
        for change in changes(actions.len()) {
            apply(&mut actions, &change, 1);
            let now = cost(&actions, commands);
            if now < best {
                best = now;
            } else {
                apply(&mut actions, &change, -1);
            }
        }
        if best == before {
            break;
        }
    }
    actions
}

/// All changes of one size by up to 3 bytes, of two by one byte each while there are few, and of all by one.
fn changes(actions: usize) -> Vec<Vec<(usize, i64)>> {
    let single = (0..actions).flat_map(|at| [1, -1, 2, -2, 3, -3].map(|by| vec![(at, by)]));
    let mut changes: Vec<Vec<(usize, i64)>> = single.collect();
    changes.extend([1, -1].map(|by| (0..actions).map(|at| (at, by)).collect()));
    if actions <= 24 {
        for first in 0..actions {
            for second in first + 1..actions {
                changes.extend([(1, 1), (1, -1), (-1, 1), (-1, -1)].map(|(a, b)| vec![(first, a), (second, b)]));
            }
        }
    }
    changes
}

fn apply(actions: &mut [i64], change: &[(usize, i64)], sign: i64) {
    for (at, by) in change {
        if let Some(size) = actions.get_mut(*at) {
            *size += sign * by;
        }
    }
}

/// Whether what remains of a command is far from what remains of those next to it in size.
fn is_outlier(residuals: &[i64], at: usize) -> bool {
    let (start, end) = (at.saturating_sub(AROUND / 2), (at + AROUND / 2 + 1).min(residuals.len()));
    let mut around: Vec<i64> =
        (start..end).filter(|other| *other != at).filter_map(|at| residuals.get(at)).copied().collect();
    match residuals.get(at) {
        Some(residual) if around.len() >= AROUND / 2 => (residual - median(&mut around)).abs() > OUTLIER,
        _ => false,
    }
}

/// |ac| and the sizes that minimise the sum of absolute deviations, before rounding.
fn least_absolute_deviations(actions: usize, commands: &[LabelledCommand]) -> Vec<f64> {
    let mut weights = vec![1.0; commands.len()];
    let mut solution = vec![0.0; actions + 1];
    for _ in 0..REWEIGHTINGS {
        solution = weighted_least_squares(actions, commands, &weights);
        for (weight, command) in weights.iter_mut().zip(commands) {
            let fitted: f64 = row(command).zip(&solution).map(|(count, size)| count * size).sum();
            *weight = 1.0 / (command.size as f64 - fitted).abs().max(0.05);
        }
    }
    solution
}

/// A command as a row of the design matrix: 1 for |ac|, then the counts.
fn row(command: &LabelledCommand) -> impl Iterator<Item = f64> + Clone + '_ {
    std::iter::once(1.0).chain(command.counts.iter().map(|count| f64::from(*count)))
}

fn weighted_least_squares(actions: usize, commands: &[LabelledCommand], weights: &[f64]) -> Vec<f64> {
    let mut matrix = vec![vec![0.0; actions + 2]; actions + 1];
    for (command, weight) in commands.iter().zip(weights) {
        for (equation, a) in matrix.iter_mut().zip(row(command)) {
            let right = std::iter::once(command.size as f64);
            for (cell, b) in equation.iter_mut().zip(row(command).chain(right)) {
                *cell += weight * a * b;
            }
        }
    }
    let reduced = reduce(matrix, actions + 1);
    (0..=actions).map(|column| reduced.value(column)).collect()
}

/// The places of the actions whose sizes the commands do not determine: those in a direction that changes no command.
fn unidentifiable(actions: usize, commands: &[LabelledCommand]) -> Vec<usize> {
    let reduced = reduce(commands.iter().map(|command| row(command).collect()).collect(), actions + 1);
    (0..actions).filter(|action| !reduced.determines(action + 1)).collect()
}

/// A matrix in reduced row echelon form.
struct Reduced {
    rows: Vec<Vec<f64>>,
    /// The pivot column of each row.
    pivots: Vec<usize>,
    unknowns: usize,
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
    Reduced { rows, pivots, unknowns }
}

impl Reduced {
    /// The value of an unknown, where the last column is the right-hand side.
    fn value(&self, column: usize) -> f64 {
        let row = self.pivots.iter().position(|pivot| *pivot == column).and_then(|row| self.rows.get(row));
        row.and_then(|row| row.last()).copied().unwrap_or(0.0)
    }

    /// Whether the rows fix an unknown: it has a pivot, and no unknown without one stands in its row.
    fn determines(&self, column: usize) -> bool {
        let row = self.pivots.iter().position(|pivot| *pivot == column).and_then(|row| self.rows.get(row));
        let free = |other: &usize| !self.pivots.contains(other);
        row.is_some_and(|row| {
            (0..self.unknowns).filter(free).all(|other| row.get(other).is_some_and(|cell| cell.abs() < 1e-6))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A small generator: tests must not depend on the platform's.
    fn noise(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    /// Commands of a gateway with a message id of varying width, a length field that grows by 2 at a size, and some
    /// wrong labels.
    fn gateway(seed: u64, actions: &[i64], commands: usize, step: i64, wrong: u64) -> Vec<LabelledCommand> {
        let mut seed = seed;
        let mut made = Vec::new();
        for _ in 0..commands {
            let total = 1 + noise(&mut seed) % 12;
            let mut counts = vec![0; actions.len()];
            for _ in 0..total {
                let at = noise(&mut seed) as usize % actions.len();
                counts[at] += 1;
            }
            let id_width = match noise(&mut seed) % 100 {
                0..90 => 6,
                90..99 => 5,
                _ => 4,
            };
            let body = 60 + id_width + weigh(actions, &counts);
            let size = body + if body >= step { 2 } else { 0 };
            if noise(&mut seed) % 100 < wrong {
                let at = noise(&mut seed) as usize % actions.len();
                counts[at] += 2;
            }
            made.push(LabelledCommand { size, counts, replies: 0 });
        }
        made
    }

    fn names(actions: &[i64]) -> Vec<String> {
        (0..actions.len()).map(|at| format!("a{at}")).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn finds_the_exact_sizes(
            seed: u64,
            actions in prop::collection::vec(20i64..60, 2..8),
            step in prop::sample::select(vec![0, 126, 200, 300, 100_000]),
            wrong in 0u64..8,
        ) {
            let commands = gateway(seed, &actions, 130, step, wrong);
            let sizes = sizes(&names(&actions), &commands).unwrap();
            prop_assert_eq!(sizes.actions, actions);
        }

        #[test]
        fn singles_and_doubles_are_enough(actions in prop::collection::vec(20i64..60, 1..8)) {
            let mut commands = Vec::new();
            for at in 0..actions.len() {
                for times in [1, 2] {
                    let mut counts = vec![0; actions.len()];
                    counts[at] = times;
                    commands.push(LabelledCommand { size: 70 + weigh(&actions, &counts), counts, replies: 0 });
                }
            }
            let sizes = sizes(&names(&actions), &commands).unwrap();
            prop_assert_eq!(sizes.overhead, 70);
            prop_assert_eq!(sizes.actions, actions);
        }
    }

    #[test]
    fn wrong_labels_are_outliers() {
        let mut commands = gateway(1, &[40, 47, 52], 100, 100_000, 0);
        commands[17].counts[1] += 1;
        let sizes = sizes(&names(&[0; 3]), &commands).unwrap();
        assert_eq!(sizes.outliers, [17]);
    }

    #[test]
    fn a_proportion_that_never_changes_is_noticed() {
        let command = |a, b, c| LabelledCommand { size: 100, counts: vec![a, b, c], replies: 0 };
        let commands = [command(1, 2, 0), command(2, 4, 1), command(3, 6, 0), command(0, 0, 3)];
        assert_eq!(unidentifiable(3, &commands), [0, 1]);
        let same_total = [command(1, 2, 0), command(2, 1, 0), command(0, 3, 0)];
        assert_eq!(unidentifiable(3, &same_total), [0, 1, 2], "three actions in every command: |ac| could be theirs");
    }
}
