//! Tests of `measured_leak`: against brute force, and on many draws from channels that are known.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::statistics::tests::assert_near;

/// A channel: how probable each secret is with each size.
struct Known(Vec<Vec<f64>>);

impl Known {
    /// Five secrets, of which three share sizes.
    fn leaking() -> Self {
        Self(vec![
            vec![0.30, 0.05, 0.00, 0.00, 0.00, 0.00],
            vec![0.10, 0.10, 0.05, 0.00, 0.00, 0.00],
            vec![0.00, 0.02, 0.13, 0.00, 0.00, 0.00],
            vec![0.00, 0.00, 0.00, 0.12, 0.03, 0.00],
            vec![0.00, 0.00, 0.00, 0.02, 0.02, 0.06],
        ])
    }

    /// Three secrets of which sizes say nothing.
    fn silent() -> Self {
        Self([0.5, 0.3, 0.2].map(|secret| [0.4, 0.35, 0.25].map(|size| secret * size).to_vec()).to_vec())
    }

    fn named(&self) -> f64 {
        let sizes = self.0[0].len();
        (0..sizes).map(|size| self.0.iter().map(|row| row[size]).fold(0.0, f64::max)).sum()
    }

    fn guessing(&self) -> f64 {
        self.0.iter().map(|row| row.iter().sum()).fold(0.0, f64::max)
    }

    fn bits(&self) -> f64 {
        let of_sizes: Vec<f64> = (0..self.0[0].len()).map(|size| self.0.iter().map(|row| row[size]).sum()).collect();
        let of_row = |row: &Vec<f64>| {
            let all: f64 = row.iter().sum();
            let cell =
                |(joint, size): (&f64, &f64)| if *joint > 0.0 { joint * (joint / all / size).log2() } else { 0.0 };
            row.iter().zip(&of_sizes).map(cell).sum::<f64>()
        };
        // Up to rounding.
        (self.0.iter().map(of_row).sum::<f64>() * 1e9).round() / 1e9
    }

    fn draw(&self, commands: usize, random: &mut ChaCha20Rng) -> (Vec<u32>, Vec<SeenOutput>) {
        let one = |_| {
            let mut left = random.random_range(0.0..1.0);
            for (secret, row) in (0..).zip(&self.0) {
                for (size, probability) in (100..).zip(row) {
                    left -= probability;
                    if left < 0.0 {
                        return (secret, SeenOutput { size, replies: 0 });
                    }
                }
            }
            (0, SeenOutput { size: 100, replies: 0 })
        };
        (0..commands).map(one).unzip()
    }

    fn measured(&self, commands: usize, seed: u64) -> MeasuredLeak {
        let (secrets, outputs) = self.draw(commands, &mut ChaCha20Rng::seed_from_u64(seed));
        measured(&secrets, &outputs, seed)
    }
}

fn measured(secrets: &[u32], outputs: &[SeenOutput], seed: u64) -> MeasuredLeak {
    let secrets = SecretNumbers::new(secrets);
    MeasuredLeak::new(&secrets, outputs, seed)
}

/// How often what was measured is right, of `draws`.
fn share_of_draws(draws: u64, is_right: impl Fn(u64) -> bool) -> f64 {
    (0..draws).filter(|draw| is_right(*draw)).count() as f64 / draws as f64
}

