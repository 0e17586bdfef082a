//! What replies make of the probabilities of candidates, which share of them is kept, and what is summed over them.

use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::{Actions, Candidate, Command, Frame, Identification, Shift};
use sizeleak_model::{Model, SeenReplies};
use sizeleak_platform::runtime::Stage;
use sizeleak_pruner::{Pruner, PruningMode};

/// One reply an action, most of the time.
pub(super) const COUNTING: &str = "[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.01\n";

/// Replies of a size of its own for each action, among records of something else.
pub(super) const SINGLE: &str = "[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.0\nsurplus = 0.0\n\
    [single_replies]\nmerged = 0.0\nshared = 0\nforeign = 0.01\nforeign_sizes = [[60, 9], [50, 1]]\n\
    per_command = [0, 0]\nper_action = [[1, 0], [0, 1]]\n\
    class = [{ missing = 0.01, unseen = 0.0, sizes = [[50, 9]] }, { missing = 0.01, unseen = 0.0, sizes = [[55, 9]] }]\n";

/// A model of so many plugs, which are switched on and off, with these replies.
pub(super) fn model(plugs: u32, replies: &str) -> Model {
    Model::from_toml(&format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
         [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
         [[device]]\nname = \"plug\"\ncount = {plugs}\nactions = [\"on\", \"off\"]\n{replies}\
         [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
         basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n"
    ))
    .unwrap()
}

/// A command of 100 bytes under a cipher that adds 25, with these replies.
pub(super) fn command(replies: u32, reply_bytes: u64) -> Command {
    let (size, plaintext) = (125, Some([100, 100]));
    Command { time_ns: 1, end_ns: 2, flow: 3, size, plaintext, records: 1, replies, reply_bytes, ..Command::default() }
}

/// A command with candidates of one kind of action each, and how many are not listed.
pub(super) fn identification(command: Command, candidates: &[(&str, u32, f64)], unlisted: u64) -> Identification {
    let candidate = |(name, count, probability): &(&str, u32, f64)| Candidate {
        actions: Actions::from(vec![(Arc::from(*name), *count)]),
        epsilon: 0,
        probability: *probability,
        likelihood: None,
    };
    Identification {
        candidates: candidates.iter().map(candidate).collect(),
        candidate_count: candidates.len() as u64 + unlisted,
        listed: candidates.len() as u64,
        ..Identification::unanswered(command)
    }
}

fn pruned(model: &Model, mode: PruningMode, keep: f64, given: Identification) -> Identification {
    let (mut pruner, mut out) = (Pruner::new(model, mode, keep).unwrap(), Vec::<Frame>::new());
    pruner.process(given.into(), &mut out).unwrap();
    let Some(Frame::Identification(found)) = out.pop() else { panic!("{out:?}") };
    *found
}

/// The numbers of actions that are kept, and all that is known then.
fn kept(candidates: &[(u32, f64)], unlisted: u64, replies: u32, keep: f64) -> (Vec<u32>, Identification) {
    let candidates: Vec<_> = candidates.iter().map(|(count, probability)| ("on", *count, *probability)).collect();
    let given = identification(command(replies, 0), &candidates, unlisted);
    let found = pruned(&model(16, COUNTING), PruningMode::Learned, keep, given);
    (found.candidates.iter().map(|candidate| candidate.actions.count("on")).collect(), found)
}

fn probability_of(found: &Identification, name: &str, count: u32) -> f64 {
    found.candidates.iter().find(|one| one.actions.count(name) == count).unwrap().probability
}

#[test]
fn replies_change_the_order_and_drop_unlikely_candidates() {
    let candidates = [(9, 0.5), (5, 0.25), (4, 0.25)];
    assert_eq!([0.5, 0.99, 1.0].map(|keep| kept(&candidates, 0, 4, keep).0), [vec![4], vec![4, 5], vec![4, 5, 9]]);
}

#[test]
fn tiny_likelihoods_do_not_vanish() {
    assert_eq!(kept(&[(1, 0.5), (5, 0.5)], 0, 100, 1.0).0, [5, 1]);
    let (totals, beyond) = kept(&[(1, 0.75), (5, 0.25)], 0, 4_000_000, 1.0);
    assert_eq!(totals, [1, 5]);
    assert!((beyond.candidates[0].probability - 0.75).abs() < 1e-6, "unchanged");
}

#[test]
fn equally_probable_candidates_stay_together_and_in_order() {
    assert_eq!(kept(&[(4, 0.2); 5], 0, 4, 0.3).0.len(), 5);
    assert_eq!(kept(&[], 0, 4, 0.9).0, [0_u32; 0]);
    assert_eq!(kept(&[(4, 0.0), (5, 0.0)], 0, 4, 0.9).0, [4, 5]);
}

