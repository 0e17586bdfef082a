//! A distribution of sums of sizes.

/// The weights of consecutive sums.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Distribution {
    /// The sum of the first weight, in bytes.
    pub(crate) least: usize,
    pub(crate) weights: Vec<f64>,
}

impl Distribution {
    /// No bytes at all, with the weight 1.
    pub(crate) fn zero() -> Self {
        Self { least: 0, weights: vec![1.0] }
    }

    /// Sizes in bytes with their weights, in ascending order.
    pub(crate) fn of(sizes: &[(usize, f64)]) -> Self {
        let (least, most) = (sizes.first().map_or(0, |first| first.0), sizes.last().map_or(0, |last| last.0));
        let mut weights = vec![0.0; most - least + 1];
        for (size, weight) in sizes {
            if let Some(slot) = weights.get_mut(size - least) {
                *slot += weight;
            }
        }
        Self { least, weights }
    }

    /// The distribution of the sum of both, up to a greatest sum; `None` if all sums are greater.
    pub(crate) fn plus(&self, other: &Self, most: usize) -> Option<Self> {
        let least = self.least + other.least;
        let room = most.checked_sub(least)? + 1;
        let mut weights = vec![0.0; room.min(self.weights.len() + other.weights.len() - 1)];
        let (short, long) = if self.weights.len() < other.weights.len() { (self, other) } else { (other, self) };
        for (offset, weight) in short.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            add_multiple(weights.get_mut(offset..).unwrap_or_default(), *weight, &long.weights);
        }
        Some(Self { least, weights })
    }

    /// Σ weight · value of its sum, where `values` are those of the sums from 0 on.
    pub(crate) fn product(&self, values: &[f64]) -> f64 {
        let values = values.get(self.least..).unwrap_or_default();
        self.weights.iter().zip(values).map(|(weight, value)| weight * value).sum()
    }

    pub(crate) fn weight_of(&self, sum: usize) -> f64 {
        sum.checked_sub(self.least).and_then(|at| self.weights.get(at)).copied().unwrap_or(0.0)
    }
}

/// Adds a multiple of values to others, as far as both reach.
pub(crate) fn add_multiple(to: &mut [f64], factor: f64, values: &[f64]) {
    for (to, value) in to.iter_mut().zip(values) {
        *to += factor * value;
    }
}
