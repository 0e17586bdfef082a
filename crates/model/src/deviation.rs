//! How far a number of replies is from the expected one: a distribution over the whole numbers.

/// The share of the distribution that stands for what was never seen.
const UNSEEN: f64 = 0.01;

/// The means of that share's missing and surplus replies.
const UNSEEN_MEAN: f64 = 1.5;

/// Surplus minus missing replies, both geometric with given means, mixed with a wider distribution of the same form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviation {
    seen: Difference,
    unseen: Difference,
}

impl Deviation {
    /// From the mean numbers of missing and of surplus replies.
    pub(crate) fn new(missing: f64, surplus: f64) -> Self {
        let unseen = Difference::new(missing.max(UNSEEN_MEAN), surplus.max(UNSEEN_MEAN));
        Self { seen: Difference::new(missing, surplus), unseen }
    }

    /// P(deviation).
    pub(crate) fn exactly(&self, deviation: i64) -> f64 {
        mixed(self.seen.exactly(deviation), self.unseen.exactly(deviation))
    }

    /// P(this deviation or a lower one).
    pub(crate) fn at_most(&self, deviation: i64) -> f64 {
        mixed(self.seen.at_most(deviation), self.unseen.at_most(deviation))
    }

    /// P(this deviation or a higher one).
    pub(crate) fn at_least(&self, deviation: i64) -> f64 {
        mixed(self.seen.at_least(deviation), self.unseen.at_least(deviation))
    }
}

fn mixed(seen: f64, unseen: f64) -> f64 {
    (1.0 - UNSEEN) * seen + UNSEEN * unseen
}

/// The difference of two independent geometric numbers (a skewed discrete Laplace distribution).
#[derive(Debug, Clone, Copy)]
struct Difference {
    /// P(one step further down) / P(here), below 0.
    down: f64,
    /// P(one step further up) / P(here), above 0.
    up: f64,
}

impl Difference {
    fn new(mean_down: f64, mean_up: f64) -> Self {
        Self { down: mean_down / (1.0 + mean_down), up: mean_up / (1.0 + mean_up) }
    }

    fn exactly(&self, value: i64) -> f64 {
        let peak = (1.0 - self.down) * (1.0 - self.up) / self.overlap();
        let step = if value < 0 { self.down } else { self.up };
        peak * step.powf(value.unsigned_abs() as f64)
    }

    fn at_most(&self, value: i64) -> f64 {
        if value > 0 {
            return 1.0 - self.at_least(value.saturating_add(1));
        }
        (1.0 - self.up) / self.overlap() * self.down.powf(value.unsigned_abs() as f64)
    }

    fn at_least(&self, value: i64) -> f64 {
        if value < 0 {
            return 1.0 - self.at_most(value.saturating_sub(1));
        }
        (1.0 - self.down) / self.overlap() * self.up.powf(value.unsigned_abs() as f64)
    }

    fn overlap(&self) -> f64 {
        1.0 - self.down * self.up
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_what_they_sum(missing in 0.0f64..4.0, surplus in 0.0f64..4.0, at in -20i64..20) {
            let deviation = Deviation::new(missing, surplus);
            let below: f64 = (-400..=at).map(|value| deviation.exactly(value)).sum();
            let above: f64 = (at..=400).map(|value| deviation.exactly(value)).sum();
            prop_assert!((below - deviation.at_most(at)).abs() < 1e-9);
            prop_assert!((above - deviation.at_least(at)).abs() < 1e-9);
            prop_assert!((below + above - deviation.exactly(at) - 1.0).abs() < 1e-9);
        }
    }
}
