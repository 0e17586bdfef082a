//! Tests of the scores of a few judged labels.

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
