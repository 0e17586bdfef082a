//! Tests of the rank of the truth in complete, truncated and pruned lists.

use std::sync::Arc;

use sizeleak_frame::{Command, SharedList};

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
        command,
        candidates: candidates.iter().map(candidate).collect(),
        candidate_count,
        listed: candidates.len() as u64,
        min_actions: None,
        max_actions: None,
        size_probability: None,
        reply_probability: None,
        shifts: SharedList::default(),
        numbers: SharedList::default(),
        device_types: SharedList::default(),
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
