//! The axes of a quantity and of time: the position of a value, and round ticks.

use crate::TimeFormat;

#[derive(Debug)]
pub(super) struct Scale {
    first: f64,
    last: f64,
    pixels: f64,
    ticks: Vec<f64>,
    is_logarithmic: bool,
}

/// The ticks within a decade, from many to few.
const OF_DECADES: [&[f64]; 3] = [&[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]];

impl Scale {
    pub(super) fn hours(pixels: f64) -> Self {
        let ticks = [0.0, 6.0, 12.0, 18.0, 24.0].to_vec();
        Self { first: 0.0, last: 24.0, pixels, ticks, is_logarithmic: false }
    }

    /// An axis from the least to the greatest value, widened to ticks that are at least `min_distance` pixels and
    /// `min_step` apart.
    pub(super) fn linear((least, most): (f64, f64), min_step: f64, pixels: f64, min_distance: f64) -> Self {
        let intervals = (pixels / min_distance).floor().max(1.0);
        // Widening to ticks takes up to one more interval.
        let mut step = round_step(((most - least) / intervals).max(min_step));
        while ((most / step).ceil() - (least / step).floor()).max(1.0) > intervals.max(2.0) {
            step = round_step(step * 1.5);
        }
        let start = (least / step).floor() * step;
        let end = ((most / step).ceil() * step).max(start + step);
        let count = ((end - start) / step).round() as u32;
        let ticks = (0..=count).map(|at| exact(start + f64::from(at) * step)).collect();
        Self { first: start, last: end, pixels, ticks, is_logarithmic: false }
    }

    /// A logarithmic axis from the least to the greatest of these values above 0, widened by a twentieth; its ticks are
    /// at least `min_distance` pixels apart.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>, pixels: f64, min_distance: f64) -> Self {
        let values = values.filter(|value| *value > 0.0 && value.is_finite());
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
        let (least, most) = if least <= most { (least.log10(), most.log10()) } else { (0.0, 1.0) };
        // One value is in the middle of a decade.
        let margin = if most - least < 0.1 { 0.5 } else { (most - least) / 20.0 };
        let (start, end) = (least - margin, most + margin);
        let decade = pixels / (end - start);
        let fits = |digits: &&&[f64]| {
            let next = digits.iter().skip(1).chain(&[10.0]);
            digits.iter().zip(next).all(|(digit, next)| (next / digit).log10() * decade >= min_distance)
        };
        let digits = OF_DECADES.iter().find(fits).copied().unwrap_or(&[1.0]);
        let every = (min_distance / decade).ceil().max(1.0) as i32;
        let decades = start.floor() as i32..=end.ceil() as i32;
        let decades = decades.filter(|decade| decade.rem_euclid(every) == 0).map(|decade| 10_f64.powi(decade));
        let ticks = decades.flat_map(|decade| digits.iter().map(move |digit| exact(digit * decade)));
        let ticks = ticks.filter(|tick| (start..=end).contains(&tick.log10())).collect();
        Self { first: start, last: end, pixels, ticks, is_logarithmic: true }
    }

    /// The position of a value, in pixels from the beginning.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.is_logarithmic { value.log10().max(self.first) } else { value };
        (value - self.first) / (self.last - self.first) * self.pixels
    }

    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

/// The least of 1, 2, 5, 10, 20 and so on, and 0.5, 0.2, 0.1 below them, that is not less.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| exact(factor * power)).find(|step| *step >= least);
    step.unwrap_or(power * 10.0)
}

/// Without what computing with binary fractions adds: as its first twelve digits say.
fn exact(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

const SECOND: i128 = 1_000_000_000;
const MINUTE: i128 = 60 * SECOND;
const HOUR: i128 = 60 * MINUTE;
const DAY: i128 = 24 * HOUR;

/// Steps between ticks from one second to a year; shorter and longer steps are computed.
const STEPS: [(i128, &[i128]); 4] = [
    (SECOND, &[1, 2, 5, 10, 30]),
    (MINUTE, &[1, 2, 5, 10, 30]),
    (HOUR, &[1, 2, 3, 6, 12]),
    (DAY, &[1, 2, 7, 30, 90, 180, 365]),
];

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
    pub(super) fn new(span: (i64, i64), pixels: f64) -> Self {
        let (first, last) = (i128::from(span.0), i128::from(span.1));
        let margin = ((last - first) / 50).max(SECOND / 100);
        Self { first: first - margin, last: last + margin, pixels }
    }

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
        let above = STEPS.iter().flat_map(|(unit, steps)| steps.iter().map(move |step| unit * step));
        let step = below.into_iter().chain(above).find(|step| *step as f64 >= least);
        step.unwrap_or_else(|| (least / (365 * DAY) as f64).ceil() as i128 * 365 * DAY)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round() {
        let of_sizes = |least, most| Scale::linear((least, most), 1.0, 120.0, 30.0).ticks;
        assert_eq!(of_sizes(123.0, 374.0), [100.0, 200.0, 300.0, 400.0]);
        assert_eq!(of_sizes(99.0, 99.0), [99.0, 100.0]);
        assert_eq!(of_sizes(0.0, 16_384.0), [0.0, 5000.0, 10_000.0, 15_000.0, 20_000.0]);
        assert_eq!(Scale::linear((0.0, 1.0), 0.01, 300.0, 50.0).ticks, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    }

    #[test]
    fn ticks_of_a_logarithm_are_round_and_as_many_as_fit() {
        let ticks = |least, most, pixels| Scale::logarithmic([0.0, least, most].into_iter(), pixels, 40.0).ticks;
        assert_eq!(ticks(7.0, 128.0, 300.0), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks(0.3, 400.0, 300.0), [0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0]);
        assert_eq!(ticks(1.0, 1e12, 200.0), [1.0, 1000.0, 1e6, 1e9, 1e12]);
        assert_eq!(ticks(50.0, 50.0, 100.0), [30.0, 100.0]);
        assert_eq!(Scale::logarithmic(std::iter::empty(), 100.0, 40.0).ticks, [1.0, 3.0, 10.0]);
    }

    proptest! {
        #[test]
        fn every_value_is_on_the_axis(one: u64, other: u64, pixels in 20.0..2000.0_f64) {
            let (least, most) = (one.min(other) as f64, one.max(other) as f64);
            let linear = Scale::linear((least, most), 1.0, pixels, 24.0);
            let logarithmic = Scale::logarithmic([least, most].into_iter(), pixels, 24.0);
            for (scale, value) in [&linear, &logarithmic].into_iter().flat_map(|scale| [(scale, least), (scale, most)]) {
                prop_assert!((-0.01..=pixels + 0.01).contains(&scale.at(value)), "{}", scale.at(value));
            }
            prop_assert!((2..=(pixels / 24.0) as usize + 3).contains(&linear.ticks().len()));
        }
    }

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
