//! The rate of false alarms, measured, and what is rejected; and when padding is said.

use sizeleak_model::{
    EpsilonTuple, FALSE_ALARMS, FitJudgement, JudgedSize, MisfitCause, Model, Neighbours, PaddingTest,
};

use super::samples::{TestRandom, actions, model};

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
        let (mut judgement, mut is_rejected) = (FitJudgement::default(), false);
        // Up to half of the commands are odd, of recurring and of new sizes; habits are narrow on some flows.
        let (odd, habits) = (random.below(51), 1 + flow % HOME.number);
        for _ in 0..60 {
            let size = match random.below(100) {
                chance if chance < odd / 2 => 33,
                chance if chance < odd => random.below(5000).cast_signed(),
                _ => Sizes { number: habits, ..HOME }.draw(&mut random),
            };
            is_rejected |= judgement.add(judged(size, Some(HOME.explain(size))));
        }
        rejected += u64::from(is_rejected);
    }
    assert!(rejected as f64 <= FALSE_ALARMS * flows as f64, "{rejected} of {flows}");
}

#[test]
fn replies_of_a_gateway_that_fits_are_rarely_rejected() {
    let mut random = TestRandom(6);
    let (mut rejected, flows) = (0_u64, 20_000_u64);
    for _ in 0..flows {
        let (mut judgement, mut is_rejected) = (FitJudgement::default(), false);
        for _ in 0..60 {
            let replies = random.below(3) as u32;
            let size = HOME.draw(&mut random);
            let command = judged(size, Some(HOME.explain(size)));
            is_rejected |= judgement.add(JudgedSize { replies: Some((replies, 1.0 / 3.0)), ..command });
        }
        rejected += u64::from(is_rejected);
        assert!(judgement.weight() > 0.99 || is_rejected);
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
        assert!(needed.is_some_and(|needed| needed >= 10), "{needed:?}");
        assert!(judgement.weight() <= 0.51 && judgement.cause() == MisfitCause::Sizes);
    }
}

#[test]
fn replies_alone_reject() {
    let mut judgement = FitJudgement::default();
    let strange = JudgedSize { replies: Some((1, 1e-4)), ..judged(90, Some(HOME.explain(90))) };
    assert!((0..20).any(|_| judgement.add(strange)) && judgement.cause() == MisfitCause::Replies);
}

#[test]
fn without_probabilities_the_share_of_unexplained_sizes_decides() {
    let rejects = |unexplained: i64| {
        let mut judgement = FitJudgement::default();
        (0..100).any(|size| {
            let is_possible = size % 10 >= unexplained;
            let probability = if is_possible { None } else { IMPOSSIBLE };
            judgement.add(judged(size, probability))
        })
    };
    assert_eq!([0, 5, 6, 9, 10].map(rejects), [false, false, false, true, true]);
}

#[test]
fn a_poll_that_comes_again_and_again_is_no_evidence() {
    let mut judgement = FitJudgement::default();
    assert!((0..10_000).all(|number| !judgement.add(judged(number % 4, IMPOSSIBLE))));
    assert_eq!((judgement.commands, judgement.unexplained), (10_000, 10_000));
}

#[test]
fn evidence_lowers_the_weight_and_a_rejection_stays() {
    let mut judgement = FitJudgement::default();
    let (mut before, mut sizes) = (1.0, 0..200);
    while !judgement.add(judged(sizes.next().unwrap(), IMPOSSIBLE)) {
        assert!(judgement.weight() <= before && judgement.commands < 30);
        before = judgement.weight();
    }
    assert!(judgement.is_judged());
    for size in sizes {
        assert!(!judgement.add(judged(size, None)), "once");
    }
    assert!(judgement.weight() <= before && judgement.ln_evidence() < 0.0);
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
    let mut evidence_after = |numbers: std::ops::Range<i64>| {
        numbers.for_each(|number| _ = judgement.add(judged(number, Some(0.0))));
        assert!((0.0..=1.0).contains(&judgement.weight()));
        judgement.ln_evidence().to_bits()
    };
    let before = evidence_after(0..200);
    let of_all_that_are_remembered = evidence_after(200..256);
    assert_ne!(before, of_all_that_are_remembered);
    assert_eq!(evidence_after(256..10_000), of_all_that_are_remembered);
}

