//! How good identifications are: the figures of the paper's table and more, computed from judged labels.

use serde::Serialize;

use crate::calibration::Calibration;
use crate::information::Information;
use crate::judge::{JudgedLabel, Judgement, TruthRank};
use crate::statistics::{Confidence, Interval, median, wilson};

/// The figures over all labelled commands, found or not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    pub commands: u64,
    /// Those with the true actions among their candidates.
    pub among: u64,
    /// The paper's precision: their share.
    pub precision: f64,
    /// Those whose truncated list does not show whether the truth is among the candidates; not counted as found.
    pub undecided: u64,
    /// Those with exactly one candidate.
    pub unique: u64,
    /// Those whose only candidate is the truth.
    pub unique_correct: u64,
    /// Those whose first candidate is the truth.
    pub top_1: u64,
    /// Those with the truth among the first five candidates.
    pub top_5: u64,
    /// Those with a command, but without any candidate.
    pub unexplained: u64,
    pub cut_lists: u64,
    pub candidates: CandidateCounts,
    pub credible_set: CredibleSet,
    pub calibration: Calibration,
    pub information: Information,
    pub intervals: ScoreIntervals,
}

/// Wilson's 95 % intervals of shares of the labelled commands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreIntervals {
    pub precision: Interval,
    pub top_1: Interval,
    pub top_5: Interval,
    pub unique: Interval,
    pub unique_correct: Interval,
    pub coverage: Interval,
}

/// The fewest candidates, most probable first, that hold a given probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CredibleSet {
    /// Labelled commands with the truth in it.
    pub among: u64,
    /// Their share.
    pub coverage: f64,
    /// How many candidates it holds; if the list is truncated before its end, the number of all candidates.
    pub size: CandidateCounts,
}

/// Numbers of candidates; all 0 if no command was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CandidateCounts {
    pub mean: f64,
    /// The median; for an even number of commands, the mean of the middle two.
    pub median: f64,
    pub max: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActionScore {
    pub action: String,
    /// Labelled commands with it.
    pub commands: u64,
    /// Those with the true actions among their candidates.
    pub among: u64,
    /// Their share; null without commands.
    pub precision: Option<f64>,
    /// How often it truly occurs.
    pub count: u64,
    /// How often it occurs in first candidates.
    pub top_1_count: u64,
    /// The share of its true occurrences that first candidates contain; null without any.
    pub top_1_recall: Option<f64>,
    /// The share of its occurrences in first candidates that are true; null without any.
    pub top_1_precision: Option<f64>,
    pub intervals: ActionIntervals,
}

/// Wilson's 95 % intervals of an action's shares; 0 to 1 where there is no share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ActionIntervals {
    pub precision: Interval,
    pub top_1_recall: Interval,
    pub top_1_precision: Interval,
}

