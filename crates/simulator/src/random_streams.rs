//! Independent streams of random numbers from one seed, random times from a scenario's ranges, and the units of times,
//! all in nanoseconds.

use jiff::SignedDuration;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::scenario::DurationRange;

pub(crate) const MICROSECOND: i64 = 1_000;
pub(crate) const MILLISECOND: i64 = 1_000 * MICROSECOND;
pub(crate) const SECOND: i64 = 1_000 * MILLISECOND;
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// The purpose of a stream of random numbers. Each purpose has its own stream, so that an option that draws more
/// numbers for one purpose changes nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Certificate,
    Commands,
    Labels,
    Messages,
    Tls,
    Tcp,
    FetchTls,
    FetchTcp,
    BackgroundTraffic,
    Capture,
    /// Parameters of actions, the app of a command, and overlapping commands.
    Variation,
    /// The key of padding, and padding drawn anew.
    Padding,
    Habits,
    Attacks,
}

/// The seed of one capture of a simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed {
    seed: u64,
    capture: u64,
}

impl Seed {
    /// The seed of a capture; number 0 seeds what all captures share.
    pub(crate) fn new(seed: u64, capture: u8) -> Self {
        Self { seed, capture: u64::from(capture) }
    }

    /// The `index`th stream for a purpose.
    pub(crate) fn stream(self, purpose: Purpose, index: u32) -> ChaCha20Rng {
        let mut random = ChaCha20Rng::seed_from_u64(self.seed);
        random.set_stream(self.capture << 48 | (purpose as u64) << 40 | u64::from(index));
        random
    }
}

pub(crate) fn random_duration(range: DurationRange, random: &mut ChaCha20Rng) -> i64 {
    random.random_range(nanoseconds(range.min)..=nanoseconds(range.max))
}

/// Times at random intervals around `period` (0 for none), from `from_ns` until before `until_ns`.
pub(crate) fn recurring_times(
    period: SignedDuration,
    from_ns: i64,
    until_ns: i64,
    random: &mut ChaCha20Rng,
) -> Vec<i64> {
    let period = nanoseconds(period);
    let mut times = Vec::new();
    if period == 0 {
        return times;
    }
    let mut next = from_ns + random.random_range(0..=period);
    while next < until_ns {
        times.push(next);
        next += random.random_range(period / 2 + 1..=period + period / 2 + 1);
    }
    times
}

/// A duration of the scenario in nanoseconds. Checked scenarios have none above a day.
pub(crate) fn nanoseconds(duration: SignedDuration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