#[test]
fn intervals_hold_the_truth_of_known_channels_in_95_of_100_draws() {
    for known in [Known::leaking(), Known::silent()] {
        let measured: Vec<MeasuredLeak> = (0..200).map(|seed| known.measured(300, seed)).collect();
        let held = |interval: &dyn Fn(&MeasuredLeak) -> Interval, truth: f64| {
            let holds = |leak: &&MeasuredLeak| interval(leak).low <= truth && truth <= interval(leak).high;
            measured.iter().filter(holds).count()
        };
        let (named, guessing) = (known.named(), known.guessing());
        assert!(held(&|leak| leak.vulnerability, named) >= 190);
        // Of an exact interval 190 ± 9 (three standard deviations).
        let of_guessing = held(&|leak| leak.guessing.interval, guessing);
        assert!(of_guessing >= 181, "{of_guessing}");
        assert!(held(&|leak| leak.times_guessing.interval, named / guessing) >= 190);
        let of_bits = held(&|leak| leak.information.interval.unwrap(), known.bits());
        assert!(of_bits >= 180, "{of_bits}");
        let least =
            |bound: fn(&UpperBounds) -> f64| measured.iter().filter(|leak| bound(&leak.upper_bounds) >= named).count();
        assert!(least(|bounds| bounds.learned_by_heart) >= 195 && least(|bounds| bounds.nearest_neighbour) >= 195);
        // An observer who learned from nearly all comes near V, one who learns all the time less so.
        let mean_of = |share: &dyn Fn(&MeasuredLeak) -> f64| measured.iter().map(share).sum::<f64>() / 200.0;
        let (mean, of_others) = (mean_of(&|leak| leak.named.share), mean_of(&|leak| leak.from_others.share));
        assert!(mean <= named + 0.005 && mean > named - 0.08, "{mean}, not {named}");
        assert!(of_others <= named + 0.005 && of_others > named - 0.03, "{of_others}, not {named}");
        let above = measured.iter().filter(|leak| leak.named.interval.low > named).count();
        assert!(above <= 10, "{above}");
        let bits = measured.iter().map(|leak| leak.information.bits).sum::<f64>() / 200.0;
        assert_near(bits, known.bits(), 0.02);
    }
}

/// The less there is, the more skewed what chance makes of it.
#[test]
fn intervals_of_little_information_hold_it_as_often() {
    for known in [
        Known(vec![vec![0.25, 0.25], vec![0.2, 0.3]]),
        Known(vec![vec![0.27, 0.23], vec![0.2, 0.3]]),
        Known(vec![vec![0.855, 0.095], vec![0.01, 0.04]]),
        Known(vec![vec![0.2, 0.1, 0.05], vec![0.1, 0.15, 0.1], vec![0.1, 0.1, 0.1]]),
    ] {
        for commands in [150, 600] {
            let holds = |seed| {
                let interval = known.measured(commands, seed).information.interval.unwrap();
                interval.low <= known.bits() && known.bits() <= interval.high
            };
            let share = share_of_draws(100, holds);
            assert!(share >= 0.88, "{share} of {commands} commands, {} bits", known.bits());
        }
    }
}

/// Of many secrets that look alike, some are frequent by chance. Who counted those among the commands to be named would
/// seem to know more than anybody can.
#[test]
fn chance_among_many_secrets_makes_no_observer_better_than_v() {
    let alike = Known(vec![vec![0.01, 0.01]; 50]);
    let leaks: Vec<MeasuredLeak> = (0..100).map(|seed| alike.measured(300, seed)).collect();
    let mean = leaks.iter().map(|leak| leak.named.share).sum::<f64>() / 100.0;
    assert!(mean < alike.named() + 0.002, "{mean}, not {}", alike.named());
    assert!(leaks.iter().filter(|leak| leak.vulnerability.low > alike.named()).count() <= 5);
}

/// As of a lock that is locked and unlocked: whoever left out one command after the other would never name it.
#[test]
fn secrets_that_alternate_and_look_alike_are_named_as_by_guessing() {
    let secrets: Vec<u32> = (0..176).map(|row| row % 2).collect();
    let leak = measured(&secrets, &[SeenOutput::default(); 176], 1);
    let shares = [leak.named.share, leak.from_others.share];
    assert!(shares.iter().all(|share| (share - 0.5).abs() < 0.05), "{shares:?}");
}

#[test]
fn sizes_that_say_nothing_are_hardly_ever_said_to_give_away() {
    let wrong = share_of_draws(200, |seed| Known::silent().measured(150, seed).is_certain());
    assert!(wrong <= 0.05, "{wrong}");
    assert!(share_of_draws(50, |seed| Known::leaking().measured(150, seed).is_certain()) >= 0.98);
}

