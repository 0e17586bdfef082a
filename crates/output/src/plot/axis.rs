//! The time axis: the position of a time, and the labelled ticks.

use crate::TimeFormat;

const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;

/// Steps between ticks from one second to a year; shorter and longer steps are computed.
const STEPS: [i128; 22] = [
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    30 * DAY,
    90 * DAY,
    180 * DAY,
    365 * DAY,
];

/// A time axis over a width in pixels.
pub(super) struct Axis {
    first: i128,
    last: i128,
    pixels: f64,
}

pub(super) struct Tick {
    pub(super) x: f64,
    pub(super) time: String,
    /// `None` if it is that of the previous tick.
    pub(super) date: Option<String>,
}

impl Axis {
    /// An axis from the first to the last time, with a margin on both sides.
    pub(super) fn new(span: (i64, i64), pixels: f64) -> Self {
        let (first, last) = (i128::from(span.0), i128::from(span.1));
        let margin = ((last - first) / 50).max(SECOND / 100);
        Self { first: first - margin, last: last + margin, pixels }
    }

    /// The position of a time, in pixels from the left.
    pub(super) fn at(&self, time_ns: i64) -> f64 {
        self.position(time_ns.into())
    }

    fn position(&self, time: i128) -> f64 {
        (time - self.first) as f64 / (self.last - self.first) as f64 * self.pixels
    }

    /// Round times at least `min_distance` pixels from each other.
    pub(super) fn ticks(&self, times: &TimeFormat, min_distance: f64) -> Vec<Tick> {
        let step = self.step(min_distance);
        let clock = if step < SECOND { "%H:%M:%S.%3f" } else { "%H:%M:%S" };
        let mut ticks: Vec<Tick> = Vec::new();
        let mut shown = None;
        let mut time = self.first.div_euclid(step) * step + step;
        while time <= self.last {
            if let Ok(time_ns) = i64::try_from(time) {
                let date = Some(times.strftime(time_ns, "%Y-%m-%d"));
                let is_new = date != shown;
                shown.clone_from(&date);
                let date = date.filter(|_| is_new);
                ticks.push(Tick { x: self.position(time), time: times.strftime(time_ns, clock), date });
            }
            time += step;
        }
        ticks
    }

    fn step(&self, min_distance: f64) -> i128 {
        let least = (self.last - self.first) as f64 / self.pixels * min_distance;
        let below = [1, 2, 5, 10, 20, 50, 100, 200, 500].map(|milliseconds| milliseconds * SECOND / 1000);
        let step = below.into_iter().chain(STEPS).find(|step| *step as f64 >= least);
        step.unwrap_or_else(|| (least / (365 * DAY) as f64).ceil() as i128 * 365 * DAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_distance_for_every_span() {
        let start = 1_767_600_000_000_000_000;
        for span in [0, 1, 3_000_000, 1_000_000_000, 59_000_000_000, 86_400_000_000_000, 400 * 86_400_000_000_000] {
            let axis = Axis::new((start, start + span), 1000.0);
            let ticks = axis.ticks(&TimeFormat::default(), 100.0);
            assert!((2..=11).contains(&ticks.len()), "{span}: {}", ticks.len());
            assert!(ticks.windows(2).all(|pair| pair[1].x - pair[0].x >= 99.9), "{span}");
            assert!(ticks[0].date.as_deref().is_some_and(|date| date.starts_with("202")), "{span}");
            assert!((0.0..=1000.0).contains(&axis.at(start)) && (0.0..=1000.0).contains(&axis.at(start + span)));
        }
    }

    #[test]
    fn greatest_possible_span_has_an_axis() {
        let axis = Axis::new((i64::MIN, i64::MAX), 1000.0);
        let ticks = axis.ticks(&TimeFormat::default(), 100.0);
        assert!((5..=11).contains(&ticks.len()), "{}", ticks.len());
    }
}
