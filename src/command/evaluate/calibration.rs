//! Whether probabilities can be believed: of the first answers given with probability p, p should be right.

use serde::Serialize;

/// The bins of the reliability table, of equal width.
const BINS: usize = 10;

/// How well the probabilities of first answers agree with how often they are right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::command) struct Calibration {
    /// Σ over bins of the share of answers in it · |mean probability − share right|; null without answers.
    pub(in crate::command) expected_error: Option<f64>,
    /// What perfectly calibrated answers would come to on average, by chance, with so few commands in each bin.
    pub(in crate::command) by_chance: Option<f64>,
    /// The reliability table; bins without answers are left out.
    pub(in crate::command) bins: Vec<Bin>,
}

/// The answers with a probability in some range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::command) struct Bin {
    pub(in crate::command) from: f64,
    pub(in crate::command) to: f64,
    pub(in crate::command) answers: u64,
    /// The mean probability they were given with.
    pub(in crate::command) probability: f64,
    /// The share of them that is right.
    pub(in crate::command) right: f64,
}

/// The sums over a bin.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    answers: u64,
    probability: f64,
    right: u64,
    variance: f64,
}

impl Calibration {
    /// Of answers: the probability each was given with, and whether it is right.
    pub(in crate::command) fn of(answers: impl Iterator<Item = (f64, bool)>) -> Self {
        let mut bins = [Sums::default(); BINS];
        for (probability, is_right) in answers {
            let probability = probability.clamp(0.0, 1.0);
            let at = ((probability * BINS as f64) as usize).min(BINS - 1);
            let Some(bin) = bins.get_mut(at) else { continue };
            bin.answers += 1;
            bin.probability += probability;
            bin.right += u64::from(is_right);
            bin.variance += probability * (1.0 - probability);
        }
        let all = bins.iter().map(|bin| bin.answers).sum::<u64>() as f64;
        let error: f64 = bins.iter().map(|bin| (bin.probability - bin.right as f64).abs()).sum();
        // The mean distance of a nearly normal sum from its mean.
        let chance: f64 = bins.iter().map(|bin| (bin.variance * std::f64::consts::FRAC_2_PI).sqrt()).sum();
        let filled = bins.iter().zip(0..).filter(|(bin, _)| bin.answers > 0);
        Self {
            expected_error: (all > 0.0).then_some(error / all),
            by_chance: (all > 0.0).then_some(chance / all),
            bins: filled.map(|(bin, at)| bin.row(at)).collect(),
        }
    }
}

impl Sums {
    fn row(&self, at: u32) -> Bin {
        let answers = self.answers as f64;
        Bin {
            from: f64::from(at) / BINS as f64,
            to: f64::from(at + 1) / BINS as f64,
            answers: self.answers,
            probability: self.probability / answers,
            right: self.right as f64 / answers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_weighed_by_bin() {
        let sure = (0..8).map(|at| (0.95, at < 6));
        let unsure = (0..2).map(|at| (0.45, at < 1));
        let calibration = Calibration::of(sure.chain(unsure));
        // 8 answers are 0.95 − 0.75 off, 2 answers 0.5 − 0.45.
        assert!((calibration.expected_error.unwrap() - (8.0 * 0.2 + 2.0 * 0.05) / 10.0).abs() < 1e-12);
        let bins: Vec<(u64, f64)> = calibration.bins.iter().map(|bin| (bin.answers, bin.right)).collect();
        assert_eq!(bins, [(2, 0.5), (8, 0.75)]);
        assert_eq!((calibration.bins[0].from, calibration.bins[1].to), (0.4, 1.0));
    }

    #[test]
    fn certain_and_right_is_no_error() {
        let calibration = Calibration::of([(1.0, true), (0.0, false), (1.2, true)].into_iter());
        assert_eq!((calibration.expected_error, calibration.by_chance), (Some(0.0), Some(0.0)));
        assert_eq!(Calibration::of(std::iter::empty()).expected_error, None);
    }

    /// Answers drawn with the very probability they are given: the error is about what chance makes.
    #[test]
    fn chance_is_told() {
        let mut state = 12_345_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let runs: Vec<Calibration> = (0..200)
            .map(|_| {
                let answers: Vec<(f64, bool)> = (0..300).map(|_| (draw(), draw())).map(|(p, at)| (p, at < p)).collect();
                Calibration::of(answers.into_iter())
            })
            .collect();
        let mean = |figure: fn(&Calibration) -> Option<f64>| runs.iter().filter_map(figure).sum::<f64>() / 200.0;
        let (error, chance) = (mean(|run| run.expected_error), mean(|run| run.by_chance));
        assert!((error / chance - 1.0).abs() < 0.1, "{error} {chance}");
    }
}
