//! Figures as people read them.

use sizeleak_evaluation::statistics::Interval;

/// A missing value.
pub(super) const NONE: &str = "–";

/// A share in percent. Only 1 is shown as 100 %.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let shown = if share < 1.0 { percent.min(99.9) } else { percent };
    format!("{shown:.1} %")
}

/// A share in percent with its interval in whole percents, which is not cut.
pub(super) fn percent_within(share: f64, Interval { low, high }: Interval) -> String {
    format!("{} ({:.0}–{:.0})", percent(share), (100.0 * low).floor(), (100.0 * high).ceil())
}

/// A part of a whole in percent, with its interval.
pub(super) fn percent_of_within(part: u64, whole: u64, interval: Interval) -> String {
    if whole == 0 { NONE.to_owned() } else { percent_within(part as f64 / whole as f64, interval) }
}

/// A share in percent with its interval, if there is one.
pub(super) fn optional_percent_within(share: Option<f64>, interval: Interval) -> String {
    share.map_or_else(|| NONE.to_owned(), |share| percent_within(share, interval))
}

/// A figure with this many decimals, if there is one.
pub(super) fn optional_decimals(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| NONE.to_owned(), |figure| format!("{figure:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_all_is_never_100_percent() {
        assert_eq!([1.0, 0.9999, 0.9123, 0.0].map(percent), ["100.0 %", "99.9 %", "91.2 %", "0.0 %"]);
        let interval = Interval { low: 0.0615, high: 0.7923 };
        assert_eq!(percent_of_within(1, 3, interval), "33.3 % (6–80)");
        assert_eq!(
            (percent_of_within(0, 0, interval), optional_percent_within(None, interval)),
            (NONE.into(), NONE.into())
        );
    }
}
