//! The distribution of the difference between the number of replies and the expected number.

/// The weight of the wider distribution, for differences that were never seen.
const WIDE_SHARE: f64 = 0.01;

/// The smallest means of the wider distribution, in replies.
const MIN_WIDE_MEAN: f64 = 1.5;

/// Surplus minus missing replies, a mixture of two skewed Laplace distributions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyDeviation {
    usual: SkewedLaplace,
    wide: SkewedLaplace,
}

impl ReplyDeviation {
    /// From the mean numbers of missing and of surplus replies.
    pub(crate) fn new(missing: f64, surplus: f64) -> Self {
        let wide = SkewedLaplace::new(missing.max(MIN_WIDE_MEAN), surplus.max(MIN_WIDE_MEAN));
        Self { usual: SkewedLaplace::new(missing, surplus), wide }
    }

    /// A probability by both.
    pub(crate) fn mixed(&self, probability: impl Fn(&SkewedLaplace) -> f64) -> f64 {
        (1.0 - WIDE_SHARE) * probability(&self.usual) + WIDE_SHARE * probability(&self.wide)
    }
}

/// The difference of two independent geometric variables: the skewed discrete Laplace distribution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SkewedLaplace {
    /// P(value − 1) / P(value) below 0.
    down: f64,
    /// P(value + 1) / P(value) above 0.
    up: f64,
}

impl SkewedLaplace {
    fn new(mean_down: f64, mean_up: f64) -> Self {
        Self { down: mean_down / (1.0 + mean_down), up: mean_up / (1.0 + mean_up) }
    }

    pub(crate) fn exactly(&self, value: i64) -> f64 {
        let peak = (1.0 - self.down) * (1.0 - self.up) / self.overlap();
        let step = if value < 0 { self.down } else { self.up };
        peak * step.powf(value.unsigned_abs() as f64)
    }

    pub(crate) fn at_most(&self, value: i64) -> f64 {
        if value > 0 {
            return 1.0 - self.at_least(value.saturating_add(1));
        }
        (1.0 - self.up) / self.overlap() * self.down.powf(value.unsigned_abs() as f64)
    }

    pub(crate) fn at_least(&self, value: i64) -> f64 {
        Self { down: self.up, up: self.down }.at_most(value.saturating_neg())
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
        fn cumulative_probabilities_are_sums(missing in 0.0f64..4.0, surplus in 0.0f64..4.0, at in -20i64..20) {
            let deviation = ReplyDeviation::new(missing, surplus);
            let exactly = |value: i64| deviation.mixed(|part| part.exactly(value));
            let below: f64 = (-400..=at).map(exactly).sum();
            let above: f64 = (at..=400).map(exactly).sum();
            prop_assert!((below - deviation.mixed(|part| part.at_most(at))).abs() < 1e-9);
            prop_assert!((above - deviation.mixed(|part| part.at_least(at))).abs() < 1e-9);
            prop_assert!((below + above - exactly(at) - 1.0).abs() < 1e-9);
        }
    }
}