#[test]
fn messages_that_are_more_probably_not_the_models_for_some_commands_are_rejected_and_stay_so() {
    let mut judgement = FitJudgement::default();
    let mut add = |strange| judgement.add(JudgedSize { strange, ..judged(90, Some(HOME.explain(90))) });
    for _ in 1..20 {
        assert!(!add(0.9));
    }
    assert!(!add(0.45));
    for _ in 1..20 {
        assert!(!add(0.55));
    }
    assert!(add(0.55));
    assert_eq!(judgement.cause(), MisfitCause::Messages);
    assert!((judgement.weight() - 0.45).abs() < 1e-12);
    // They may seem to be the model's again.
    judgement.add(JudgedSize { strange: 0.1, ..judged(90, Some(HOME.explain(90))) });
    assert!((judgement.weight() - 0.45).abs() < 1e-12);
}

/// After how many new sizes padding is said, of seven actions with these labelled sizes.
fn said_of(labelled: impl IntoIterator<Item = i64>, sizes: impl IntoIterator<Item = i64>) -> Option<usize> {
    let tuples = labelled.into_iter().map(|size| EpsilonTuple::new(size, 0));
    let neighbours = Neighbours::new(tuples).unwrap();
    let labelled = Model { neighbours, actions: actions(&["a", "b", "c", "d", "e", "f", "g"]), ..model() };
    let test = PaddingTest::of(&labelled).unwrap();
    let mut judgement = FitJudgement::default();
    sizes.into_iter().position(|size| {
        judgement.add(JudgedSize { padding: Some(&test), ..judged(size, None) });
        // The evidence is the mean of that of explained sizes, a fifth each, of no replies, and of padding.
        let of_sizes = 0.2_f64.powf(judgement.commands as f64);
        (3.0 * judgement.ln_evidence().exp() - of_sizes - 1.0) * FALSE_ALARMS > 1.0
    })
}

/// The same where labelled sizes are any.
fn said_after(sizes: impl IntoIterator<Item = i64>) -> Option<usize> {
    said_of((93..480).step_by(5), sizes)
}

#[test]
fn padded_sizes_are_said_and_those_of_homes_of_one_action_are_not() {
    assert!(said_after([256, 128, 512]).is_some());
    assert!(said_after((7..40).map(|at| 16 * at + 3)).is_some_and(|after| after < 22));
    assert_eq!(said_after((1..=12).map(|count| 67 + 32 * count)), None);
    // Nor is what labels have.
    assert_eq!(said_of([64, 128, 256, 512], [256, 128, 512, 1024, 2048]), None);
    assert_eq!(said_of((7..40).map(|at| 16 * at), (7..60).map(|at| 16 * at)), None);
}

#[test]
fn sums_of_any_actions_are_rarely_said() {
    let mut random = TestRandom(7);
    let actions = [28, 29, 32, 34, 36, 35, 40];
    let flows = 20_000;
    let said = (0..flows).filter(|_| {
        // Some households use few of their actions.
        let used: Vec<i64> = actions.into_iter().filter(|_| random.below(2) == 0).collect();
        let mut sizes: Vec<i64> = Vec::new();
        for _ in 0..60 {
            let drawn = (0..=random.below(8)).filter(|_| !used.is_empty());
            let sum: i64 = drawn.map(|_| used[random.below(used.len() as u64) as usize]).sum();
            let size = 67 + sum + if random.below(10) == 0 { -1 } else { 0 };
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
        said_after(sizes).is_some()
    });
    assert!(said.count() as f64 <= FALSE_ALARMS * f64::from(flows));
}