#[test]
fn unlisted_candidates_have_the_greatest_likelihood_of_all_numbers_of_actions() {
    for plugs in [2, 3, 16] {
        let (model, listed) = (model(plugs, COUNTING), [("on", 1, 0.3), ("on", 2, 0.2)]);
        let found = pruned(&model, PruningMode::Learned, 1.0, identification(command(4, 0), &listed, 70));
        let likelihood = |actions: u32| model.replies.likelihood(4, actions);
        let joint = listed.map(|(_, count, probability)| probability * likelihood(count));
        let unlisted = 0.5 * (1..=plugs).map(likelihood).fold(0.0, f64::max);
        let all = joint.iter().sum::<f64>() + unlisted;
        for ((_, count, _), joint) in listed.iter().zip(joint) {
            let own = probability_of(&found, "on", *count);
            assert!((own - joint / all).abs() < 1e-6 * joint / all, "{plugs}: {own} is not {}", joint / all);
        }
    }
    assert_eq!(kept(&[(4, 0.3), (5, 0.2)], 70, 4, 0.9).1.candidate_count, 72, "they are needed");
    assert_eq!(kept(&[(4, 0.9999), (5, 0.000_01)], 1, 4, 0.9).1.candidate_count, 1);
}

#[test]
fn invalid_probabilities_still_sum_to_one() {
    let invalid = [(4, f64::NAN), (4, f64::INFINITY), (4, -1.0), (4, f64::NEG_INFINITY)];
    let total: f64 = kept(&invalid, 0, 4, 1.0).1.candidates.iter().map(|candidate| candidate.probability).sum();
    assert!((total - 1.0).abs() < 1e-12);
    assert_eq!(kept(&invalid, 0, 4, 0.9).0.len(), 1);
}

proptest! {
    /// Fewest: no set with one candidate fewer holds as much, ties aside.
    #[test]
    fn kept_candidates_are_the_fewest_with_enough_probability(
        candidates in prop::collection::vec((1u32..8, 0.01f64..1.0), 1..30),
        replies in 0u32..8,
        keep in 0.01f64..0.9999,
    ) {
        let total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
        let candidates: Vec<(u32, f64)> =
            candidates.iter().map(|(actions, weight)| (*actions, weight / total)).collect();
        let whole = kept(&candidates, 0, replies, 1.0).1.candidates;
        let kept = kept(&candidates, 0, replies, keep).1.candidates;
        prop_assert_eq!(&kept[..], &whole[..kept.len()]);
        let held: f64 = kept.iter().map(|candidate| candidate.probability).sum();
        prop_assert!(held >= keep - 1e-6);
        let least = kept[kept.len() - 1].probability;
        let above: f64 = kept.iter().map(|candidate| candidate.probability)
            .filter(|probability| *probability > least * (1.0 + 1e-6)).sum();
        prop_assert!(above < keep);
        if let Some(next) = whole.get(kept.len()) {
            prop_assert!(next.probability < least);
        }
    }
}

#[test]
fn bounds_widen_with_the_probability_to_keep() {
    let model = model(16, "[replies]\nfixed = 1.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n");
    let bounds = |mode, keep| {
        let found = pruned(&model, mode, keep, identification(command(6, 0), &[("on", 5, 1.0)], 0));
        (found.min_actions.unwrap(), found.max_actions)
    };
    assert_eq!(bounds(PruningMode::Paper, 0.9), (5, Some(5)));
    let (narrow, wide) = (bounds(PruningMode::Learned, 0.9), bounds(PruningMode::Learned, 0.999));
    assert!(wide.0 <= narrow.0 && narrow.0 <= 5 && Some(5) <= narrow.1 && narrow.1 <= wide.1 && wide != narrow);
    assert!(wide.0 <= 6 && (Some(6)..Some(4000)).contains(&wide.1));
    assert_eq!(bounds(PruningMode::Learned, 1.0), (0, None));
}

#[test]
fn reply_bytes_distinguish_actions_with_equal_numbers_of_replies() {
    let model = model(
        16,
        "[replies]\nfixed = 1.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
         [reply_bytes]\nfixed = 10.0\nper_reply = 0.0\nper_action = [20.0, 31.0]\nspread = 0.5\nodd = 0.01\n\
         odd_spread = 100.0\n",
    );
    let both = [("on", 1, 0.5), ("off", 1, 0.5)];
    let probabilities = |command: Command| {
        let found = pruned(&model, PruningMode::Learned, 1.0, identification(command, &both, 0));
        ["on", "off"].map(|name| probability_of(&found, name, 1))
    };
    // 25 bytes are the cipher's overhead, as in the command.
    let [on, off] = probabilities(command(1, 10 + 31 + 25));
    assert!(off > 100.0 * on && on > 0.0, "{on} {off}");
    let [on, off] = probabilities(command(0, 0));
    assert!((on - 0.5).abs() < 1e-12 && (off - 0.5).abs() < 1e-12, "{on} {off}");
}

/// A command whose single replies have these lengths behind the cipher.
pub(super) fn with_single_replies(lengths: impl IntoIterator<Item = u32>) -> Command {
    let lengths: Vec<u32> = lengths.into_iter().map(|length| length + 25).collect();
    let reply_bytes = lengths.iter().map(|length| u64::from(*length)).sum();
    let single_replies = (1_u64..).zip(&lengths).map(|(after_ns, length)| (after_ns, *length).into()).collect();
    Command { single_replies, ..command(lengths.len() as u32, reply_bytes) }
}

