//! Probabilities of numbers, ranks, and functions in steps.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sizeleak_model::statistics::{ln_sum, middle, two_sided};
use sizeleak_model::step_function::{MIN_STEP_BYTES, Residual, StepFunction, step_cost};
use sizeleak_model::{Multiples, Pmf, Rank};

fn values() -> impl Strategy<Value = BTreeMap<i64, f64>> {
    prop::collection::btree_map(-20_i64..40, 0.01..1.0_f64, 0..12)
}

proptest! {
    #[test]
    fn sums_are_those_of_all_pairs(
        one in values(), other in values(), least in -70_i64..110, width in 0_i64..80,
    ) {
        let (mut all, mut greatest) = (BTreeMap::new(), BTreeMap::<i64, f64>::new());
        for (a, p) in &one {
            for (b, q) in &other {
                *all.entry(a + b).or_insert(0.0) += p * q;
                let most = greatest.entry(a + b).or_default();
                *most = most.max(p * q);
            }
        }
        let (one, other) = (Pmf::from_values(one), Pmf::from_values(other));
        let (sums, most) = (one.convolve(&other), one.convolve_greatest(&other));
        let mut within = Pmf::default();
        within.set_convolution([&one, &other], least, least + width);
        let total: f64 = (least..=least + width).map(|sum| sums.at(sum)).sum();
        prop_assert!((sums.total_between(least, least + width) - total).abs() < 1e-12);
        for sum in -60..100 {
            let expected = all.get(&sum).copied().unwrap_or(0.0);
            prop_assert!((sums.at(sum) - expected).abs() < 1e-12);
            prop_assert!((one.convolved_at(&other, sum) - expected).abs() < 1e-12);
            let expected_within = if (least..=least + width).contains(&sum) { expected } else { 0.0 };
            prop_assert!((within.at(sum) - expected_within).abs() < 1e-12);
            prop_assert!((most.at(sum) - greatest.get(&sum).copied().unwrap_or(0.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn weights_of_equal_numbers_add_up(one in values(), other in values(), bytes in -9_i64..9) {
        let mut both = Pmf::from_values(one.clone());
        both.add_moved(&Pmf::from_values(other.clone()), bytes, 0.5);
        let weight = |values: &BTreeMap<i64, f64>, at: i64| values.get(&at).copied().unwrap_or(0.0);
        for at in -40..60 {
            let expected = weight(&one, at) + 0.5 * weight(&other, at - bytes);
            prop_assert!((both.at(at) - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn multiples_are_convolutions() {
    let mut sums = Multiples::new(Pmf::from_values([(1, 0.5), (3, 0.5)]));
    let two = sums.sum_of(2);
    assert_eq!(two, &Pmf::from_values([(2, 0.25), (4, 0.5), (6, 0.25)]));
    assert_eq!((two.mode(), two.mean(), two.at(1), two.at(4)), (4, 4.0, 0.0, 0.5));
    assert_eq!(sums.sum_of(0), &Pmf::certain(0));
}

#[test]
fn unlikely_ends_are_left_out() {
    let narrow = Pmf::from_values([(-1, 1e-20), (0, 1.0), (1, 1e-20)]).trimmed();
    assert_eq!(narrow, Pmf::certain(0));
}

#[test]
fn sums_of_terms_beyond_numbers_are_known_by_their_logarithms() {
    assert!((ln_sum(&[-900.0, -900.0 + 3_f64.ln()]) - (4_f64.ln() - 900.0)).abs() < 1e-12);
    assert!((ln_sum(&[2_f64.ln(), f64::NEG_INFINITY, 5_f64.ln()]) - 7_f64.ln()).abs() < 1e-12);
    for nothing in [&[f64::NEG_INFINITY; 2][..], &[]] {
        assert!(ln_sum(nothing).is_infinite() && ln_sum(nothing) < 0.0);
    }
}

#[test]
fn the_two_sided_distribution_has_the_given_mean_deviation() {
    for mean in [0.05, 1.0, 40.0] {
        let deviations = || (-5000..=5000).map(f64::from);
        let all: f64 = deviations().map(|deviation| two_sided(deviation.abs(), mean)).sum();
        let found: f64 = deviations().map(|deviation| deviation.abs() * two_sided(deviation.abs(), mean)).sum();
        assert!((all - 1.0).abs() < 1e-9 && (found - mean).abs() < 1e-6 * mean.max(1.0), "{mean}: {all} {found}");
    }
}

#[test]
fn the_middle_of_an_even_number_of_values_is_two() {
    assert_eq!(middle(&mut [9, 1, 4], Ord::cmp), Some([4, 4]));
    assert_eq!(middle(&mut [9, 1, 4, 5], Ord::cmp), Some([4, 5]));
    assert_eq!(middle::<i64>(&mut [], Ord::cmp), None);
}

proptest! {
    #[test]
    fn ranks_order_by_weight_then_index(one: f64, other: f64, indices: [u32; 2]) {
        let [at, other_at] = indices.map(|index| index as usize);
        for (one, other) in [(one, other), (-one, other)] {
            let expected = other.total_cmp(&one).then(at.cmp(&other_at));
            prop_assert_eq!(Rank::new(one, at).cmp(&Rank::new(other, other_at)), expected);
        }
        prop_assert_eq!(Rank::new(one, at).cmp(&Rank::new(one, other_at)), at.cmp(&other_at));
        prop_assert_eq!(Rank::new(-one, at).index(), at);
    }
}

/// One byte, in the unit of costs.
const BYTE: i64 = 1 << 10;

#[test]
fn a_step_is_found_and_noise_is_ignored() {
    let sizes: Vec<i64> = (0..40).collect();
    let residual = |at| if at < 20 { 70 } else { 72 } + i64::from(at % 5 == 0);
    let residuals: Vec<[i64; 2]> = (0..40).map(|at| [residual(at); 2]).collect();
    let fit = StepFunction::fit(&sizes, &residuals);
    assert_eq!(fit.levels, [[70; 20], [72; 20]].concat());
    assert_eq!(fit.cost, (8 + MIN_STEP_BYTES) * BYTE);
}

/// Bytes of padding, each number as likely, make no level rise.
#[test]
fn steps_are_dear_among_much_noise() {
    let sizes: Vec<i64> = (0..400).collect();
    let residuals: Vec<[i64; 2]> = (0_i64..400).map(|at| [at * at * 7 % 97 % 9; 2]).collect();
    let fit = StepFunction::fit(&sizes, &residuals);
    assert!(fit.levels.iter().all(|level| *level == fit.levels[0]) && fit.step_bytes > 15, "{fit:?}");
    let risen: Vec<[i64; 2]> =
        (0_usize..400).map(|at| residuals[at].map(|end| end + 2 * i64::from(at >= 200))).collect();
    let levels = StepFunction::fit(&sizes, &risen).levels;
    assert!((1..=3).contains(&(levels[399] - levels[0])), "{levels:?}");
}

#[test]
fn levels_within_a_range_cost_little_and_its_middle_least() {
    // Two hundred exact residuals of the same size hold the level where they are.
    let at = |level| StepFunction::fit(&[1; 201], &[vec![[level; 2]; 200], vec![[10, 25]]].concat()).cost;
    assert_eq!((at(9) / BYTE, at(27) / BYTE, at(90) / BYTE), (1, 2, 8), "no more than eight bytes");
    assert!((10..=25).all(|level| at(level) <= BYTE / 32) && at(17) < at(16) && at(18) < at(19));
    let ranges = [[0, 15], [10, 25], [12, 27], [3, 18]];
    let fit = StepFunction::fit(&[1, 2, 3, 4], &ranges);
    assert!(fit.levels.iter().all(|level| (12..=15).contains(level)), "{fit:?}");
}

#[test]
fn the_level_never_rises_between_commands_of_one_size() {
    let residuals = [[[70; 2]; 20], [[75; 2]; 20]].concat();
    assert_eq!(StepFunction::fit(&[9; 40], &residuals).cost, 100 * BYTE);
}

/// The cost of a residual at a level: each byte outside, up to eight, and little for a level that is not in the middle.
fn deviation([least, most]: [i64; 2], level: i64) -> i64 {
    let outside = (least - level).max(level - most).clamp(0, 8) * BYTE;
    if least == most {
        return outside;
    }
    outside + (BYTE / 32 * (2 * level - least - most).abs() / (most - least)).min(BYTE / 32)
}

/// The cost by trying every step function, where a step costs so many bytes.
fn cheapest(step_bytes: i64, sizes: &[i64], residuals: &[[i64; 2]], level: i64, at: usize) -> i64 {
    if at == residuals.len() {
        return 0;
    }
    let from = |level: i64| deviation(residuals[at], level) + cheapest(step_bytes, sizes, residuals, level, at + 1);
    let may_rise = at > 0 && sizes[at] != sizes[at - 1];
    let risen = (level + 1..=6).filter(|_| may_rise).map(|level| step_bytes * BYTE + from(level));
    risen.chain([from(level)]).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn cost_equals_that_of_trying_every_step_function(
        data in prop::collection::vec((0i64..6, 0i64..5, 0i64..3), 1..7),
    ) {
        let range = |(size, at, width)| (size, [at * 3 % 5, at * 3 % 5 + width]);
        let (mut sizes, residuals): (Vec<i64>, Vec<[i64; 2]>) = data.into_iter().map(range).unzip();
        sizes.sort_unstable();
        let expected = |step_bytes: i64| {
            (0..=6).map(|level| cheapest(step_bytes, &sizes, &residuals, level, 0)).min().unwrap()
        };
        let fit = StepFunction::fit(&sizes, &residuals);
        prop_assert_eq!(fit.cost, expected(fit.step_bytes));
        let in_bytes = expected(MIN_STEP_BYTES) as f64 / BYTE as f64;
        let residual = |of_size: &[(&i64, &[i64; 2])]| {
            Residual { size: *of_size[0].0, range: *of_size[0].1, times: of_size.len() as u32 }
        };
        let single: Vec<(&i64, &[i64; 2])> = sizes.iter().zip(&residuals).collect();
        let joined: Vec<Residual> = single.chunk_by(|one, other| one == other).map(residual).collect();
        prop_assert_eq!(step_cost(&joined, MIN_STEP_BYTES, f64::INFINITY), Some(in_bytes));
        prop_assert_eq!(step_cost(&joined, MIN_STEP_BYTES, in_bytes), None);
        prop_assert!(fit.levels.is_sorted());
    }
}
