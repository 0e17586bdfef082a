//! Eigenvalues of small symmetric matrices.

/// Beyond, rounding is all that changes.
const MAX_SWEEPS: usize = 30;

/// A symmetric matrix, by rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Symmetric {
    pub(crate) size: usize,
    pub(crate) values: Vec<f64>,
}

impl Symmetric {
    pub(crate) fn zero(size: usize) -> Self {
        Self { size, values: vec![0.0; size * size] }
    }

    pub(crate) fn diagonal(size: usize, factor: f64) -> Self {
        let mut matrix = Self::zero(size);
        for at in 0..size {
            matrix.values[at * size + at] = factor;
        }
        matrix
    }

    /// Adds v·vᵀ times a factor.
    pub(crate) fn add_square(&mut self, vector: &[f64], factor: f64) {
        for (row, one) in self.values.chunks_exact_mut(self.size).zip(vector) {
            for (value, other) in row.iter_mut().zip(vector) {
                *value += factor * one * other;
            }
        }
    }

    /// Adds v·vᵀ times a factor, given the places of v that are not 0, each with its number.
    pub(crate) fn add_square_of(&mut self, numbers: &[(u32, u32)], factor: f64) {
        for (row, one) in numbers {
            let (own, factor) = (&mut self.values[*row as usize * self.size..][..self.size], factor * f64::from(*one));
            for (column, other) in numbers {
                own[*column as usize] += factor * f64::from(*other);
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self, factor: f64) {
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value += factor * other;
        }
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        for value in &mut self.values {
            *value *= factor;
        }
    }

    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.values.chunks_exact(self.size).map(|row| dot(row, vector)).collect()
    }

    /// The eigenvalues, each with its vector of length 1, by Jacobi's rotations: exact to rounding for matrices of a few dozen
    /// rows.
    pub(crate) fn eigen(&self) -> Vec<(f64, Vec<f64>)> {
        let size = self.size;
        let mut values = self.values.clone();
        // Its rows become the vectors.
        let mut vectors = Self::diagonal(size, 1.0).values;
        for _ in 0..MAX_SWEEPS {
            let off = |row: usize| (0..row).map(|column| values[row * size + column].powi(2)).sum::<f64>();
            let all: f64 = values.iter().map(|value| value * value).sum();
            if (0..size).map(off).sum::<f64>() <= 1e-24 * all {
                break;
            }
            for row in 1..size {
                for column in 0..row {
                    rotate(size, &mut values, &mut vectors, row, column);
                }
            }
        }
        let vectors = vectors.chunks_exact(size.max(1)).map(<[f64]>::to_vec);
        (0..size).map(|at| values[at * size + at]).zip(vectors).collect()
    }
}

/// The rotation after which the value in this row and column is 0.
fn rotate(size: usize, values: &mut [f64], vectors: &mut [f64], row: usize, column: usize) {
    let off = values[row * size + column];
    if off == 0.0 {
        return;
    }
    let half = (values[column * size + column] - values[row * size + row]) / (2.0 * off);
    let tangent = half.signum() / (half.abs() + (half * half + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let along = tangent * cosine;
    let turn = |values: &mut [f64], one: usize, other: usize| {
        let (own, next) = (values[one], values[other]);
        (values[one], values[other]) = (cosine * own - along * next, along * own + cosine * next);
    };
    for at in 0..size {
        turn(values, at * size + row, at * size + column);
    }
    for at in 0..size {
        turn(values, row * size + at, column * size + at);
        turn(vectors, row * size + at, column * size + at);
    }
}

pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn vectors_are_orthogonal_and_make_up_the_matrix(
            size in 1usize..9,
            values in prop::collection::vec(-3.0f64..3.0, 81),
            rank in 0usize..9,
        ) {
            let mut matrix = Symmetric::zero(size);
            for (at, vector) in values.chunks_exact(9).take(rank).enumerate() {
                matrix.add_square(&vector[..size], if at % 2 == 0 { 1.0 } else { -0.5 });
            }
            let eigen = matrix.eigen();
            let mut again = Symmetric::zero(size);
            for (value, vector) in &eigen {
                again.add_square(vector, *value);
            }
            for (found, wanted) in again.values.iter().zip(&matrix.values) {
                prop_assert!((found - wanted).abs() < 1e-9, "{again:?} {matrix:?}");
            }
            for (one, (_, vector)) in eigen.iter().enumerate() {
                for (other, (_, next)) in eigen.iter().enumerate() {
                    let wanted = f64::from(u8::from(one == other));
                    prop_assert!((dot(vector, next) - wanted).abs() < 1e-9);
                }
            }
        }
    }
}
