//! The rate of false alarms, measured; and what is rejected.

use super::*;
use crate::testing::TestRandom;

/// A gateway with some sizes, one as likely as the other.
struct Sizes {
    first: i64,
    step: i64,
    number: u64,
}

impl Sizes {
    fn draw(&self, random: &mut TestRandom) -> i64 {
        self.first + self.step * random.below(self.number).cast_signed()
    }

    fn explain(&self, size: i64) -> f64 {
        let offset = size - self.first;
        let is_own = offset >= 0 && offset % self.step == 0 && offset / self.step < self.number.cast_signed();
        if is_own { 1.0 / self.number as f64 } else { 0.0 }
    }
}

const IMPOSSIBLE: Option<f64> = Some(0.0);

const HOME: Sizes = Sizes { first: 90, step: 7, number: 40 };

fn judged(size: i64, probability: Option<f64>) -> JudgedSize<'static> {
    JudgedSize { sizes: [size; 2], probability, strange: 0.0, replies: None, padding: None }
}

#[test]
fn fewer_flows_that_fit_are_rejected_than_documented() {
    let mut random = TestRandom(5);
    let (mut rejected, flows) = (0_u64, 20_000_u64);
    for flow in 0..flows {
        let mut judgement = FitJudgement::default();
        // Up to half of the commands are odd, of recurring and of new sizes; habits are narrow on some flows.
        let (odd, habits) = (random.below(51), 1 + flow % HOME.number);
        for _ in 0..60 {
            let size = match random.below(100) {
                chance if chance < odd / 2 => 33,
                chance if chance < odd => random.below(5000).cast_signed(),
                _ => Sizes { number: habits, ..HOME }.draw(&mut random),
            };
            judgement.add(judged(size, Some(HOME.explain(size))));
        }
        rejected += u64::from(judgement.is_rejected);
    }
    assert!(rejected as f64 <= FALSE_ALARMS * flows as f64, "{rejected} of {flows}");
}

#[test]
fn replies_of_a_gateway_that_fits_are_rarely_rejected() {
    let mut random = TestRandom(6);
    let (mut rejected, flows) = (0_u64, 20_000_u64);
    for _ in 0..flows {
        let mut judgement = FitJudgement::default();
        for _ in 0..60 {
            let replies = random.below(3) as u32;
            let size = HOME.draw(&mut random);
            let command = judged(size, Some(HOME.explain(size)));
            judgement.add(JudgedSize { replies: Some((replies, 1.0 / 3.0)), ..command });
        }
        rejected += u64::from(judgement.is_rejected);
        assert!(judgement.weight() > 0.99 || judgement.is_rejected);
    }
    assert!(rejected as f64 <= FALSE_ALARMS * flows as f64, "{rejected} of {flows}");
}

#[test]
fn another_gateway_is_rejected_within_a_few_commands() {
    let other = Sizes { first: 100, step: 9, number: 40 };
    let mut random = TestRandom(7);
    for _ in 0..200 {
        let mut judgement = FitJudgement::default();
        let needed = (1..=200).find(|_| {
            let size = other.draw(&mut random);
            judgement.add(judged(size, Some(HOME.explain(size))))
        });
        assert!(needed.is_some_and(|needed| needed >= ENOUGH_COMMANDS), "{needed:?}");
        assert!(judgement.weight() <= 0.51 && judgement.cause() == MisfitCause::Sizes);
    }
}

#[test]
fn replies_alone_reject() {
    let mut judgement = FitJudgement::default();
    for _ in 0..20 {
        judgement.add(JudgedSize { replies: Some((1, 1e-4)), ..judged(90, Some(HOME.explain(90))) });
    }
    assert!(judgement.is_rejected && judgement.cause() == MisfitCause::Replies);
}

#[test]
fn without_probabilities_the_share_of_unexplained_sizes_decides() {
    let rejects = |unexplained: i64| {
        let mut judgement = FitJudgement::default();
        for size in 0..100 {
            let is_possible = size % 10 >= unexplained;
            let probability = if is_possible { None } else { IMPOSSIBLE };
            judgement.add(judged(size, probability));
        }
        judgement.is_rejected
    };
    assert_eq!([0, 5, 6, 9, 10].map(rejects), [false, false, false, true, true]);
}

#[test]
fn a_poll_that_comes_again_and_again_is_no_evidence() {
    let mut judgement = FitJudgement::default();
    for number in 0..10_000 {
        judgement.add(judged(number % 4, IMPOSSIBLE));
    }
    assert!(!judgement.is_rejected && (judgement.commands, judgement.unexplained) == (10_000, 10_000));
}

#[test]
fn evidence_lowers_the_weight_and_a_rejection_stays() {
    let mut judgement = FitJudgement::default();
    let (mut before, mut sizes) = (1.0, 0..200);
    while !judgement.is_rejected {
        judgement.add(judged(sizes.next().unwrap(), IMPOSSIBLE));
        assert!(judgement.weight() <= before && judgement.commands < 30);
        before = judgement.weight();
    }
    assert!(judgement.is_judged());
    for size in sizes {
        judgement.add(judged(size, None));
    }
    assert!(judgement.is_rejected && judgement.weight() <= before && judgement.ln_evidence() < 0.0);
}

#[test]
fn odd_values_neither_overflow_nor_divide_by_zero() {
    let mut judgement = FitJudgement::default();
    for sizes in [[i64::MIN, i64::MAX], [i64::MAX, i64::MIN], [0, 0], [i64::MAX; 2]] {
        for probability in [0.0, f64::MIN_POSITIVE, 1.0] {
            let probability = Some(probability);
            judgement.add(JudgedSize {
                sizes,
                probability,
                strange: 0.0,
                replies: Some((u32::MAX, 0.0)),
                padding: None,
            });
            assert!(judgement.weight() >= 0.0 && judgement.weight() <= 1.0);
        }
    }
    for number in 0..10_000 {
        judgement.add(judged(number, Some(0.0)));
    }
    assert!(judgement.weight() >= 0.0 && judgement.sizes.len() == MAX_VALUES);
}

#[test]
fn messages_that_are_more_probably_not_the_models_for_some_commands_are_rejected_and_stay_so() {
    let mut judgement = FitJudgement::default();
    let mut add = |strange| judgement.add(JudgedSize { strange, ..judged(90, Some(HOME.explain(90))) });
    for _ in 1..ENOUGH_TO_REJECT {
        assert!(!add(0.9));
    }
    assert!(!add(0.45));
    for _ in 1..ENOUGH_TO_REJECT {
        assert!(!add(0.55));
    }
    assert!(add(0.55));
    assert_eq!(judgement.cause(), MisfitCause::Messages);
    assert!((judgement.weight() - 0.45).abs() < 1e-12);
    // They may seem to be the model's again.
    judgement.add(JudgedSize { strange: 0.1, ..judged(90, Some(HOME.explain(90))) });
    assert!((judgement.weight() - 0.45).abs() < 1e-12);
}
