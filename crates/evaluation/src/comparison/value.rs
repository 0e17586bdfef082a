//! The value of a figure and its difference to the first pipeline.

use serde::Serialize;

use crate::statistics::Interval;

/// The value of a figure.
#[derive(Debug, Serialize)]
pub struct FigureValue {
    pub(super) figure: &'static str,
    /// `None` if the pipeline does not have the figure.
    pub value: Option<f64>,
    /// The interval of the value.
    #[serde(flatten, serialize_with = "interval_ends")]
    pub interval: Option<Interval>,
    /// `None` in the first pipeline, and if one of the two does not have the figure.
    pub difference: Option<FigureDifference>,
}

/// The difference of a figure to the first pipeline.
#[derive(Debug, Serialize)]
pub struct FigureDifference {
    /// The figure less that of the first pipeline.
    pub value: f64,
    /// The interval of the difference.
    #[serde(flatten, serialize_with = "interval_ends")]
    pub interval: Option<Interval>,
    /// Only for shares and counts.
    pub p_value: Option<f64>,
    /// Whether 0 is outside the interval.
    pub excludes_zero: bool,
}

/// Writes both ends of an interval, or null.
#[expect(clippy::ref_option, reason = "serde's signature")]
fn interval_ends<S: serde::Serializer>(interval: &Option<Interval>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct IntervalEnds {
        low: Option<f64>,
        high: Option<f64>,
    }
    let [low, high] = [interval.map(|it| it.low), interval.map(|it| it.high)];
    IntervalEnds { low, high }.serialize(serializer)
}

impl FigureDifference {
    pub(super) fn new(value: f64, interval: Option<Interval>, p_value: Option<f64>) -> Self {
        Self { value, interval, p_value, excludes_zero: interval.is_some_and(Interval::excludes_zero) }
    }
}
