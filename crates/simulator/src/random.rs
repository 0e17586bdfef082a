//! Where chance comes from: independent streams of random numbers out of one seed, and draws from a scenario's ranges.

use jiff::SignedDuration;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use crate::scenario::DurationRange;

/// What a stream of random numbers is for. Each has its own, so that an option that draws more numbers for one thing
/// leaves everything else as it was.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Certificate,
    Commands,
    Labels,
    Script,
    Tls,
    Tcp,
    FetchTls,
    FetchTcp,
    Noise,
    Capture,
}

/// The seed of one part of a simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed {
    seed: u64,
    part: u64,
}

impl Seed {
    /// The seed of part number `part`; number 0 is what all parts share.
    pub(crate) fn new(seed: u64, part: u8) -> Self {
        Self { seed, part: u64::from(part) }
    }

    /// The `index`th stream of a purpose.
    pub(crate) fn stream(self, purpose: Purpose, index: u32) -> ChaCha20Rng {
        let mut random = ChaCha20Rng::seed_from_u64(self.seed);
        random.set_stream(self.part << 48 | (purpose as u64) << 40 | u64::from(index));
        random
    }
}

/// A time between the two of a span, in nanoseconds.
pub(crate) fn within(span: DurationRange, random: &mut ChaCha20Rng) -> i64 {
    random.random_range(nanoseconds(span.min)..=nanoseconds(span.max))
}

/// Times at random intervals around `period` (0 for none), from `from_ns` until before `until_ns`.
pub(crate) fn recurring(period: SignedDuration, from_ns: i64, until_ns: i64, random: &mut ChaCha20Rng) -> Vec<i64> {
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

/// A scenario's time in nanoseconds. Scenarios are checked to be within a day.
pub(crate) fn nanoseconds(time: SignedDuration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
