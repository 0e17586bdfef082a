//! Fitting a step function: how the sizes of commands without their actions grow with the bytes of the actions.
//!
//! A length field takes more bytes from some size on (WebSocket 2 more at 126, MQTT 1 more at 128, HTTP's
//! Content-Length 1 more at 1000). So without its actions a command's size is a level that rises in few steps, plus
//! noise. If the size of an action were wrong, the level would drift with the number of actions instead, which takes
//! many steps or leaves much noise.

use std::ops::Add;

use crate::statistics::at_place;

/// The least cost of a step, in bytes of deviation: smaller rises are noise.
pub const MIN_STEP_BYTES: i64 = 6;

/// By how much a step must raise the log-likelihood: its place may be any of some hundred, and its height any of ten. Of
/// deviations that are one byte each in the mean, a byte less is a likelihood e times greater.
pub const STEP_NATS: f64 = 8.0;

/// Largest cost of one deviation, in bytes: a wrong label costs no more than that.
const MAX_DEVIATION: i64 = 8;

/// One byte, in the unit of costs. The preference for the middle of a range must weigh less than any byte outside.
const BYTE: i64 = 1 << 10;

/// The additional cost of a level at the end of a range, compared with one in its middle.
const OFF_CENTRE: i64 = BYTE >> 5;

/// Levels are searched this far from the median, in bytes.
const MAX_DISTANCE: i64 = 16;

const LEVELS: usize = 2 * MAX_DISTANCE as usize + 1;

/// After so many residuals, it is looked whether costs have reached a limit.
const CHECKED_EVERY: usize = 16;

/// The step function that fits the residuals of commands best.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFunction {
    pub levels: Vec<i64>,
    /// The sum of the capped deviations and the price of the steps.
    pub cost: i64,
    /// What a step costs, in bytes.
    pub step_bytes: i64,
}

/// A residual of some commands with the same size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residual {
    pub size: i64,
    /// The least and the greatest residual that they may have.
    pub range: [i64; 2],
    pub times: u32,
}

/// The cost of the best step function if a step costs so many bytes, in bytes of deviation. `None` if it is not below a limit,
/// which is found sooner. Residuals are in order of their sizes.
pub fn step_cost(residuals: &[Residual], step_bytes: i64, limit: f64) -> Option<f64> {
    let most = (limit * BYTE as f64).ceil() as i64;
    let costs = level_costs(residuals, step_bytes, most, |_, _, _| ());
    let cost = costs.into_iter().min().unwrap_or(0) as f64 / BYTE as f64;
    (cost < limit).then_some(cost)
}

/// What a step costs where residuals deviate as much from their levels, in bytes.
fn step_bytes(levels: &[i64], residuals: &[[i64; 2]]) -> i64 {
    let outside = |(level, [least, most]): (&i64, &[i64; 2])| (least - level).max(level - most).clamp(0, MAX_DEVIATION);
    let sum: i64 = levels.iter().zip(residuals).map(outside).sum();
    ((STEP_NATS * sum as f64 / residuals.len().max(1) as f64) as i64).max(MIN_STEP_BYTES)
}

impl StepFunction {
    /// Fits `residuals`, which are in order of `sizes`, by a level that rises only between different sizes. A residual
    /// is a range; its cost is the distance of the level from that range. A step costs more where the residuals deviate
    /// much anyway.
    pub fn fit(sizes: &[i64], residuals: &[[i64; 2]]) -> Self {
        let fit = Self::at_price(sizes, residuals, MIN_STEP_BYTES);
        match step_bytes(&fit.levels, residuals) {
            MIN_STEP_BYTES => fit,
            more => Self::at_price(sizes, residuals, more),
        }
    }

