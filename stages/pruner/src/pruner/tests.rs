//! Candidates, counts and notices of the stage in each mode.

use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::{Actions, Command, SharedList};

use super::*;

const ONE_REPLY_AN_ACTION: &str = "per_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n";
const NO_REPLIES: &str = "per_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n";

fn pruner(mode: PruningMode, replies: &str) -> Pruner {
    let model = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
         [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
         [[device]]\nname = \"plug\"\ncount = 5\nactions = [\"on\", \"off\"]\n[replies]\nfixed = 0.0\n{replies}\
         [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n"
    );
    Pruner::new(&Model::from_toml(&model).unwrap(), mode, 0.9).unwrap()
}

/// An identification with three replies and equally probable candidates of one action each.
fn identification(candidates: &[(u32, &str)], count: u64) -> Identification {
    let candidate = |(times, name): &(u32, &str)| Candidate {
        actions: Actions::from(vec![(Arc::from(*name), *times)]),
        epsilon: 0,
        probability: 1.0 / count as f64,
        likelihood: None,
    };
    Identification {
        command: Command { time_ns: 1, end_ns: 2, flow: 3, size: 4, records: 1, replies: 3, ..Command::default() },
        candidates: candidates.iter().map(candidate).collect(),
        candidate_count: count,
        listed: candidates.len() as u64,
        min_actions: None,
        max_actions: None,
        size_probability: None,
        reply_probability: None,
        ..Identification::unanswered(Command::default())
    }
}

fn with_probability(mut identification: Identification, at: usize, probability: f64) -> Identification {
    let mut candidates = identification.candidates.to_vec();
    candidates[at].probability = probability;
    identification.candidates = candidates.into();
    identification
}

fn prune(pruner: &mut Pruner, identification: Identification) -> (Identification, Vec<Frame>) {
    let mut out: Vec<Frame> = Vec::new();
    pruner.process(identification.into(), &mut out).unwrap();
    let Some(Frame::Identification(identification)) = out.pop() else { panic!("{out:?}") };
    assert_eq!(identification.listed, identification.candidates.len() as u64);
    (*identification, out)
}

/// An identification as it was before probabilities were summed.
fn without_sums(identification: Identification) -> Identification {
    Identification { numbers: SharedList::default(), device_types: SharedList::default(), ..identification }
}

fn totals(identification: &Identification) -> Vec<u64> {
    identification.candidates.iter().map(|candidate| candidate.actions.total()).collect()
}

fn detail(notices: &[Frame]) -> &str {
    let [Frame::Notice(notice)] = notices else { panic!("{notices:?}") };
    notice.detail.as_deref().unwrap()
}

#[test]
fn paper_mode_keeps_exactly_as_many_actions_as_replies() {
    let candidates = identification(&[(2, "on"), (3, "on"), (4, "off")], 3);
    let (paper, _) = prune(&mut pruner(PruningMode::Paper, ONE_REPLY_AN_ACTION), candidates);
    assert_eq!((totals(&paper), paper.candidate_count), (vec![3], 1));
    assert_eq!((paper.min_actions, paper.max_actions), (Some(3), Some(3)));
    assert!((paper.candidates[0].probability - 1.0).abs() < 1e-12);
}

#[test]
fn learned_mode_weighs_candidates_by_their_replies() {
    let candidates = identification(&[(1, "on"), (3, "on"), (4, "off")], 3);
    let (learned, _) = prune(&mut pruner(PruningMode::Learned, ONE_REPLY_AN_ACTION), candidates);
    assert_eq!((totals(&learned), learned.candidate_count), (vec![3, 4], 2));
    assert!(learned.min_actions.unwrap() <= 3 && learned.max_actions.unwrap() >= 4);
    assert!(learned.candidates[0].probability > learned.candidates[1].probability);
}

#[test]
fn mode_none_changes_no_candidate() {
    let before = identification(&[(9, "on"), (1, "blink")], 7);
    let (after, notices) = prune(&mut pruner(PruningMode::None, ONE_REPLY_AN_ACTION), before.clone());
    let numbers: Vec<u64> = after.numbers.iter().map(|number| number.actions).collect();
    assert_eq!((without_sums(after), notices), (before, vec![]));
    assert_eq!(numbers, [1, 9]);
}

#[test]
fn no_candidate_is_dropped_without_informative_replies() {
    for mode in [PruningMode::Learned, PruningMode::Paper] {
        let mut before = identification(&[(2, "on"), (3, "on"), (4, "off")], 3);
        before = with_probability(before, 2, 1e-30);
        let (after, _) = prune(&mut pruner(mode, NO_REPLIES), before.clone());
        assert_eq!(without_sums(after), before);
    }
}

