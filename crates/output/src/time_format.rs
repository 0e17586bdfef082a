//! Times as text.

use clap::ValueEnum;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

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
    ///
    /// # Errors
    /// If the time zone of `TZ` or the system is unknown.
    pub fn new(clock: Clock) -> Result<Self, jiff::Error> {
        let zone = match clock {
            Clock::Utc => TimeZone::UTC,
            Clock::Local => TimeZone::try_system()?,
        };
        Ok(Self { clock, zone })
    }

    /// The moment at which this clock shows a time.
    ///
    /// # Errors
    /// If the time is out of range.
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

    /// The width of a column of times, in characters.
    pub fn width(&self) -> usize {
        match self.clock {
            Clock::Utc => 26,
            Clock::Local => 32,
        }
    }

    /// A time to the microsecond; a number if it is out of range.
    pub fn format(&self, time_ns: i64) -> String {
        let format = match self.clock {
            Clock::Utc => "%Y-%m-%d %H:%M:%S.%6f",
            // Without the offset, one hour in autumn is ambiguous.
            Clock::Local => "%Y-%m-%d %H:%M:%S.%6f%:z",
        };
        self.strftime(time_ns, format)
    }

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
        assert_eq!(times.format(1_767_600_000_012_345_678), "2026-01-05 08:00:00.012345");
        assert_eq!(times.format(-1_000), "1969-12-31 23:59:59.999999");
        assert_eq!(times.format(i64::MAX), "2262-04-11 23:47:16.854775");
    }

    #[test]
    fn repeated_hour_has_different_offsets() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let times = TimeFormat { clock: Clock::Local, zone };
        let before = 1_792_888_200_000_000_000;
        assert_eq!(times.format(before), "2026-10-25 02:30:00.000000+02:00");
        assert_eq!(times.format(before + 3_600_000_000_000), "2026-10-25 02:30:00.000000+01:00");
        assert_eq!(times.format(before).len(), times.width());
    }
}