    /// The same if a step costs so many bytes.
    fn at_price(sizes: &[i64], residuals: &[[i64; 2]], step_bytes: i64) -> Self {
        // For each command the level it came from, by the level it is at; in bytes, because there may be millions.
        let mut previous: Vec<[u8; LEVELS]> = vec![std::array::from_fn(|level| level as u8); residuals.len()];
        let single = |(size, range): (&i64, &[i64; 2])| Residual { size: *size, range: *range, times: 1 };
        let residuals: Vec<Residual> = sizes.iter().zip(residuals).map(single).collect();
        let costs = level_costs(&residuals, step_bytes, i64::MAX, |command, to, from| {
            if let Some(previous) = previous.get_mut(command).and_then(|levels| levels.get_mut(to)) {
                *previous = from as u8;
            }
        });
        let (mut level, cost) = costs.iter().copied().enumerate().min_by_key(|(_, cost)| *cost).unwrap_or((0, 0));
        let lowest = lowest_level(&residuals);
        let mut levels: Vec<i64> = Vec::with_capacity(residuals.len());
        for previous in previous.iter().rev() {
            levels.push(lowest + level.cast_signed() as i64);
            level = previous.get(level).map_or(level, |from| usize::from(*from));
        }
        levels.reverse();
        Self { levels, cost, step_bytes }
    }
}

/// Dynamic programming over the residuals: the cost of ending at each level. Ends early where each costs `most` already.
/// Reports every step as the residual's index, the level after it and the level before it.
fn level_costs(
    residuals: &[Residual],
    step_bytes: i64,
    most: i64,
    mut step: impl FnMut(usize, usize, usize),
) -> [i64; LEVELS] {
    let price = step_bytes * BYTE;
    let mut costs = [0; LEVELS];
    let lowest = lowest_level(residuals);
    let mut last = None;
    for (at, Residual { size, range, times }) in residuals.iter().enumerate() {
        if last.is_some_and(|last| last != size) {
            rise(&mut costs, price, |level, below| step(at, level, below));
        }
        let (range, times) = (range.map(|end| end - lowest), i64::from(*times));
        for (level, cost) in (0_i64..).zip(&mut costs) {
            *cost += times * deviation(range, level);
        }
        last = Some(size);
        // Now and then: it takes as long as a residual.
        if at % CHECKED_EVERY == 0 && costs.iter().all(|cost| *cost >= most) {
            break;
        }
    }
    costs
}

/// Lets each level be reached from the cheapest one below it at a price, where that costs less than to have been there
/// before. Reports every such step as the level after it and the level before it.
pub fn rise<C: Copy + PartialOrd + Add<Output = C>, const N: usize>(
    costs: &mut [C; N],
    price: C,
    mut step: impl FnMut(usize, usize),
) {
    let mut below: Option<(usize, C)> = None;
    for (level, cost) in costs.iter_mut().enumerate() {
        let stayed = *cost;
        if let Some((from, risen)) = below.map(|(from, cost)| (from, cost + price)).filter(|(_, cost)| *cost < stayed) {
            *cost = risen;
            step(level, from);
        }
        if below.is_none_or(|(_, least)| stayed < least) {
            below = Some((level, stayed));
        }
    }
}

/// The lowest level searched: so far below the median.
fn lowest_level(residuals: &[Residual]) -> i64 {
    let middle =
        |Residual { range: [least, most], times, .. }: &Residual| (least + (most - least) / 2, u64::from(*times));
    let middles: Vec<(i64, u64)> = residuals.iter().map(middle).collect();
    let half = middles.iter().map(|(_, times)| times).sum::<u64>() / 2;
    at_place(middles, half).map_or(0, |median| median - MAX_DISTANCE)
}

/// The cost of a residual at a level.
fn deviation([least, most]: [i64; 2], level: i64) -> i64 {
    let outside = (least - level).max(level - most).clamp(0, MAX_DEVIATION);
    // Most are exact, and a division takes longer than all else.
    if least == most {
        return outside * BYTE;
    }
    if level <= least || level >= most {
        return outside * BYTE + OFF_CENTRE;
    }
    OFF_CENTRE * (2 * level - least - most).abs() / (most - least)
}