#[test]
fn candidates_beyond_the_inventory_are_dropped() {
    let mut learned = pruner(PruningMode::Learned, NO_REPLIES);
    let (pruned, _) = prune(&mut learned, identification(&[(6, "on"), (1, "blink"), (5, "on")], 3));
    assert_eq!((totals(&pruned), pruned.candidate_count), (vec![5], 1));
    assert!((pruned.candidates[0].probability - 1.0).abs() < 1e-12);
    let (emptied, notices) = prune(&mut learned, identification(&[(6, "on")], 1));
    assert_eq!(emptied.candidate_count, 0);
    assert!(detail(&notices).contains("inventory"));
    assert_eq!(learned.counters()[2], ("beyond_inventory", 3));
}

#[test]
fn unlisted_candidates_still_count() {
    let mut learned = pruner(PruningMode::Learned, ONE_REPLY_AN_ACTION);
    let (cut, notices) = prune(&mut learned, identification(&[(3, "on"), (1, "off")], 900));
    assert_eq!((cut.candidate_count, cut.listed), (900, 2));
    assert!(cut.candidates[0].probability <= 1.0 / 899.0, "the others are taken to be as likely");
    assert!(detail(&notices).contains("`limit`"));
    assert_eq!(prune(&mut learned, identification(&[(3, "on")], 900)).1, [], "reported once");
    assert_eq!(prune(&mut learned, identification(&[(3, "on")], u64::MAX)).0.candidate_count, u64::MAX);
    let mut paper = pruner(PruningMode::Paper, ONE_REPLY_AN_ACTION);
    let (cut, _) = prune(&mut paper, identification(&[(3, "on"), (1, "off")], 900));
    assert_eq!((cut.candidate_count, cut.listed), (899, 1));
}

#[test]
fn unlisted_candidates_are_dropped_if_listed_ones_suffice() {
    let mut before = identification(&[(3, "on"), (1, "off")], 900);
    before = with_probability(before, 0, 0.99);
    let (after, notices) = prune(&mut pruner(PruningMode::Learned, ONE_REPLY_AN_ACTION), before);
    assert_eq!((after.candidate_count, totals(&after), notices), (1, vec![3], vec![]));
}

#[test]
fn a_contradiction_is_reported() {
    let mut paper = pruner(PruningMode::Paper, ONE_REPLY_AN_ACTION);
    let (emptied, notices) = prune(&mut paper, identification(&[(1, "on")], 1));
    assert_eq!(emptied.candidate_count, 0);
    assert!(detail(&notices).contains("replies contradict"));
    assert_eq!(paper.counters()[4], ("emptied", 1));
    assert_eq!(prune(&mut paper, identification(&[], 0)).1, [], "there was nothing to contradict");
}

/// Replies, lists and how many candidates are not listed; few values, so that questions repeat.
fn questions() -> impl Strategy<Value = Vec<(u32, usize, u64)>> {
    prop::collection::vec((0u32..4, 0usize..4, 0u64..2), 1..40)
}

proptest! {
    /// For lists pruned before and for equal lists.
    #[test]
    fn cached_results_are_the_computed_ones(questions in questions(), is_paper in any::<bool>()) {
        let lists = [&[(2, "on"), (3, "on"), (4, "off")][..], &[(9, "on")], &[(3, "off"), (1, "on")], &[]];
        let mode = if is_paper { PruningMode::Paper } else { PruningMode::Learned };
        let mut caching = pruner(mode, ONE_REPLY_AN_ACTION);
        for ((replies, list, unlisted), flow) in questions.into_iter().zip(0..) {
            let list = lists[list];
            let mut given = identification(list, list.len() as u64 + unlisted);
            // The fit is judged by flow, and so little of it changes nothing.
            (given.command.replies, given.command.flow) = (replies, flow);
            let (computed, _) = prune(&mut pruner(mode, ONE_REPLY_AN_ACTION), given.clone());
            for again in [given.clone(), Identification { command: Command { flow: flow + 100, ..given.command.clone() }, ..given }] {
                let computed = Identification { command: again.command.clone(), ..computed.clone() };
                prop_assert_eq!(&prune(&mut caching, again).0, &computed);
            }
        }
    }
}

#[test]
fn unchanged_lists_and_cached_results_are_shared() {
    let mut learned = pruner(PruningMode::Learned, NO_REPLIES);
    let whole = identification(&[(2, "on"), (3, "on")], 2);
    assert!(prune(&mut learned, whole.clone()).0.candidates.is_clone_of(&whole.candidates));
    let mut paper = pruner(PruningMode::Paper, ONE_REPLY_AN_ACTION);
    let once = prune(&mut paper, whole.clone()).0.candidates;
    assert!(once.len() == 1 && prune(&mut paper, whole).0.candidates.is_clone_of(&once));
}
