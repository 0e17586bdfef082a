use proptest::prelude::*;

use super::*;

fn names() -> Vec<String> {
    vec!["lock".into(), "unlock".into()]
}

fn command(size: i64, counts: [u32; 2], replies: u32, reply_bytes: i64) -> LabelledCommand {
    LabelledCommand {
        sizes: [size; 2],
        counts: counts.to_vec(),
        replies,
        reply_bytes,
        single_replies: None,
        has_own_replies: true,
    }
}

/// A lock whose two commands have one size and replies of their own.
fn lock() -> Kinds {
    let commands: Vec<LabelledCommand> =
        (0..12).flat_map(|at| [command(213, [1, 0], 1, 102 + at % 2), command(213, [0, 1], 1, 237 + at % 2)]).collect();
    learn_kinds(&names(), commands.iter(), 0).unwrap()
}

#[test]
fn kinds_of_equal_size_are_named_and_told_apart_by_replies() {
    let kinds = lock();
    assert_eq!(kinds.of_equal_size(), [[0, 1]]);
    let (weights, other) = kinds.weights(213);
    assert!((weights[0] - weights[1]).abs() < 1e-12 && other < weights[0] / 100.0, "{weights:?} {other}");
    let likelihood = |kind: usize, bytes| kinds.reply_likelihoods(1, bytes).unwrap().0[kind];
    assert!(likelihood(0, 102) > 20.0 * likelihood(1, 102));
    assert!(likelihood(1, 238) > 20.0 * likelihood(0, 238));
    assert_eq!([&kinds.list[0], &kinds.list[1]].map(Kind::in_words), ["lock", "unlock"]);
}

#[test]
fn a_size_far_from_all_kinds_is_none_of_them() {
    let (weights, other) = lock().weights(426);
    assert!(weights.iter().all(|weight| *weight < other / 100.0), "{weights:?} {other}");
}

#[test]
fn sizes_that_were_labelled_once_may_vary_by_a_byte() {
    let commands = [command(163, [1, 0], 2, 856), command(201, [0, 1], 2, 868)];
    let kinds = learn_kinds(&names(), commands.iter(), 0).unwrap();
    assert_eq!(kinds.replies, None, "one command of each says nothing about replies");
    let (weights, other) = kinds.weights(162);
    assert!(weights[0] > 5.0 * other && weights[0] > 1000.0 * weights[1], "{weights:?} {other}");
}

#[test]
fn replies_that_do_not_depend_on_the_kind_tell_nothing() {
    let commands: Vec<LabelledCommand> = (0..40)
        .map(|at| command(100 + 10 * (at % 2), [u32::from(at % 2 == 0), u32::from(at % 2 == 1)], 1, 50 + at % 3))
        .collect();
    assert_eq!(learn_kinds(&names(), commands.iter(), 0).unwrap().replies, None);
}

/// Three kinds with sizes of their own, and labels that `label` gives for each command's true kind.
fn labelled(label: impl Fn(usize, usize) -> usize) -> (Kinds, Vec<LabelledCommand>) {
    let commands: Vec<LabelledCommand> = (0..60)
        .map(|at| {
            let counts = [[1, 0], [0, 1], [1, 1]][label(at, at % 3)];
            command([444, 452, 484][at % 3] + i64::from(at % 4 > 1), counts, 0, 0)
        })
        .collect();
    (learn_kinds(&names(), commands.iter(), 0).unwrap(), commands)
}

#[test]
fn single_wrong_labels_are_doubted_by_their_size() {
    let (kinds, commands) = labelled(|at, kind| if at % 17 == 3 { (kind + 1) % 3 } else { kind });
    assert_eq!(doubted_labels(&kinds, &names(), &commands), [3, 20, 37, 54]);
    assert!(size_dependence(&kinds).unwrap() < 0.01);
    let (kinds, commands) = labelled(|_, kind| kind);
    assert_eq!(doubted_labels(&kinds, &names(), &commands), [0; 0]);
}

#[test]
fn labels_at_random_do_not_explain_sizes() {
    let (kinds, commands) = labelled(|at, _| at * 7 % 11 % 3);
    assert!(size_dependence(&kinds).unwrap() > 0.05, "{:?}", size_dependence(&kinds));
    assert!(doubted_labels(&kinds, &names(), &commands).len() < 6);
    assert_eq!(size_dependence(&lock()), None, "all commands have one size");
}

#[test]
fn a_kind_is_found_by_its_actions() {
    let commands = [command(100, [1, 0], 0, 0), command(140, [2, 1], 0, 0), command(60, [0, 0], 0, 0)];
    let kinds = learn_kinds(&names(), commands.iter(), 0).unwrap();
    let position = |actions: &[(&str, u32)]| kinds.position(actions);
    assert_eq!(position(&[("unlock", 1), ("lock", 2)]), Some(1));
    assert_eq!(position(&[("lock", 1), ("unlock", 0)]), Some(0));
    assert_eq!(position(&[]), Some(2));
    assert_eq!(position(&[("lock", 2)]), None);
    assert_eq!(kinds.list[2].in_words(), "no action");
}

proptest! {
    #[test]
    fn weights_are_a_distribution_over_sizes(sizes in prop::collection::vec(50i64..300, 1..20)) {
        let commands: Vec<LabelledCommand> =
            sizes.iter().zip(0_u32..).map(|(size, at)| command(*size, [at % 2, 1], 0, 0)).collect();
        let kinds = learn_kinds(&names(), commands.iter(), 0).unwrap();
        prop_assert!(kinds.fault().is_none(), "{:?}", kinds);
        let sum: f64 = (-3000..6000).map(|size| kinds.weights(size).0.iter().sum::<f64>()).sum();
        prop_assert!((sum + kinds.other - 1.0).abs() < 1e-3, "{}", sum);
    }
}
