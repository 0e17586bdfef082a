//! Weights of sums: a function on consecutive sums that is 0 elsewhere.

/// The weights of the sums from `least` on, in bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct SumWeights {
    least: usize,
    weights: Vec<f64>,
}

impl SumWeights {
    /// One sum.
    pub(crate) fn of_one(sum: usize, weight: f64) -> Self {
        Self { least: sum, weights: vec![weight] }
    }

    /// The least sum that is in it.
    pub(crate) fn least(&self) -> usize {
        self.least
    }

    /// The first sum above all that are in it.
    pub(crate) fn end(&self) -> usize {
        self.least + self.weights.len()
    }

    /// How many consecutive sums are in it.
    pub(crate) fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether no sum is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// The weight of a sum.
    pub(crate) fn at(&self, sum: usize) -> f64 {
        sum.checked_sub(self.least).and_then(|at| self.weights.get(at)).copied().unwrap_or(0.0)
    }

    /// The weights of all sums together.
    pub(crate) fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// Each sum that has a weight above 0.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        (self.least..).zip(self.weights.iter().copied()).filter(|(_, weight)| *weight > 0.0)
    }

    /// Adds the weights of others, times a factor.
    pub(crate) fn add(&mut self, other: &Self, factor: f64) {
        self.combine(other, |own, other| *own += factor * other);
    }

    /// Keeps the greater of each sum's weights.
    pub(crate) fn raise(&mut self, other: &Self, factor: f64) {
        self.combine(other, |own, other| *own = own.max(factor * other));
    }

    /// The sums of two: weights multiply, and those of equal sums add up.
    pub(crate) fn convolve(&self, other: &Self) -> Self {
        self.product(other, |sum, weight| *sum += weight)
    }

    /// The sums of two: weights multiply, and each sum has the greatest.
    pub(crate) fn convolve_greatest(&self, other: &Self) -> Self {
        self.product(other, |sum, weight| *sum = sum.max(weight))
    }

    /// Adds the convolution with others, times a factor, as far as there is room. `to` and `others` begin at some sum;
    /// the first of `to` is `above` bytes below the sum of both firsts.
    pub(crate) fn add_convolved(&self, others: &[f64], factor: f64, above: usize, room: usize, to: &mut Vec<f64>) {
        let end = (above + self.weights.len() + others.len() - 1).min(room + 1);
        if to.len() < end {
            to.resize(end, 0.0);
        }
        for (at, weight) in (above..end).zip(&self.weights).filter(|(_, weight)| **weight > 0.0) {
            let weight = factor * weight;
            for (to, other) in to[at..].iter_mut().zip(others) {
                *to += weight * other;
            }
        }
    }

    /// The weight of one sum of their convolution.
    pub(crate) fn convolved_at(&self, other: &Self, sum: usize) -> f64 {
        let (short, long) = if self.weights.len() <= other.weights.len() { (self, other) } else { (other, self) };
        // Own sums whose rest to the sum is in the other.
        let from = (sum + 1).saturating_sub(long.end()).max(short.least);
        let to = (sum + 1).saturating_sub(long.least).min(short.end());
        if from >= to {
            return 0.0;
        }
        let own = short.weights.get(from - short.least..to - short.least).unwrap_or_default();
        let rests = long.weights.get(sum + 1 - to - long.least..sum + 1 - from - long.least).unwrap_or_default();
        own.iter().zip(rests.iter().rev()).map(|(own, rest)| own * rest).sum()
    }

    fn product(&self, other: &Self, each: impl Fn(&mut f64, f64)) -> Self {
        let (short, long) = if self.weights.len() <= other.weights.len() { (self, other) } else { (other, self) };
        if short.is_empty() {
            return Self::default();
        }
        let mut weights = vec![0.0; short.weights.len() + long.weights.len() - 1];
        for (at, weight) in short.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            for (sum, other) in weights.iter_mut().skip(at).zip(&long.weights) {
                each(sum, weight * other);
            }
        }
        Self { least: short.least + long.least, weights }
    }

    fn combine(&mut self, other: &Self, each: impl Fn(&mut f64, f64)) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.least = other.least;
        }
        if other.least < self.least {
            let missing = self.least - other.least;
            self.weights.splice(0..0, std::iter::repeat_n(0.0, missing));
            self.least = other.least;
        }
        let from = other.least - self.least;
        if self.weights.len() < from + other.weights.len() {
            self.weights.resize(from + other.weights.len(), 0.0);
        }
        for (own, other) in self.weights.iter_mut().skip(from).zip(&other.weights) {
            each(own, *other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sums: &[(usize, f64)]) -> SumWeights {
        let mut weights = SumWeights::default();
        for (sum, weight) in sums {
            weights.add(&SumWeights::of_one(*sum, *weight), 1.0);
        }
        weights
    }

    #[test]
    fn convolution_multiplies_and_adds() {
        let (one, other) = (of(&[(5, 0.5), (7, 0.25)]), of(&[(20, 2.0), (22, 3.0), (23, 1.0)]));
        let expected = [(25, 1.0), (27, 2.0), (28, 0.5), (29, 0.75), (30, 0.25)];
        assert_eq!(one.convolve(&other).iter().collect::<Vec<_>>(), expected);
        assert_eq!(other.convolve(&one), one.convolve(&other));
        for sum in 20..40 {
            assert!((one.convolved_at(&other, sum) - one.convolve(&other).at(sum)).abs() < 1e-12, "{sum}");
        }
        assert!((one.convolve_greatest(&other).at(27) - 1.5).abs() < 1e-12);
        assert!(one.convolve(&SumWeights::default()).is_empty());
    }

    #[test]
    fn sums_below_the_least_are_added_in_front() {
        let mut weights = of(&[(9, 1.0)]);
        weights.add(&of(&[(4, 2.0), (9, 1.0)]), 0.5);
        assert_eq!(
            (weights.least(), weights.end(), weights.at(4), weights.at(9), weights.total()),
            (4, 10, 1.0, 1.5, 2.5)
        );
    }
}
