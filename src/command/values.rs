//! Durations and shares on the command line.

use std::time::Duration;

use jiff::SignedDuration;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    duration.ok_or_else(|| "write it like 30s, 2m or 500ms".to_owned())
}

/// A share above 0: 0.5 or 50%.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(number).map(|percent| percent / 100.0);
    let share = percent.or_else(|| number(text)).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "it must be above 0 and at most 1, or 100%".to_owned())
}

pub(super) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_no_sign() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!((duration("0s"), duration("1m 5s")), (Ok(Duration::ZERO), Ok(Duration::from_secs(65))));
        for text in ["", "30", "-1s", "soon"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_above_0_and_at_most_1() {
        assert_eq!((share("50%"), share("0.5")), (Ok(0.5), Ok(0.5)));
        assert!(["0", "1.1", "nan", "101%"].iter().all(|text| share(text).is_err()));
    }
}
