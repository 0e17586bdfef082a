//! Calibration: of the first candidates with probability p, a share of p should be right.

use serde::{Deserialize, Serialize};

use crate::judge::{Judgement, TruthRank};
use crate::statistics::{Confidence, Interval, wilson};

/// Labels are not surer than this: people and logs err.
const SUREST_LABEL: f64 = 0.99;

/// Answers that are right as often as they claim to be miss that by so many standard deviations in fewer than one of three
/// million evaluations.
const FAR_ABOVE_CHANCE: f64 = 5.0;

/// The bins of the reliability table, of equal width.
pub(crate) const BINS: usize = 10;

/// How well the probabilities of first candidates agree with how often they are right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Σ over bins of the share of answers in the bin · |mean probability − share right|; null without answers.
    pub expected_error: Option<f64>,
    /// The error that perfectly calibrated answers would have on average, by chance, with as many answers in each bin.
    pub by_chance: Option<f64>,
    /// The reliability table, without empty bins.
    pub bins: Vec<CalibrationBin>,
    /// Labels without a command of their own. Saying nothing claims, without any doubt, that nothing was commanded.
    #[serde(default)]
    pub missed: u64,
    /// The expected error where each missed command counts as an answer that was certain and wrong, in a bin of its
    /// own: (answers · expected error + missed) / (answers + missed); null without both. A command that was found but
    /// has no candidate counts in neither: it is reported as unexplained.
    pub expected_error_with_missed: Option<f64>,
    /// What the answers claim to be right in all, if fewer are than chance allows.
    #[serde(skip)]
    pub(crate) too_sure: Option<f64>,
}

/// The answers whose probability lies in a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CalibrationBin {
    pub from: f64,
    pub to: f64,
    pub answers: u64,
    pub probability: f64,
    /// The share of them that is right.
    pub right: f64,
    pub interval: Interval,
}

#[derive(Debug, Clone, Copy, Default)]
struct BinSums {
    answers: u64,
    probability: f64,
    right: u64,
    variance: f64,
    /// The variance where labels may be wrong, and what that takes from the probabilities.
    label_variance: f64,
    beyond_labels: f64,
}

/// The share that answers claim to be right, if so few are only by less than chance.
fn too_sure(bins: &[BinSums]) -> Option<f64> {
    let sum = |part: fn(&BinSums) -> f64| bins.iter().map(part).sum::<f64>();
    let (answers, claimed, right) =
        (sum(|bin| bin.answers as f64), sum(|bin| bin.probability), sum(|bin| bin.right as f64));
    let missing = claimed - sum(|bin| bin.beyond_labels) - right;
    (missing > FAR_ABOVE_CHANCE * sum(|bin| bin.label_variance).sqrt() && answers > 0.0).then(|| claimed / answers)
}

impl Calibration {
    pub(crate) fn over<'a>(judgements: impl Iterator<Item = &'a Judgement>) -> Self {
        let answer = |judgement: &Judgement| {
            judgement.probabilities.first.map(|probability| (probability, judgement.rank == TruthRank::Listed(1)))
        };
        Self::new(judgements.filter_map(answer))
    }

    fn new(answers: impl Iterator<Item = (f64, bool)>) -> Self {
        let mut bins = [BinSums::default(); BINS];
        for (probability, is_right) in answers {
            let probability = probability.clamp(0.0, 1.0);
            let of_label = probability.min(SUREST_LABEL);
            let at = ((probability * BINS as f64) as usize).min(BINS - 1);
            let Some(bin) = bins.get_mut(at) else { continue };
            bin.answers += 1;
            bin.probability += probability;
            bin.right += u64::from(is_right);
            bin.variance += probability * (1.0 - probability);
            bin.label_variance += of_label * (1.0 - of_label);
            bin.beyond_labels += probability - of_label;
        }
        let all = bins.iter().map(|bin| bin.answers).sum::<u64>() as f64;
        let error: f64 = bins.iter().map(|bin| (bin.probability - bin.right as f64).abs()).sum();
        // The mean absolute deviation of a nearly normal sum.
        let chance: f64 = bins.iter().map(|bin| (bin.variance * std::f64::consts::FRAC_2_PI).sqrt()).sum();
        let filled = bins.iter().zip(0..).filter(|(bin, _)| bin.answers > 0);
        let expected_error = (all > 0.0).then_some(error / all);
        Self {
            expected_error,
            by_chance: (all > 0.0).then_some(chance / all),
            bins: filled.map(|(bin, at)| bin.means(at)).collect(),
            missed: 0,
            expected_error_with_missed: expected_error,
            too_sure: too_sure(&bins),
        }
    }

    /// What the bins add to the expected error, as far as probabilities are too high, less where they are too low.
    pub(crate) fn deviations(&self) -> [f64; BINS] {
        let all = self.bins.iter().map(|bin| bin.answers).sum::<u64>().max(1) as f64;
        let mut deviations = [0.0; BINS];
        for bin in &self.bins {
            let at = ((bin.from * BINS as f64).round() as usize).min(BINS - 1);
            deviations[at] = bin.answers as f64 / all * (bin.probability - bin.right);
        }
        deviations
    }

    /// The same with this many labels that have no command of their own.
    #[must_use]
    pub(crate) fn with_missed(self, missed: u64) -> Self {
        let answers = self.bins.iter().map(|bin| bin.answers).sum::<u64>() as f64;
        let all = answers + missed as f64;
        let error = answers * self.expected_error.unwrap_or(0.0) + missed as f64;
        Self { missed, expected_error_with_missed: (all > 0.0).then_some(error / all), ..self }
    }
}

