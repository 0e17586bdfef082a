//! A distribution over numbers of bytes, and that of sums.

/// What is less likely is left out at the ends of a sum's distribution.
const UNLIKELY: f64 = 1e-12;

/// The probabilities of consecutive numbers of bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SumDistribution {
    /// The number of the first probability, in bytes.
    pub least: i64,
    /// One for each of the numbers from `least` on.
    pub probabilities: Vec<f64>,
}

impl SumDistribution {
    /// A number that is known.
    pub fn certain(bytes: i64) -> Self {
        Self { least: bytes, probabilities: vec![1.0] }
    }

    /// Numbers of bytes with their probabilities, in ascending order.
    pub fn of(values: impl IntoIterator<Item = (i64, f64)>) -> Self {
        let mut distribution = Self::default();
        for (value, probability) in values {
            if distribution.probabilities.is_empty() {
                distribution.least = value;
            }
            let Ok(at) = usize::try_from(value - distribution.least) else { continue };
            distribution.probabilities.resize(distribution.probabilities.len().max(at + 1), 0.0);
            if let Some(slot) = distribution.probabilities.get_mut(at) {
                *slot += probability;
            }
        }
        distribution
    }

    /// Whether a single number is possible.
    pub fn is_certain(&self) -> bool {
        self.probabilities.len() == 1
    }

    /// The probability of a number of bytes.
    pub fn at(&self, bytes: i64) -> f64 {
        let at = usize::try_from(bytes.wrapping_sub(self.least)).ok();
        at.and_then(|at| self.probabilities.get(at)).copied().unwrap_or(0.0)
    }

    /// All numbers with their probabilities.
    pub fn values(&self) -> impl Iterator<Item = (i64, f64)> + Clone + '_ {
        (self.least..).zip(self.probabilities.iter().copied())
    }

    /// The distribution of the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        let length = (self.probabilities.len() + other.probabilities.len()).saturating_sub(1);
        let mut sum = vec![0.0; length];
        let is_shorter = self.probabilities.len() < other.probabilities.len();
        let (short, long) = if is_shorter { (self, other) } else { (other, self) };
        for (at, factor) in short.probabilities.iter().enumerate().filter(|(_, factor)| **factor > 0.0) {
            for (to, from) in sum.iter_mut().skip(at).zip(&long.probabilities) {
                *to += factor * from;
            }
        }
        Self { least: self.least.saturating_add(other.least), probabilities: sum }.without_unlikely_ends(UNLIKELY)
    }

    /// The same without ends less likely than this.
    pub fn without_unlikely_ends(mut self, unlikely: f64) -> Self {
        let is_likely = |probability: &f64| *probability > unlikely;
        let Some(start) = self.probabilities.iter().position(is_likely) else { return self };
        let end = self.probabilities.iter().rposition(is_likely).map_or(0, |last| last + 1);
        self.probabilities.truncate(end);
        self.probabilities.drain(..start);
        self.least = self.least.saturating_add(i64::try_from(start).unwrap_or(0));
        self
    }

    /// The same, moved by some bytes.
    pub fn moved(self, bytes: i64) -> Self {
        Self { least: self.least.saturating_add(bytes), ..self }
    }

    /// The most likely number; the smallest one of equals.
    pub fn mode(&self) -> i64 {
        let best = self.values().fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best });
        best.0
    }

    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        let all: f64 = self.probabilities.iter().sum();
        self.values().map(|(bytes, probability)| bytes as f64 * probability).sum::<f64>() / all
    }
}

/// The distributions of sums of 0, 1, 2… numbers that each have the same distribution, as far as they were asked for.
#[derive(Debug, Clone)]
pub struct Multiples {
    sums: Vec<SumDistribution>,
    one: SumDistribution,
}

impl Multiples {
    /// Of a number with this distribution.
    pub fn of(one: SumDistribution) -> Self {
        Self { sums: vec![SumDistribution::certain(0)], one }
    }

    /// Whether a single number is possible.
    pub fn has_certain_size(&self) -> bool {
        self.one.is_certain()
    }

    /// The distribution of the sum of so many.
    pub fn sum_of(&mut self, count: u32) -> &SumDistribution {
        let wanted = count as usize;
        while self.sums.len() <= wanted
            && let Some(last) = self.sums.last()
        {
            let next = last.plus(&self.one);
            self.sums.push(next);
        }
        self.sums.get(wanted).unwrap_or(&self.one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_convolutions() {
        let coin = SumDistribution::of([(1, 0.5), (3, 0.5)]);
        assert_eq!(coin.probabilities, [0.5, 0.0, 0.5]);
        let mut sums = Multiples::of(coin);
        let two = sums.sum_of(2);
        assert_eq!(two, &SumDistribution::of([(2, 0.25), (4, 0.5), (6, 0.25)]));
        assert_eq!((two.mode(), two.mean(), two.at(1), two.at(4)), (4, 4.0, 0.0, 0.5));
        assert_eq!(sums.sum_of(0), &SumDistribution::certain(0));
    }

    #[test]
    fn unlikely_ends_are_left_out() {
        let narrow = SumDistribution::of([(-1, 1e-20), (0, 1.0), (1, 1e-20)]).without_unlikely_ends(1e-12);
        assert_eq!(narrow, SumDistribution::certain(0));
    }
}
