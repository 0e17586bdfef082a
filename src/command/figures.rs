//! Figures as people read them.

use sizeleak_evaluation::statistics::Interval;
pub(super) use sizeleak_evaluation::statistics::percent_within;
pub(super) use sizeleak_text::percent;

/// A missing value.
pub(super) const NONE: &str = "–";

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
    fn intervals_are_not_cut() {
        let interval = Interval { low: 0.0615, high: 0.7923 };
        assert_eq!(percent_of_within(1, 3, interval), "33.3 % (6–80)");
        assert_eq!(
            (percent_of_within(0, 0, interval), optional_percent_within(None, interval)),
            (NONE.into(), NONE.into())
        );
    }
}
