use super::*;
use crate::fit::testing::TestRandom;

fn command(actions: u32, replies: u32) -> LabelledCommand {
    LabelledCommand {
        sizes: [0; 2],
        counts: vec![actions],
        replies,
        reply_bytes: 0,
        single_replies: None,
        has_own_replies: true,
    }
}

/// Commands of up to `most` actions with one acknowledgement and a reply for each action, of which some are
/// missing.
fn replying(commands: u32, most: u64, missing_percent: u64) -> Vec<LabelledCommand> {
    let mut random = TestRandom(7);
    let mut made = Vec::new();
    for _ in 0..commands {
        let actions = 1 + random.below(most) as u32;
        let replies = 1 + (0..actions).filter(|_| random.below(100) >= missing_percent).count() as u32;
        made.push(command(actions, replies));
    }
    made
}

#[test]
fn one_reply_for_each_action_is_learned_despite_losses() {
    let model = learn_reply_counts(&replying(120, 3, 3));
    assert!((model.fixed - 1.0).abs() < 1e-9 && (model.per_action - 1.0).abs() < 1e-9, "{model:?}");
    assert!(model.missing > 0.005 && model.missing < 0.06, "{model:?}");
    assert!(model.likelihood(6, 5) > 0.8 && model.likelihood(40, 5) > 0.0 && model.likelihood(0, 4000) > 0.0);
    assert!(model.likelihood(15, 16) > 3.0 * model.likelihood(5, 6), "losses grow with the number of replies");
    assert_eq!(model.paper_bounds(21), (20, 20), "beyond the numbers seen");
    assert_eq!((model.paper_bounds(0), model.paper_bounds(1)), ((0, 0), (0, 0)));
    let (least, most) = model.bounds(11, 0.999);
    assert!((5..=10).contains(&least) && (11..=18).contains(&most), "{least} {most}");
    assert_eq!([1.0, f64::NAN, 7.0].map(|keep| model.bounds(11, keep)), [(0, u32::MAX); 3]);
}

#[test]
fn likelihoods_sum_to_one_and_bounds_keep_the_requested_probability() {
    for missing_percent in [0, 5, 20] {
        let model = learn_reply_counts(&replying(120, 4, missing_percent));
        for actions in [1, 2, 5, 16, 40] {
            let all: f64 = (0..2000).map(|replies| model.likelihood(replies, actions)).sum();
            assert!((all - 1.0).abs() < 1e-6, "{all}");
            for keep in [0.9, 0.99, 0.999] {
                let within = |replies: &u32| {
                    let (least, most) = model.bounds(*replies, keep);
                    (least..=most).contains(&actions)
                };
                let kept: f64 = (0..500).filter(within).map(|replies| model.likelihood(replies, actions)).sum();
                assert!(kept >= keep, "{kept} of {keep} at {actions} actions, {missing_percent} % missing");
            }
        }
    }
}

#[test]
fn coalesced_replies_lower_the_slope() {
    let commands: Vec<_> = (0..100).map(|at| command(1 + at % 9, 1 + (at % 9).div_ceil(2))).collect();
    let model = learn_reply_counts(&commands);
    assert!((0.4..0.6).contains(&model.per_action), "{model:?}");
    let (least, most) = model.bounds(4, 0.999);
    assert!(least <= 6 && most >= 7, "{least} {most}");
}

#[test]
fn uninformative_replies_exclude_nothing() {
    for replies in [|_| 0, |_| 1, |at: u32| at * 7 % 5, |at: u32| u32::from(at.is_multiple_of(3))] {
        let commands: Vec<_> = (0..60).map(|at| command(1 + at % 8, replies(at))).collect();
        let model = learn_reply_counts(&commands);
        assert!(!model.is_informative(), "{model:?}");
        assert!((model.likelihood(3, 9) - 1.0).abs() < f64::EPSILON);
        assert_eq!((model.paper_bounds(3), model.bounds(3, 0.9)), ((0, u32::MAX), (0, u32::MAX)));
    }
    assert_eq!(learn_reply_counts(&[]), ReplyCountModel::uninformative());
    assert_eq!(learn_reply_counts(&[command(1, 1)]), ReplyCountModel::uninformative());
    assert_eq!(
        learn_reply_counts(&[command(1, 2), command(2, 3)]),
        ReplyCountModel::uninformative(),
        "too few commands"
    );
}

#[test]
fn random_replies_are_rarely_informative() {
    let is_informative = |seed: &u64| {
        let mut random = TestRandom(*seed * 1_000_003);
        let commands: Vec<_> = (0..40).map(|_| command(1 + random.below(8) as u32, random.below(6) as u32)).collect();
        learn_reply_counts(&commands).is_informative()
    };
    assert!((0..200).filter(is_informative).count() <= 2);
}

/// Commands of three actions; `replies` returns the number and bytes of the replies to their counts.
fn answered(commands: usize, mut replies: impl FnMut(&[u32], &mut TestRandom) -> (u32, i64)) -> Vec<LabelledCommand> {
    let mut random = TestRandom(5);
    let command = |_| {
        let counts = [random.below(4), random.below(3), 1 + random.below(2)].map(|count| count as u32);
        let (replies, reply_bytes) = replies(&counts, &mut random);
        LabelledCommand {
            sizes: [0; 2],
            counts: counts.to_vec(),
            replies,
            reply_bytes,
            single_replies: None,
            has_own_replies: true,
        }
    };
    (0..commands).map(command).collect()
}

#[test]
fn bytes_of_each_action_are_learned_from_one_reply_with_all_states() {
    let commands = answered(120, |counts, random| {
        let odd = if random.below(20) == 0 { 57 } else { 0 };
        let states = counts.iter().zip([20, 31, 24]).map(|(count, bytes)| i64::from(*count) * bytes);
        (1, 40 + states.sum::<i64>() + odd)
    });
    let model = learn_reply_bytes(&commands, 3).unwrap();
    for (found, expected) in model.per_action.iter().zip([20.0, 31.0, 24.0]) {
        assert!((found - expected).abs() < 0.5, "{model:?}");
    }
    let likelihood = |counts: [u32; 3]| model.likelihood(40 + 31 + 24, 1, counts.into_iter());
    assert!(likelihood([0, 1, 1]) > 20.0 * likelihood([1, 0, 1]), "{model:?}");
    assert!(likelihood([0, 1, 1]) <= model.greatest() && likelihood([9, 9, 9]) > 0.0);
    let odd = |bytes: i64| model.likelihood(40 + 31 + 24 + bytes, 1, [0, 1, 1].into_iter());
    assert!(odd(57) > 50.0 * odd(58), "{model:?}");
    let all: f64 = (-3000..4000).map(|bytes| model.likelihood(bytes, 1, [0, 1, 1].into_iter())).sum();
    assert!((all - 1.0).abs() < 1e-6, "{all}");
}

#[test]
fn bytes_that_follow_from_the_number_of_replies_are_uninformative() {
    let with_losses = |counts: &[u32], random: &mut TestRandom| {
        let replies = counts.iter().sum::<u32>() - u32::from(random.below(10) == 0);
        (replies, 53 * i64::from(replies))
    };
    assert_eq!(learn_reply_bytes(&answered(150, with_losses), 3), None);
    assert_eq!(learn_reply_bytes(&answered(150, |_, _| (0, 0)), 3), None);
    assert_eq!(learn_reply_bytes(&answered(150, |_, random| (1, random.below(90).cast_signed())), 3), None);
    assert_eq!(learn_reply_bytes(&[], 3), None);
}
