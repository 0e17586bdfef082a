//! Times as people read them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A time in UTC, to the microsecond; what no calendar holds stays a number.
pub fn utc(time_ns: i64) -> String {
    let zoned = Timestamp::from_nanosecond(time_ns.into()).map(|time| time.to_zoned(TimeZone::UTC));
    match zoned {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string(),
        Err(_) => format!("{time_ns} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        assert_eq!(utc(1_767_600_000_012_345_678), "2026-01-05 08:00:00.012345");
        assert_eq!(utc(-1_000), "1969-12-31 23:59:59.999999");
        assert_eq!(utc(i64::MAX), "2262-04-11 23:47:16.854775");
    }
}
