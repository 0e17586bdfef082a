//! Times as text: RFC 3339, written to the microsecond.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time in nanoseconds since 1970 by the clock of a zone, with its offset from UTC:
/// `2026-01-06T09:00:07.000000+01:00`. In UTC the offset is `Z`.
pub fn rfc_3339(time_ns: i64, zone: &TimeZone) -> String {
    // Without the offset, one hour in autumn is ambiguous.
    let format = if *zone == TimeZone::UTC { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%S.%6f%:z" };
    match Timestamp::from_nanosecond(time_ns.into()) {
        Ok(time) => Zoned::new(time, zone.clone()).strftime(format).to_string(),
        Err(_) => format!("{time_ns} ns"),
    }
}

/// A time in nanoseconds since 1970 in UTC: `2026-01-06T08:00:07.000000Z`.
pub fn utc(time_ns: i64) -> String {
    rfc_3339(time_ns, &TimeZone::UTC)
}

/// Reads a time of RFC 3339 with its offset, or a date, which is its first moment in UTC; in nanoseconds since 1970.
/// `None` if it is neither.
pub fn parse_time(text: &str) -> Option<i64> {
    let of_date = |date: Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let time = match Date::strptime("%Y-%m-%d", text) {
        Ok(date) => of_date(date)?,
        Err(_) => text.parse::<Timestamp>().ok()?,
    };
    i64::try_from(time.as_nanosecond()).ok()
}

/// A range of time; a bound of `None` is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first moment, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// The first moment behind it, in nanoseconds since 1970.
    pub until_ns: Option<i64>,
}

impl TimeRange {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    pub fn contains(&self, time_ns: i64) -> bool {
        self.since_ns.is_none_or(|since| time_ns >= since) && self.until_ns.is_none_or(|until| time_ns < until)
    }
}

/// As in "40 labels are *from 2026-01-06T00:00:00.000000Z until 2026-01-07T00:00:00.000000Z*".
impl fmt::Display for TimeRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.since_ns.map(utc), self.until_ns.map(utc)) {
            (Some(since), Some(until)) => write!(formatter, "from {since} until {until}"),
            (Some(since), None) => write!(formatter, "from {since} on"),
            (None, Some(until)) => write!(formatter, "before {until}"),
            (None, None) => formatter.write_str("of any time"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_written_in_utc() {
        assert_eq!(utc(1_767_600_000_012_345_678), "2026-01-05T08:00:00.012345Z");
        assert_eq!(utc(-1_000), "1969-12-31T23:59:59.999999Z");
        assert_eq!(utc(i64::MAX), "2262-04-11T23:47:16.854775Z");
        assert_eq!(utc(i64::MIN), "1677-09-21T00:12:43.145224Z");
    }

    #[test]
    fn times_with_an_offset_and_dates_are_read() {
        let eight = Some(1_767_600_000_000_000_000);
        for text in ["2026-01-05T08:00:00Z", "2026-01-05T09:00:00.0+01:00", "2026-01-05 08:00Z"] {
            assert_eq!(parse_time(text), eight, "{text}");
        }
        assert_eq!(parse_time("2026-01-05"), eight.map(|eight| eight - 8 * 3_600_000_000_000));
        assert_eq!(parse_time(&utc(1_767_600_000_012_345_000)), Some(1_767_600_000_012_345_000));
        for text in ["", "2026-01-05T08:00:00", "2026-02-30", "2026-01", "1767600000", "9999-01-01", "today"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn a_range_has_its_first_moment_and_not_its_last() {
        let range = |since_ns, until_ns| TimeRange { since_ns, until_ns };
        let day = range(Some(10), Some(20));
        assert_eq!([9, 10, 19, 20].map(|time| day.contains(time)), [false, true, true, false]);
        assert_eq!([9, 10, 20].map(|time| range(Some(10), None).contains(time)), [false, true, true]);
        assert_eq!([9, 19, 20].map(|time| range(None, Some(20)).contains(time)), [true, true, false]);
        assert!(range(None, None).contains(i64::MIN) && range(None, None).is_everything() && !day.is_everything());
        assert_eq!(range(Some(0), None).to_string(), "from 1970-01-01T00:00:00.000000Z on");
        assert_eq!(range(None, Some(0)).to_string(), "before 1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn repeated_hour_has_different_offsets() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let before = 1_792_888_200_000_000_000;
        assert_eq!(rfc_3339(before, &zone), "2026-10-25T02:30:00.000000+02:00");
        assert_eq!(rfc_3339(before + 3_600_000_000_000, &zone), "2026-10-25T02:30:00.000000+01:00");
    }
}