#[test]
fn observers_name_what_a_search_through_all_other_commands_finds() {
    let mut random = ChaCha20Rng::seed_from_u64(3);
    for _ in 0..30 {
        let commands = random.random_range(1..80);
        let secrets: Vec<u32> = (0..commands).map(|_| random.random_range(0..4)).collect();
        let output = |secret: &u32| SeenOutput {
            size: u64::from(*secret) * 3 + random.random_range(0..9),
            replies: random.random_range(0..3),
        };
        let outputs: Vec<SeenOutput> = secrets.iter().map(output).collect();
        let numbers = SecretNumbers::new(&secrets);
        let (before, part) = (left_out_before(secrets.len()), secrets.len().div_ceil(10));
        let by_search = |is_past: bool, is_guessing_new: bool| {
            let right = |row: &usize| {
                let is_learned = |other: &usize| {
                    if is_past { other + before < *row } else { other / part != row / part }
                };
                let others = || (0..secrets.len()).filter(is_learned);
                let distance = |other: &usize| {
                    let square = |one: u64, two: u64| one.abs_diff(two).pow(2);
                    square(outputs[*other].size, outputs[*row].size)
                        + square(outputs[*other].replies, outputs[*row].replies)
                };
                let least = others().map(|other| distance(&other)).min();
                let is_blind = is_guessing_new && least != Some(0);
                let all = |secret: u32| others().filter(|other| secrets[*other] == secret).count();
                let near = |secret: u32| {
                    others().filter(|other| secrets[*other] == secret && Some(distance(other)) == least).count()
                };
                let votes = |secret: u32| if is_blind { all(secret) } else { near(secret) };
                let best = (0..4)
                    .filter(|secret| votes(*secret) > 0)
                    .rev()
                    .max_by_key(|secret| (votes(*secret), all(*secret)));
                best == Some(secrets[*row])
            };
            (0..secrets.len()).filter(right).count() as u64
        };
        let cells = OutputCells::new(&outputs);
        // Numbers leave out secrets that do not occur, and keep the order of the others.
        let found =
            [NamedCounts::by_past(numbers.numbers(), &cells), NamedCounts::by_others(numbers.numbers(), &cells)];
        for (found, is_past) in found.into_iter().zip([true, false]) {
            assert_eq!((found.nearest, found.frequentist), (by_search(is_past, false), by_search(is_past, true)));
        }
    }
}

#[test]
fn information_is_that_of_the_counts_less_what_chance_adds() {
    // 40 commands: sizes tell the two secrets apart. One bit, and one value in each of three tables more than one.
    let secrets: Vec<u32> = (0..40).map(|row| row % 2).collect();
    let outputs: Vec<SeenOutput> =
        secrets.iter().map(|secret| SeenOutput { size: u64::from(*secret), replies: 0 }).collect();
    let leak = measured(&secrets, &outputs, 1);
    assert_near(leak.information.bits, 1.0 + 1.0 / 80.0 / std::f64::consts::LN_2, 1e-12);
    assert_near(leak.information.covered, 1.0, 0.0);
    // Every pair occurs once.
    let own: Vec<SeenOutput> = (0..40).map(|size| SeenOutput { size, replies: 0 }).collect();
    let unknown = measured(&secrets, &own, 1).information;
    assert!(unknown.interval.is_none() && unknown.covered == 0.0);
}

#[test]
fn fewest_commands_are_those_by_which_perfection_differs_from_guessing() {
    // Of two equally frequent secrets: Wilson's intervals of 12 and 6 of 12 are apart, those of 10 and 5 of 10 are not.
    assert_eq!(fewest_commands(0.5), Some(12));
    assert!(fewest_commands(0.9) > fewest_commands(0.5) && fewest_commands(0.05) <= Some(7));
    assert_eq!(fewest_commands(1.0), None);
    let outputs = |secrets: &[u32]| -> Vec<SeenOutput> {
        secrets.iter().map(|secret| SeenOutput { size: u64::from(*secret), replies: 0 }).collect()
    };
    let few = [0, 1, 0, 1, 0, 1];
    assert!(measured(&few, &outputs(&few), 1).has_too_few_commands());
    let same = [7; 50];
    assert!(measured(&same, &outputs(&same), 1).has_too_few_commands());
}

#[test]
fn figures_of_odd_samples_are_finite() {
    for secrets in [vec![], vec![3], vec![1, 2], (0..30).collect::<Vec<u32>>()] {
        let outputs: Vec<SeenOutput> = secrets
            .iter()
            .map(|secret| SeenOutput { size: u64::MAX - u64::from(*secret), replies: u64::MAX })
            .collect();
        let leak = measured(&secrets, &outputs, 1);
        let figures = [leak.named.share, leak.vulnerability.low, leak.vulnerability.high, leak.information.bits];
        assert!(figures.iter().all(|figure| figure.is_finite()), "{leak:?}");
        assert!(leak.vulnerability.low <= leak.vulnerability.high && !leak.is_certain());
    }
}
