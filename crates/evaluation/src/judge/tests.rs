//! Tests of the rank of the truth in complete, truncated and pruned lists, and of what their probabilities say.

use std::sync::Arc;

use sizeleak_frame::Command;

use super::TruthRank::{Absent, Listed, Undecided, Unlisted};
use super::*;

/// |ac| = 60, on = 40, off = 41; three plugs.
fn model() -> Model {
    Model::from_toml(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n[[action]]\nname = \"off\"\nsize = 41\n\
         [[action]]\nname = \"on\"\nsize = 40\n[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
         [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n[learned]\nmethod = \"robust\"\n\
         commands = 1\nversion = \"0\"\nbasis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n",
    )
    .unwrap()
}

fn identification(plaintext: u64, candidates: &[(u32, u32, i64)], candidate_count: u64) -> Identification {
    let candidate = |(on, off, epsilon): &(u32, u32, i64)| Candidate {
        actions: Actions::from(vec![(Arc::from("off"), *off), (Arc::from("on"), *on)]),
        epsilon: *epsilon,
        probability: 0.5,
        likelihood: None,
    };
    let command = Command {
        time_ns: 0,
        end_ns: 0,
        flow: 1,
        size: plaintext + 24,
        plaintext: Some([plaintext; 2]),
        records: 1,
        ..Command::default()
    };
    Identification {
        candidates: candidates.iter().map(candidate).collect(),
        candidate_count,
        listed: candidates.len() as u64,
        ..Identification::unanswered(command)
    }
}

fn rank(identification: &Identification, truth: [u32; 2]) -> TruthRank {
    let (model, actions) = (model(), ["on".to_owned(), "off".to_owned()]);
    CandidateJudge::new(std::slice::from_ref(&model), &actions, 0.95).unwrap().judge(identification, &truth).rank
}

#[test]
fn complete_list_is_never_undecided() {
    let two = identification(141, &[(1, 1, 0), (2, 0, 1)], 2);
    assert_eq!(rank(&two, [1, 1]), Listed(1));
    assert_eq!(rank(&two, [2, 0]), Listed(2));
    assert_eq!(rank(&two, [0, 1]), Absent);
    assert_eq!(rank(&two, [1, 0]), Absent, "part of a candidate is not the candidate");
}

#[test]
fn truth_outside_a_truncated_list_is_judged_by_sums_and_epsilons_of_listed_candidates() {
    let truncated = identification(141, &[(1, 1, 0)], 9);
    assert_eq!(rank(&truncated, [1, 1]), Listed(1));
    assert_eq!(rank(&truncated, [2, 0]), Undecided, "no candidate shows ε = 1");
    assert_eq!(rank(&truncated, [2, 2]), Absent, "four actions, three plugs");
    let other_epsilon = identification(141, &[(0, 1, 1)], 9);
    assert_eq!(rank(&other_epsilon, [2, 0]), Unlisted, "a candidate shows ε = 1");
    let mut range = identification(141, &[(1, 1, 5)], 9);
    range.command.plaintext = Some([130, 145]);
    assert_eq!(rank(&range, [2, 0]), Unlisted, "a size of 145 leaves ε = 5");
    assert_eq!(rank(&range, [0, 1]), Undecided);
}

#[test]
fn unknown_action_is_never_a_candidate() {
    let (model, actions) = (model(), ["on".to_owned(), "dance".to_owned()]);
    let judge = CandidateJudge::new(std::slice::from_ref(&model), &actions, 0.95).unwrap();
    let truncated = identification(141, &[(1, 1, 0)], 9);
    assert_eq!(judge.judge(&truncated, &[0, 1]).rank, Absent);
    assert_eq!(judge.judge(&truncated, &[1, 0]).first, Some(vec![1, 0]));
}

#[test]
fn pruned_truncated_list_keeps_the_rank_of_an_unlisted_truth() {
    let judgement = |rank, is_truncated| Judgement {
        rank,
        candidates: 5,
        is_truncated,
        first: None,
        probabilities: ProbabilitySummary::default(),
    };
    let after =
        |after, is_truncated, before| judgement(after, is_truncated).after_pruning(&judgement(before, true)).rank;
    assert_eq!(after(Listed(1), true, Listed(4)), Listed(1));
    assert_eq!(after(Unlisted, true, Listed(4)), Absent, "the pruner dropped it");
    assert_eq!(after(Undecided, true, Unlisted), Unlisted);
    assert_eq!(after(Unlisted, true, Undecided), Undecided);
    assert_eq!(after(Absent, false, Unlisted), Absent, "the pruner dropped all unlisted candidates");
    assert_eq!(after(Unlisted, true, Absent), Absent);
}

fn summary(probabilities: &[f64], candidate_count: u64) -> ProbabilitySummary {
    let command = Command { time_ns: 0, end_ns: 0, flow: 1, size: 100, records: 1, ..Command::default() };
    let candidate = |probability: &f64| Candidate {
        actions: Actions::default(),
        epsilon: 0,
        probability: *probability,
        likelihood: None,
    };
    let identification = Identification {
        candidates: probabilities.iter().map(candidate).collect(),
        candidate_count,
        listed: probabilities.len() as u64,
        ..Identification::unanswered(command)
    };
    ProbabilitySummary::new(&identification, 0.95)
}

#[test]
fn complete_list_has_exact_entropy_and_credible_size() {
    let even = summary(&[0.25; 4], 4);
    assert_eq!((even.first, even.entropy_bits, even.credible_size), (Some(0.25), 2.0, 4));
    let [most, less] = [&[0.95, 0.05], &[0.94, 0.06]].map(|two| summary(two, 2).credible_size);
    assert_eq!((most, less), (1, 2));
    let certain = summary(&[1.0], 1);
    assert_eq!((certain.entropy_bits, certain.credible_size, certain.is_credible_listed), (0.0, 1, true));
}

#[test]
fn candidates_dropped_by_the_pruner_do_not_count() {
    let pruned = summary(&[0.45, 0.45], 2);
    assert_eq!((pruned.entropy_bits, pruned.credible_size), (1.0, 2));
}

#[test]
fn entropy_of_a_truncated_list_is_an_upper_bound() {
    let truncated = summary(&[0.5], 5);
    // Half for one, half for four: 1 + 0.5 · 2 bits.
    let ProbabilitySummary { entropy_bits, credible_size, is_credible_listed, .. } = truncated;
    assert_eq!((entropy_bits, credible_size, is_credible_listed), (2.0, 5, false));
    let enough = summary(&[0.96], 5);
    assert_eq!((enough.credible_size, enough.is_credible_listed), (1, true));
}

#[test]
fn empty_list_and_zero_probabilities_are_summarised() {
    assert_eq!(summary(&[], 0), ProbabilitySummary::default());
    let all_zero = summary(&[0.0, 0.0], 2);
    assert_eq!((all_zero.entropy_bits, all_zero.credible_size), (1.0, 2));
}
