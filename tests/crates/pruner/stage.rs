//! Candidates, counts and notices of the stage in each mode, what waits for replies, and the options.

use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::{Actions, Candidate, Command, Frame, Identification, SharedList};
use sizeleak_model::Model;
use sizeleak_platform::runtime::{Stage, StageOptions};
use sizeleak_pruner::{Options, Pruner, PruningMode};

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

/// Whether each of these lists of actions is left by an inventory of these devices.
fn are_allowed(devices: &str, lists: &[&[(&str, u32)]]) -> Vec<bool> {
    let model = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n[[action]]\nname = \"on\"\nsize = 40\n\
         [[action]]\nname = \"red\"\nsize = 41\n{devices}[replies]\nfixed = 0.0\n{NO_REPLIES}\
         [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\nbasis = \"wire\"\n"
    );
    let mut pruner = Pruner::new(&Model::from_toml(&model).unwrap(), PruningMode::Learned, 0.9).unwrap();
    let mut is_left = |list: &[(&str, u32)]| {
        let mut given = identification(&[(1, "on")], 1);
        let actions = list.iter().map(|(name, count)| (Arc::from(*name), *count)).collect();
        given.candidates = [Candidate { actions, ..given.candidates[0].clone() }].into();
        prune(&mut pruner, given).0.candidate_count == 1
    };
    lists.iter().map(|list| is_left(list)).collect()
}

#[test]
fn each_action_needs_a_device() {
    let home = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\"]\n\
                [[device]]\nname = \"lamp\"\ncount = 1\nactions = [\"on\", \"red\"]\n";
    let within: [&[_]; 3] = [&[("on", 3)], &[("on", 2), ("red", 1)], &[("red", 1), ("blink", 0)]];
    assert_eq!(are_allowed(home, &within), [true; 3]);
    let beyond: [&[_]; 6] = [
        &[("on", 4)],
        &[("on", 3), ("red", 1)],
        &[("red", 2)],
        &[("blink", 1)],
        &[("on", 2), ("on", 2)],
        &[("on", u32::MAX), ("on", 9)],
    ];
    assert_eq!(are_allowed(home, &beyond), [false; 6]);
    assert_eq!(are_allowed("", &[&[("on", u32::MAX), ("blink", 1)]]), [true], "everything without an inventory");
}

/// A command without replies on a flow, which may share those of these numbers with the commands before it.
fn overlapping(time_ns: i64, flow: u64, overlapped: bool, shared: &[u32]) -> Box<Identification> {
    let mut given = identification(&[(1, "on")], 1);
    let shared_replies = shared.iter().copied().collect();
    given.command = Command { time_ns, flow, overlapped, shared_replies, ..Command::default() };
    given.into()
}

/// The times of what comes out, and whether the replies are known.
fn out(frames: Vec<Frame>) -> Vec<(i64, bool)> {
    let known = |frame| match frame {
        Frame::Identification(one) => (one.command.time_ns, one.min_actions.is_some()),
        other => panic!("{other:?}"),
    };
    frames.into_iter().map(known).collect()
}

/// How many commands shared replies, and of how many they are not known.
fn shared_and_unknown(pruner: &Pruner) -> [u64; 2] {
    let counters = pruner.counters();
    let count = |wanted| counters.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, count)| *count);
    [count("shared_replies"), count("unknown_replies")]
}

#[test]
fn identifications_between_wait_for_the_group_before_them() {
    let mut learned = pruner(PruningMode::Learned, ONE_REPLY_AN_ACTION);
    let mut frames: Vec<Frame> = Vec::new();
    learned.process(overlapping(1, 7, true, &[]), &mut frames).unwrap();
    learned.process(overlapping(2, 8, false, &[]), &mut frames).unwrap();
    assert_eq!(frames, []);
    learned.process(overlapping(3, 7, false, &[2]), &mut frames).unwrap();
    assert_eq!((out(frames), shared_and_unknown(&learned)), (vec![(1, true), (2, true), (3, true)], [2, 0]));
}

#[test]
fn replies_of_a_group_that_is_not_whole_are_unknown() {
    let mut learned = pruner(PruningMode::Learned, ONE_REPLY_AN_ACTION);
    let mut frames: Vec<Frame> = Vec::new();
    for (time_ns, overlapped, shared) in [(1, true, &[][..]), (2, false, &[]), (3, false, &[1]), (4, true, &[])] {
        learned.process(overlapping(time_ns, 7, overlapped, shared), &mut frames).unwrap();
    }
    assert_eq!(frames.len(), 3);
    learned.finish(&mut frames).unwrap();
    assert_eq!(out(frames), [(1, false), (2, true), (3, false), (4, false)]);
    assert_eq!(shared_and_unknown(&learned), [0, 3]);
}

#[test]
fn no_more_are_held_than_the_limit() {
    let mut learned = pruner(PruningMode::Learned, ONE_REPLY_AN_ACTION);
    let mut frames: Vec<Frame> = Vec::new();
    learned.process(overlapping(0, 7, true, &[]), &mut frames).unwrap();
    for time_ns in 1..=1024 {
        assert!(frames.is_empty());
        learned.process(overlapping(time_ns, 8, false, &[]), &mut frames).unwrap();
    }
    let answers = frames.iter().filter(|frame| matches!(frame, Frame::Identification(_)));
    assert_eq!(answers.count(), 1025);
}

#[test]
fn a_missing_model_and_a_share_out_of_range_are_usage_errors() {
    let exit_code = |options: Options| options.build().map(|_| "a stage").unwrap_err().exit_code();
    assert_eq!(exit_code(Options::default()), 2);
    let unreadable = Options { model: vec!["no-such-folder/model.toml".into()], ..Options::default() };
    for keep in [0.0, -1.0, 1.1, f64::NAN] {
        assert_eq!(exit_code(Options { keep, ..unreadable.clone() }), 2);
    }
    assert_eq!(exit_code(unreadable), 1);
}

#[test]
fn keys_are_those_of_the_pipeline_file() {
    let options: Options =
        toml::from_str("model = \"m.toml\"\nmode = \"paper\"\nkeep = 0.5\nfree = true\nprofile = \"p.toml\"").unwrap();
    assert_eq!(
        options,
        Options {
            model: vec!["m.toml".into()],
            mode: PruningMode::Paper,
            keep: 0.5,
            free: true,
            profile: Some("p.toml".into())
        }
    );
    assert_eq!(toml::from_str::<Options>("").unwrap(), Options::default());
    assert!(toml::from_str::<Options>("mode = \"best\"").is_err());
}
