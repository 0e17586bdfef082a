//! The axis of sizes: the position of a size, and round ticks.

/// An axis over a height in pixels, from the bottom up.
pub(super) struct SizeAxis {
    first: f64,
    last: f64,
    step: f64,
    pixels: f64,
}

impl SizeAxis {
    /// An axis from the least to the greatest size, widened to ticks that are at least `min_distance` pixels apart.
    pub(super) fn new((least, most): (u64, u64), pixels: f64, min_distance: f64) -> Self {
        let intervals = (pixels / min_distance).floor().max(1.0);
        let (least, most) = (least as f64, most as f64);
        // Widening to ticks takes up to one more interval.
        let mut step = round_step((most - least) / intervals);
        while ((most / step).ceil() - (least / step).floor()).max(1.0) > intervals.max(2.0) {
            step = round_step(step * 1.5);
        }
        let bottom = (least / step).floor() * step;
        let top = ((most / step).ceil() * step).max(bottom + step);
        Self { first: bottom, last: top, step, pixels }
    }

    /// The position of a size, in pixels from the bottom.
    pub(super) fn at(&self, size: f64) -> f64 {
        (size - self.first) / (self.last - self.first) * self.pixels
    }

    /// The ticks.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let count = ((self.last - self.first) / self.step).round() as u32;
        (0..=count).map(|at| self.first + f64::from(at) * self.step).collect()
    }
}

/// The least of 1, 2, 5, 10, 20 and so on that is not less.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least);
    step.unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(SizeAxis::new((123, 374), 120.0, 30.0).ticks(), [100.0, 200.0, 300.0, 400.0]);
        assert_eq!(SizeAxis::new((99, 99), 120.0, 30.0).ticks(), [99.0, 100.0]);
        assert_eq!(SizeAxis::new((0, 16_384), 120.0, 30.0).ticks(), [0.0, 5000.0, 10_000.0, 15_000.0, 20_000.0]);
    }

    proptest! {
        #[test]
        fn every_size_is_on_the_axis(one: u64, other: u64, pixels in 20.0..2000.0_f64) {
            let axis = SizeAxis::new((one.min(other), one.max(other)), pixels, 24.0);
            for size in [one, other] {
                prop_assert!((-0.01..=pixels + 0.01).contains(&axis.at(size as f64)), "{}", axis.at(size as f64));
            }
            prop_assert!((2..=(pixels / 24.0) as usize + 3).contains(&axis.ticks().len()));
        }
    }
}
