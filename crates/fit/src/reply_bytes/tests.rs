use super::*;
use crate::testing::TestRandom;

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