impl Score {
    /// The score of all labelled commands; `prior_bits` is the entropy of what is known of a command without its size.
    pub(crate) fn new(labels: &[JudgedLabel<'_>], prior_bits: Option<f64>) -> Self {
        let found = || labels.iter().filter_map(|label| label.judgement);
        let count =
            |is_counted: &dyn Fn(&Judgement) -> bool| found().filter(|judgement| is_counted(judgement)).count() as u64;
        let (commands, among) = (labels.len() as u64, count(&|judgement| judgement.rank.is_candidate()));
        let unique = count(&|judgement| judgement.candidates == 1);
        let unique_correct = count(&|judgement| judgement.candidates == 1 && judgement.rank.is_candidate());
        let top_1 = count(&|judgement| judgement.rank == TruthRank::Listed(1));
        let top_5 = count(&|judgement| judgement.rank.position().is_some_and(|position| position <= 5));
        let credible = count(&Judgement::is_credible);
        let interval = |part: u64| wilson(part, commands, Confidence::USUAL);
        Self {
            intervals: ScoreIntervals {
                precision: interval(among),
                top_1: interval(top_1),
                top_5: interval(top_5),
                unique: interval(unique),
                unique_correct: interval(unique_correct),
                coverage: interval(credible),
            },
            commands,
            among,
            precision: share(among, commands).unwrap_or(0.0),
            undecided: count(&|judgement| judgement.rank == TruthRank::Undecided),
            unique,
            unique_correct,
            top_1,
            top_5,
            unexplained: count(&|judgement| judgement.candidates == 0),
            cut_lists: count(&|judgement| judgement.is_truncated),
            candidates: CandidateCounts::new(found().map(|judgement| judgement.candidates)).unwrap_or_default(),
            credible_set: CredibleSet {
                among: credible,
                coverage: share(credible, commands).unwrap_or(0.0),
                size: CandidateCounts::new(found().map(|judgement| judgement.probabilities.credible_size))
                    .unwrap_or_default(),
            },
            calibration: Calibration::over(found()).with_missed(commands - found().count() as u64),
            information: Information::new(labels.iter().map(|label| label.judgement), prior_bits),
        }
    }
}

impl CandidateCounts {
    /// `None` without any.
    pub(crate) fn new(counts: impl Iterator<Item = u64>) -> Option<Self> {
        let counts: Vec<u64> = counts.collect();
        let values = || counts.iter().map(|count| *count as f64);
        let (mean, max) = (values().sum::<f64>() / counts.len().max(1) as f64, counts.iter().max().copied()?);
        Some(Self { mean, median: median(values())?, max })
    }
}

impl ActionScore {
    pub(crate) fn of_each(actions: &[String], labels: &[JudgedLabel<'_>]) -> Vec<Self> {
        actions.iter().enumerate().map(|(at, action)| Self::new(at, action, labels)).collect()
    }

    fn new(at: usize, action: &str, labels: &[JudgedLabel<'_>]) -> Self {
        let (mut commands, mut among, mut count, mut top_1_count, mut agreed) = (0, 0, 0, 0, 0);
        for label in labels {
            let truth = label.truth.get(at).copied().unwrap_or(0);
            let first = label.judgement.and_then(|judgement| judgement.first.as_ref());
            let answer = first.and_then(|first| first.get(at)).copied().unwrap_or(0);
            let is_among = label.judgement.is_some_and(|judgement| judgement.rank.is_candidate());
            commands += u64::from(truth > 0);
            among += u64::from(truth > 0 && is_among);
            count += u64::from(truth);
            top_1_count += u64::from(answer);
            agreed += u64::from(truth.min(answer));
        }
        Self {
            action: action.to_owned(),
            commands,
            among,
            precision: share(among, commands),
            count,
            top_1_count,
            top_1_recall: share(agreed, count),
            top_1_precision: share(agreed, top_1_count),
            intervals: ActionIntervals {
                precision: wilson(among, commands, Confidence::USUAL),
                top_1_recall: wilson(agreed, count, Confidence::USUAL),
                top_1_precision: wilson(agreed, top_1_count, Confidence::USUAL),
            },
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::ProbabilitySummary;

    /// The first candidate has the probability 0.5, and two candidates are credible.
    fn judgement(rank: TruthRank, candidates: u64, first: &[u32]) -> Judgement {
        let probabilities =
            ProbabilitySummary { first: Some(0.5), entropy_bits: 1.0, credible_size: 2, is_credible_listed: true };
        let is_truncated = rank == TruthRank::Undecided;
        Judgement { rank, candidates, is_truncated, first: Some(first.to_vec()), probabilities }
    }

    #[test]
    fn every_labelled_command_counts() {
        let judgements = [
            judgement(TruthRank::Listed(1), 1, &[1, 0]),
            judgement(TruthRank::Listed(2), 4, &[0, 2]),
            judgement(TruthRank::Absent, 1, &[0, 1]),
            judgement(TruthRank::Undecided, 90, &[3, 0]),
            Judgement {
                rank: TruthRank::Absent,
                candidates: 0,
                is_truncated: false,
                first: None,
                probabilities: ProbabilitySummary::default(),
            },
        ];
        let truths = [[1, 0], [1, 1], [2, 0], [1, 1], [0, 1]];
        let judged = |(truth, judgement)| JudgedLabel { truth, judgement: Some(judgement) };
        let mut labels: Vec<JudgedLabel<'_>> =
            truths.iter().map(<[u32; 2]>::as_slice).zip(&judgements).map(judged).collect();
        labels.push(JudgedLabel { truth: &[0, 1], judgement: None });

        let score = Score::new(&labels, Some(5.0));
        assert_eq!((score.commands, score.among, score.undecided, score.unexplained), (6, 2, 1, 1));
        assert_eq!((score.unique, score.unique_correct, score.top_1, score.cut_lists), (2, 1, 1, 1));
        assert!((score.precision - 2.0 / 6.0).abs() < 1e-12);
        assert_eq!(score.candidates, CandidateCounts { mean: 96.0 / 5.0, median: 1.0, max: 90 });
        assert_eq!((score.top_5, score.credible_set.among, score.credible_set.size.max), (2, 2, 2));
        // Four answers with the probability 0.5, one of them right.
        assert_eq!((score.calibration.expected_error, score.calibration.bins.len()), (Some(0.25), 1));
        // One label has no command; one command has no candidate, which is no answer.
        assert_eq!((score.calibration.missed, score.calibration.expected_error_with_missed), (1, Some(2.0 / 5.0)));
        // 1 bit remains of four commands, all 5 of the other two.
        assert_eq!(score.information.leaked_bits, Some(5.0 - 14.0 / 6.0));

        let actions = ActionScore::of_each(&["on".into(), "off".into()], &labels);
        let on = &actions[0];
        assert_eq!((on.commands, on.among, on.count, on.top_1_count), (4, 2, 5, 4));
        // Agreed: 1 of the first command, 0, 0, 1 of the fourth.
        assert_eq!((on.top_1_recall, on.top_1_precision), (Some(2.0 / 5.0), Some(2.0 / 4.0)));
        assert_eq!((actions[1].commands, actions[1].precision), (4, Some(1.0 / 4.0)));
    }

    #[test]
    fn median_of_an_even_number_is_the_mean_of_the_middle_two() {
        let judgements = [3, 8, 1, 4].map(|candidates| judgement(TruthRank::Listed(1), candidates, &[]));
        let labels: Vec<JudgedLabel<'_>> =
            judgements.iter().map(|judgement| JudgedLabel { truth: &[], judgement: Some(judgement) }).collect();
        assert_eq!(Score::new(&labels, None).candidates, CandidateCounts { mean: 4.0, median: 3.5, max: 8 });
    }

    #[test]
    fn score_without_labels_is_zero() {
        let none = Score::new(&[], None);
        assert_eq!((none.commands, none.precision, none.candidates), (0, 0.0, CandidateCounts::default()));
        assert_eq!(ActionScore::of_each(&["on".into()], &[])[0].precision, None);
    }
}