impl BinSums {
    fn means(&self, at: u32) -> CalibrationBin {
        let answers = self.answers as f64;
        CalibrationBin {
            from: f64::from(at) / BINS as f64,
            to: f64::from(at + 1) / BINS as f64,
            answers: self.answers,
            probability: self.probability / answers,
            right: self.right as f64 / answers,
            interval: wilson(self.right, self.answers, Confidence::USUAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_weighted_by_their_answers() {
        let high = (0..8).map(|at| (0.95, at < 6));
        let low = (0..2).map(|at| (0.45, at < 1));
        let calibration = Calibration::new(high.chain(low));
        // 8 answers are 0.95 − 0.75 off, 2 answers 0.5 − 0.45.
        assert!((calibration.expected_error.unwrap() - (8.0 * 0.2 + 2.0 * 0.05) / 10.0).abs() < 1e-12);
        let bins: Vec<(u64, f64)> = calibration.bins.iter().map(|bin| (bin.answers, bin.right)).collect();
        assert_eq!(bins, [(2, 0.5), (8, 0.75)]);
        assert_eq!((calibration.bins[0].from, calibration.bins[1].to), (0.4, 1.0));
    }

    #[test]
    fn certain_right_answers_have_no_error() {
        let calibration = Calibration::new([(1.0, true), (0.0, false), (1.2, true)].into_iter());
        assert_eq!((calibration.expected_error, calibration.by_chance), (Some(0.0), Some(0.0)));
        assert_eq!(Calibration::new(std::iter::empty()).expected_error, None);
    }

    #[test]
    fn answers_that_are_far_too_sure_are_told_from_chance_and_from_wrong_labels() {
        let too_sure = |answers: usize, probability: f64, right: usize| {
            let calibration = Calibration::new((0..answers).map(|at| (probability, at < right)));
            calibration.too_sure.map(|claimed| (100.0 * claimed).round())
        };
        assert_eq!(too_sure(100, 0.9, 85), None, "1.7 standard deviations");
        assert_eq!(too_sure(100, 0.9, 70), Some(90.0), "6.7 standard deviations");
        assert_eq!(too_sure(300, 1.0, 295), None, "five wrong labels");
        assert_eq!(too_sure(300, 1.0, 280), Some(100.0));
        assert_eq!(too_sure(100, 0.5, 90), None, "not sure enough is no danger");
        assert_eq!(too_sure(0, 0.0, 0), None);
    }

    #[test]
    fn a_missed_command_is_a_certain_answer_that_is_wrong() {
        let answers = || [(0.75, true), (0.75, true), (0.75, true), (0.75, false)].into_iter();
        let perfect = Calibration::new(answers());
        assert_eq!((perfect.missed, perfect.expected_error_with_missed), (0, Some(0.0)));
        let missing = Calibration::new(answers()).with_missed(1);
        assert_eq!((missing.expected_error, missing.expected_error_with_missed), (Some(0.0), Some(0.2)));
        assert_eq!((missing.bins.len(), missing.bins.first().map(|bin| bin.answers)), (1, Some(4)));
        let silent = Calibration::new(std::iter::empty()).with_missed(3);
        assert_eq!((silent.expected_error, silent.expected_error_with_missed), (None, Some(1.0)));
    }

    #[test]
    fn error_of_calibrated_answers_is_the_error_by_chance() {
        let mut state = 12_345_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let runs: Vec<Calibration> = (0..200)
            .map(|_| {
                let answers: Vec<(f64, bool)> = (0..300).map(|_| (draw(), draw())).map(|(p, at)| (p, at < p)).collect();
                Calibration::new(answers.into_iter())
            })
            .collect();
        let mean = |figure: fn(&Calibration) -> Option<f64>| runs.iter().filter_map(figure).sum::<f64>() / 200.0;
        let (error, chance) = (mean(|run| run.expected_error), mean(|run| run.by_chance));
        assert!((error / chance - 1.0).abs() < 0.1, "{error} {chance}");
    }
}
