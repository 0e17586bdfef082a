//! Times on the command line of `sizeleak archive`.

use std::time::Duration;

use jiff::SignedDuration;

/// More often than this would be waiting by looking.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// A duration that is not negative.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    duration.ok_or_else(|| "write it like 30s or 2m".to_owned())
}

/// A duration between two looks at the same thing.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < MIN_INTERVAL { Err("it must be 100ms or more".to_owned()) } else { Ok(interval) }
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
        assert!(interval("0s").is_err() && interval("100ms").is_ok());
    }
}
