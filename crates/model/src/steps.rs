//! Steps of length fields: how what remains of commands rises with their size.
//!
//! A length field takes more bytes from some size on (WebSocket +2 at 126, MQTT +1 at 128, HTTP's Content-Length +1 at
//! 1000), so without its actions a command is a level that rises in few steps, and noise. Were an action's size wrong, the
//! level would drift with the number of actions instead, which takes many steps or leaves much noise.

/// What each step costs, in bytes of deviation: fewer than this are noise, not a step.
pub(crate) const STEP: i64 = 6;

/// A deviation this large costs as much as any larger one, in bytes: a wrong label is no worse than that.
const CAP: i64 = 8;

/// A byte, in the unit of costs: what speaks for the middle of a range must count less than any byte outside.
const BYTE: i64 = 1 << 10;

/// What a level at the end of a range costs more than one in its middle.
const OFF_CENTRE: i64 = BYTE >> 5;

/// Levels are looked for this far from the median, in bytes.
const REACH: i64 = 16;

/// What remains of commands, fitted by a level that rises in steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Levels {
    /// The level at each command.
    pub(crate) levels: Vec<i64>,
    /// The sum of capped deviations, and the price of the steps, as [`cost`] has them.
    pub(crate) cost: i64,
}

/// A cost in bytes.
pub(crate) fn in_bytes(cost: i64) -> f64 {
    cost as f64 / BYTE as f64
}

/// What a number of steps costs, as [`cost`] has it.
pub(crate) fn price(steps: i64) -> i64 {
    steps * STEP * BYTE
}

/// What it costs to fit `residuals`, in order of `sizes`, by a level that rises between different sizes only. A residual
/// is the least and the most it may be, and costs by how far the level is outside.
pub(crate) fn cost(sizes: &[i64], residuals: &[[i64; 2]]) -> i64 {
    let mut costs = vec![0; WIDTH];
    let lowest = lowest(residuals);
    let mut last = None;
    for (size, residual) in sizes.iter().zip(residuals) {
        advance(&mut costs, last.is_some_and(|last| last != size), residual.map(|end| end - lowest), |_, _| ());
        last = Some(size);
    }
    costs.into_iter().min().unwrap_or(0)
}

/// The cheapest level that rises in steps.
pub(crate) fn fit(sizes: &[i64], residuals: &[[i64; 2]]) -> Levels {
    let mut costs = vec![0; WIDTH];
    let lowest = lowest(residuals);
    let mut from: Vec<Vec<usize>> = Vec::with_capacity(residuals.len());
    let mut last = None;
    for (size, residual) in sizes.iter().zip(residuals) {
        let mut came: Vec<usize> = (0..WIDTH).collect();
        let rises = last.is_some_and(|last| last != size);
        advance(&mut costs, rises, residual.map(|end| end - lowest), |to, at| {
            if let Some(came) = came.get_mut(to) {
                *came = at;
            }
        });
        from.push(came);
        last = Some(size);
    }
    let (mut level, cost) = costs.iter().copied().enumerate().min_by_key(|(_, cost)| *cost).unwrap_or((0, 0));
    let mut levels: Vec<i64> = Vec::with_capacity(residuals.len());
    for came in from.iter().rev() {
        levels.push(lowest + level.cast_signed() as i64);
        level = came.get(level).copied().unwrap_or(level);
    }
    levels.reverse();
    Levels { levels, cost }
}

const WIDTH: usize = 2 * REACH as usize + 1;

/// The lowest level looked at.
fn lowest(residuals: &[[i64; 2]]) -> i64 {
    let mut sorted: Vec<i64> = residuals.iter().map(|[least, most]| least + (most - least) / 2).collect();
    let middle = sorted.len() / 2;
    if sorted.is_empty() { 0 } else { *sorted.select_nth_unstable(middle).1 - REACH }
}

/// One command further: each level is reached from itself, or by a step from the cheapest level below.
fn advance(costs: &mut [i64], rises: bool, residual: [i64; 2], mut came: impl FnMut(usize, usize)) {
    let mut below: Option<(usize, i64)> = None;
    for (level, cost) in costs.iter_mut().enumerate() {
        let stayed = *cost;
        if let Some((from, cheapest)) = below.filter(|(_, cheapest)| rises && cheapest + price(1) < stayed) {
            *cost = cheapest + price(1);
            came(level, from);
        }
        if below.is_none_or(|(_, cheapest)| stayed < cheapest) {
            below = Some((level, stayed));
        }
        *cost += deviation(residual, level.cast_signed() as i64);
    }
}

/// What a residual costs at a level.
fn deviation([least, most]: [i64; 2], level: i64) -> i64 {
    let outside = (least - level).max(level - most).clamp(0, CAP);
    let off_centre = OFF_CENTRE * (2 * level - least - most).abs().min(most - least) / (most - least).max(1);
    outside * BYTE + off_centre
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_is_found_and_noise_is_not_followed() {
        let sizes: Vec<i64> = (0..40).collect();
        let residual = |at| if at < 20 { 70 } else { 72 } + i64::from(at % 5 == 0);
        let residuals: Vec<[i64; 2]> = (0..40).map(|at| [residual(at); 2]).collect();
        let fit = fit(&sizes, &residuals);
        assert_eq!(fit.levels, [[70; 20], [72; 20]].concat());
        assert_eq!(fit.cost, 8 * BYTE + price(1));
    }

    #[test]
    fn all_of_a_range_is_near_and_its_middle_nearest() {
        let at = |level| deviation([10, 25], level);
        assert_eq!((at(9) / BYTE, at(27) / BYTE, at(90) / BYTE), (1, 2, CAP));
        assert!((10..=25).all(|level| at(level) <= OFF_CENTRE) && at(17) < at(16) && at(18) < at(19));
        let ranges = [[0, 15], [10, 25], [12, 27], [3, 18]];
        let fit = fit(&[1, 2, 3, 4], &ranges);
        assert!(fit.levels.iter().all(|level| (12..=15).contains(level)), "{fit:?}");
    }

    #[test]
    fn commands_of_one_size_have_one_level() {
        let residuals = [[[70; 2]; 20], [[75; 2]; 20]].concat();
        assert_eq!(fit(&[9; 40], &residuals).cost, 100 * BYTE);
    }

    /// Tries every level that rises.
    fn cheapest(sizes: &[i64], residuals: &[[i64; 2]], level: i64, at: usize) -> i64 {
        if at == residuals.len() {
            return 0;
        }
        let here = |level: i64| deviation(residuals[at], level);
        let stay = here(level) + cheapest(sizes, residuals, level, at + 1);
        let may_rise = at > 0 && sizes[at] != sizes[at - 1];
        let rise = (level + 1..=6).filter(|_| may_rise);
        let rise = rise.map(|level| price(1) + here(level) + cheapest(sizes, residuals, level, at + 1));
        rise.chain([stay]).min().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn agrees_with_trying_every_level(data in prop::collection::vec((0i64..6, 0i64..5, 0i64..3), 1..7)) {
            let range = |(size, at, width)| (size, [at * 3 % 5, at * 3 % 5 + width]);
            let (mut sizes, residuals): (Vec<i64>, Vec<[i64; 2]>) = data.into_iter().map(range).unzip();
            sizes.sort_unstable();
            let expected = (0..=6).map(|level| cheapest(&sizes, &residuals, level, 0)).min().unwrap();
            let fit = fit(&sizes, &residuals);
            prop_assert_eq!(fit.cost, expected);
            prop_assert_eq!(cost(&sizes, &residuals), expected);
            prop_assert!(fit.levels.is_sorted());
        }
    }
}
