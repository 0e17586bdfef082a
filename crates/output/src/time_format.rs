//! Times as text.

use clap::ValueEnum;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sizeleak_text::rfc_3339;

/// The clock that times are shown in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    /// Coordinated universal time
    #[default]
    Utc,
    /// The time zone of this system or of TZ; each time comes with its offset from UTC
    Local,
}

/// Formats times.
#[derive(Debug, Clone)]
pub struct TimeFormat {
    clock: Clock,
    zone: TimeZone,
}

impl Default for TimeFormat {
    fn default() -> Self {
        Self { clock: Clock::Utc, zone: TimeZone::UTC }
    }
}

impl TimeFormat {
    /// Times in this clock.
    pub fn new(clock: Clock) -> Result<Self, jiff::Error> {
        let zone = match clock {
            Clock::Utc => TimeZone::UTC,
            Clock::Local => TimeZone::try_system()?,
        };
        Ok(Self { clock, zone })
    }

    /// The moment at which this clock shows a time.
    pub fn timestamp(&self, time: DateTime) -> Result<Timestamp, jiff::Error> {
        time.to_zoned(self.zone.clone()).map(|zoned| zoned.timestamp())
    }

    /// The heading of a column of times.
    pub fn heading(&self) -> &'static str {
        match self.clock {
            Clock::Utc => "time (UTC)",
            Clock::Local => "time (local)",
        }
    }

    /// A time to the microsecond in RFC 3339; a number if it is out of range.
    pub fn format(&self, time_ns: i64) -> String {
        rfc_3339(time_ns, &self.zone)
    }

    /// The characters of what [`Self::format`] writes.
    pub fn width(&self) -> usize {
        self.format(0).len()
    }

    /// The day of a time; by a local clock with its offset from UTC, without which one hour in autumn is ambiguous.
    pub fn date(&self, time_ns: i64) -> String {
        let format = match self.clock {
            Clock::Utc => "%Y-%m-%d",
            Clock::Local => "%Y-%m-%d UTC%:z",
        };
        self.strftime(time_ns, format)
    }

    /// The time of day to the millisecond, as long as [`Self::TIME_OF_DAY_WIDTH`].
    pub fn time_of_day(&self, time_ns: i64) -> String {
        self.strftime(time_ns, "%H:%M:%S.%3f")
    }

    /// The characters of a time of day.
    pub const TIME_OF_DAY_WIDTH: usize = 12;

    /// A time in a format of `strftime`.
    pub fn strftime(&self, time_ns: i64, format: &str) -> String {
        match Timestamp::from_nanosecond(time_ns.into()) {
            Ok(time) => time.to_zoned(self.zone.clone()).strftime(format).to_string(),
            Err(_) => format!("{time_ns} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_times_are_utc() {
        let times = TimeFormat::default();
        let time_ns = 1_767_600_000_012_345_678;
        assert_eq!(times.format(time_ns), "2026-01-05T08:00:00.012345Z");
        assert_eq!((times.date(time_ns).as_str(), times.time_of_day(time_ns).as_str()), ("2026-01-05", "08:00:00.012"));
        assert_eq!(times.time_of_day(i64::MIN).len(), TimeFormat::TIME_OF_DAY_WIDTH);
    }

    #[test]
    fn repeated_hour_has_different_offsets() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let times = TimeFormat { clock: Clock::Local, zone };
        let before = 1_792_888_200_000_000_000;
        let shown = |time_ns| (times.date(time_ns), times.time_of_day(time_ns));
        assert_eq!(shown(before), ("2026-10-25 UTC+02:00".into(), "02:30:00.000".into()));
        assert_eq!(shown(before + 3_600_000_000_000), ("2026-10-25 UTC+01:00".into(), "02:30:00.000".into()));
        assert_eq!(times.format(before), "2026-10-25T02:30:00.000000+02:00");
    }
}
