//! Tests of `step_function`.

use proptest::prelude::*;

use super::*;

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
    let at = |level| deviation([10, 25], level);
    assert_eq!((at(9) / BYTE, at(27) / BYTE, at(90) / BYTE), (1, 2, MAX_DEVIATION));
    assert!((10..=25).all(|level| at(level) <= OFF_CENTRE) && at(17) < at(16) && at(18) < at(19));
    let ranges = [[0, 15], [10, 25], [12, 27], [3, 18]];
    let fit = StepFunction::fit(&[1, 2, 3, 4], &ranges);
    assert!(fit.levels.iter().all(|level| (12..=15).contains(level)), "{fit:?}");
}

#[test]
fn the_level_never_rises_between_commands_of_one_size() {
    let residuals = [[[70; 2]; 20], [[75; 2]; 20]].concat();
    assert_eq!(StepFunction::fit(&[9; 40], &residuals).cost, 100 * BYTE);
}

/// The cost by trying every step function.
fn cheapest(sizes: &[i64], residuals: &[[i64; 2]], level: i64, at: usize) -> i64 {
    if at == residuals.len() {
        return 0;
    }
    let cost_at = |level: i64| deviation(residuals[at], level);
    let stay = cost_at(level) + cheapest(sizes, residuals, level, at + 1);
    let may_rise = at > 0 && sizes[at] != sizes[at - 1];
    let rise = (level + 1..=6).filter(|_| may_rise);
    let rise = rise.map(|level| MIN_STEP_BYTES * BYTE + cost_at(level) + cheapest(sizes, residuals, level, at + 1));
    rise.chain([stay]).min().unwrap()
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
        let expected = (0..=6).map(|level| cheapest(&sizes, &residuals, level, 0)).min().unwrap();
        let fit = StepFunction::at_price(&sizes, &residuals, MIN_STEP_BYTES);
        prop_assert_eq!(fit.cost, expected);
        let in_bytes = expected as f64 / BYTE as f64;
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