/// A burst of a hundred records of something else has a likelihood below the least number there is.
#[test]
fn replies_among_a_hundred_foreign_records_tell_actions_as_those_of_a_few_do() {
    let difference = |foreign: usize| {
        let command = with_single_replies(std::iter::repeat_n(60, foreign).chain([50]));
        let given = identification(command, &[("on", 1, 0.5), ("off", 1, 0.5)], 0);
        let found = pruned(&model(16, SINGLE), PruningMode::Learned, 1.0, given);
        let [on, off] = ["on", "off"].map(|name| probability_of(&found, name, 1));
        (on / off).ln()
    };
    // `off` needs one foreign record more, of a size that they seldom have, and a reply of its own that is missing, or among
    // these records: by 0.23 beside three of them, where 0.003 are so and 0.01 foreign, and by a half beside many.
    let (few, many) = (difference(3), difference(120));
    assert!(few > 800_f64.ln(), "{few}");
    assert!(few > many && few - many < (0.77_f64 / 0.23).ln(), "{few} {many}");
}

/// P(single replies | so many of an action), in the order in which they came.
pub(super) fn likelihood(model: &Model, lengths: &[u32], name: &str, count: u32) -> f64 {
    let single = model.single_replies.as_ref().unwrap();
    let ranges: Vec<[i64; 2]> = lengths.iter().map(|length| [i64::from(*length); 2]).collect();
    let action = model.actions.iter().position(|action| action.name == name).unwrap();
    SeenReplies::new(single, &ranges).ln_likelihood(&single.class_counts([(action, count)])).exp()
}

#[test]
fn unlisted_candidates_have_the_rest_of_the_given_probability() {
    let (model, lengths) = (model(16, SINGLE), [50, 55]);
    let all = [("on", 1, 0.2), ("off", 1, 0.1), ("on", 2, 0.3), ("off", 2, 0.4)];
    let joint = all.map(|(name, count, probability)| probability * likelihood(&model, &lengths, name, count));
    let given: f64 = joint.iter().sum();
    let found = |listed: usize, reply_probability: Option<f64>| {
        let cut = identification(with_single_replies(lengths), &all[..listed], (all.len() - listed) as u64);
        pruned(&model, PruningMode::Learned, 1.0, Identification { reply_probability, ..cut })
    };
    for listed in 1..=all.len() {
        let found = found(listed, Some(given));
        for ((name, count, _), joint) in all[..listed].iter().zip(joint) {
            let (own, wanted) = (probability_of(&found, name, *count), joint / given);
            assert!((own - wanted).abs() < 1e-6 * wanted, "{listed}: {own} is not {wanted}");
        }
    }
    for hostile in [f64::NAN, -1.0, 0.0, 2.0, f64::INFINITY] {
        assert_eq!(found(1, Some(hostile)).candidates, found(1, None).candidates, "{hostile}");
    }
}

#[test]
fn probabilities_are_summed_over_candidates() {
    let text = model(1, "[replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n").to_toml();
    let mut home = Model::from_toml(&text.replace("\"off\"", "\"red\"")).unwrap();
    let devices = "[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\"]\n\
                   [[device]]\nname = \"lamp\"\ncount = 1\nactions = [\"on\", \"red\"]\n";
    home.inventory = Some(sizeleak_model::Inventory::from_toml(devices).unwrap());
    let given = identification(command(0, 0), &[("on", 2, 0.5), ("red", 1, 0.25), ("on", 1, 0.125)], 0);
    // Messages are the model's with a probability of a half.
    let shift = Shift { bytes: 0, action: None, reply_bytes: 0, probability: 0.5, since_ns: None };
    let given = Identification { shifts: [shift].into(), size_probability: Some(0.1), ..given };
    let found = pruned(&home, PruningMode::Learned, 0.9, given.clone());
    let numbers: Vec<(u64, f64)> = found.numbers.iter().map(|number| (number.actions, number.probability)).collect();
    assert_eq!(numbers, [(1, 0.1875), (2, 0.25)]);
    // Two of four devices are on: the lamp is one of them in half of the ways, a plug in all. One: in a quarter.
    let expected = [("plug", 0.5 * (0.5 + 0.125 * 0.75)), ("lamp", 0.5 * (0.5 * 0.5 + 0.25 + 0.125 * 0.25))];
    assert_eq!(found.device_types.len(), 2);
    for (found, (device, probability)) in found.device_types.iter().zip(expected) {
        assert!(&*found.device == device && (found.probability - probability).abs() < 1e-12, "{found:?}");
    }
    let of_no_device = identification(command(0, 0), &[("dim", 1, 1.0)], 0);
    let found = pruned(&home, PruningMode::None, 0.9, of_no_device);
    assert!(found.device_types.is_empty() && found.numbers.len() == 1, "nothing is said of types");
    assert!(pruned(&home, PruningMode::None, 0.9, identification(command(0, 0), &[], 0)).numbers.is_empty());
}
