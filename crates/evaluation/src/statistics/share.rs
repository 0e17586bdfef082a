//! Shares: of one set of commands, and of the same commands under two pipelines.

use super::{Confidence, Interval, sign_test};

/// Wilson's score interval of `part` of `whole`: the shares that a normal approximation would not reject (Newcombe,
/// Statistics in Medicine 17 (1998) 857, method 3). It is 0 to 1 where `whole` is 0.
pub fn wilson(part: u64, whole: u64, confidence: Confidence) -> Interval {
    if whole == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (part, whole, square) = (part.min(whole) as f64, whole as f64, confidence.deviations().powi(2));
    let middle = 2.0 * part + square;
    let half_width = (square * (square + 4.0 * part * (1.0 - part / whole))).sqrt();
    let ends = [middle - half_width, middle + half_width].map(|end| (end / (2.0 * (whole + square))).clamp(0.0, 1.0));
    let [low, high] = ends;
    // The ends of 0 % and 100 % are exact, regardless of rounding.
    Interval { low: if part == 0.0 { 0.0 } else { low }, high: if part >= whole { 1.0 } else { high } }
}

/// How often two yes-or-no judgements of the same commands are yes: both, the first or the second alone, or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairedJudgements {
    pub both: u64,
    pub first: u64,
    pub second: u64,
    pub neither: u64,
}

impl PairedJudgements {
    pub fn count(judgements: impl Iterator<Item = (bool, bool)>) -> Self {
        let mut pairs = Self::default();
        for judgement in judgements {
            *match judgement {
                (true, true) => &mut pairs.both,
                (true, false) => &mut pairs.first,
                (false, true) => &mut pairs.second,
                (false, false) => &mut pairs.neither,
            } += 1;
        }
        pairs
    }

    pub fn all(self) -> u64 {
        self.both + self.first + self.second + self.neither
    }

    /// The share of the second less the share of the first.
    pub fn difference(self) -> f64 {
        (self.second as f64 - self.first as f64) / self.all().max(1) as f64
    }

    /// The interval of the difference: the intervals of both shares, squared and added, with their correlation
    /// (Newcombe, Statistics in Medicine 17 (1998) 2635, method 10). It assumes independent commands.
    pub fn interval(self, confidence: Confidence) -> Interval {
        let all = self.all();
        if all == 0 {
            return Interval { low: -1.0, high: 1.0 };
        }
        let distances = |part: u64| {
            let share = part as f64 / all as f64;
            let Interval { low, high } = wilson(part, all, confidence);
            (share - low, high - share)
        };
        let ((down_first, up_first), (down_second, up_second)) =
            (distances(self.both + self.first), distances(self.both + self.second));
        let correlation = self.correlation();
        let combined =
            |one: f64, other: f64| (one * one - 2.0 * correlation * one * other + other * other).max(0.0).sqrt();
        let difference = self.difference();
        Interval {
            low: (difference - combined(down_second, up_first)).max(-1.0),
            high: (difference + combined(up_second, down_first)).min(1.0),
        }
    }

    /// The correlation φ, corrected for continuity if it is positive.
    fn correlation(self) -> f64 {
        let [both, first, second, neither] =
            [self.both, self.first, self.second, self.neither].map(|count| count as f64);
        let product = (both + first) * (second + neither) * (both + second) * (first + neither);
        if product <= 0.0 {
            return 0.0;
        }
        let excess = both * neither - first * second;
        let corrected = if excess > 0.0 { (excess - self.all() as f64 / 2.0).max(0.0) } else { excess };
        corrected / product.sqrt()
    }

    /// McNemar's exact test: the probability of pairs at least as one-sided as these if neither were better.
    pub fn p_value(self) -> f64 {
        sign_test(self.first, self.second)
    }
}

#[cfg(test)]
mod tests;
