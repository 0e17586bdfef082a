//! Days as people live them: by the clock of their home, from four in the morning, when most sleep, to the next.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

const HOUR: i64 = 3_600;
pub(crate) const DAY_SECONDS: f64 = 86_400.0;

const FIRST_HOUR: i64 = 4;
const EPOCH: Date = jiff::civil::date(1970, 1, 1);

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LocalTime {
    /// The number of the day, from an arbitrary one.
    pub(crate) day: i64,
    /// Seconds since midnight by the clock, from 0 to 86,400.
    pub(crate) second: f64,
}

impl LocalTime {
    /// The interval of ten minutes that it is in, from midnight.
    pub(crate) fn bin(self) -> usize {
        bin_of(self.second)
    }

    /// How many such intervals the day still has with this one, by the clock.
    pub(crate) fn bins_left(self) -> i64 {
        let first = bin_of((FIRST_HOUR * HOUR) as f64);
        (BINS - (self.bin() + BINS - first) % BINS).cast_signed() as i64
    }
}

/// The intervals of ten minutes of a day.
pub(crate) const BINS: usize = 144;
pub(crate) const BIN_SECONDS: f64 = DAY_SECONDS / BINS as f64;

/// The interval of ten minutes of a second of a day, also of the day before or after.
pub(crate) fn bin_of(second: f64) -> usize {
    ((second.rem_euclid(DAY_SECONDS) / BIN_SECONDS) as usize).min(BINS - 1)
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Calendar {
    zone: TimeZone,
}

impl Calendar {
    pub(crate) fn new(zone: TimeZone) -> Self {
        Self { zone }
    }

    /// What the clock shows. Times beyond what clocks show are those of the epoch.
    pub(crate) fn local(&self, time_ns: i64) -> LocalTime {
        let time = Timestamp::from_nanosecond(i128::from(time_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
        let local = self.zone.to_datetime(time);
        let clock = local.time();
        let seconds = i64::from(clock.hour()) * HOUR + i64::from(clock.minute()) * 60 + i64::from(clock.second());
        let second = seconds as f64 + f64::from(clock.subsec_nanosecond()) / 1e9;
        let date = local.date().duration_since(EPOCH).as_hours() / 24;
        let day = date - i64::from(seconds < FIRST_HOUR * HOUR);
        LocalTime { day, second }
    }

    /// Whether a day is a Saturday or Sunday, which have habits of their own.
    pub(crate) fn is_weekend(day: i64) -> bool {
        // The first of January 1970 was a Thursday.
        (day + 3).rem_euclid(7) >= 5
    }

    /// The weekday by the calendar, from Monday, and the hour of a time: hours before four are of the date after their day.
    pub(crate) fn hour_of_week(time: LocalTime) -> (usize, usize) {
        let hour = (time.second / HOUR as f64) as usize % 24;
        let date = time.day + i64::from(time.second < (FIRST_HOUR * HOUR) as f64);
        ((date + 3).rem_euclid(7) as usize, hour)
    }

    /// When a second of a day is by the clock, in nanoseconds since the epoch; seconds before four are of the next date.
    pub(crate) fn time_ns(&self, day: i64, second: f64) -> i64 {
        let next = i64::from(second < (FIRST_HOUR * HOUR) as f64);
        let date = EPOCH.saturating_add((day + next).days());
        let whole = second.clamp(0.0, DAY_SECONDS - 1.0);
        let local = date.at(0, 0, 0, 0).saturating_add((whole as i64).seconds());
        let time = self.zone.to_ambiguous_zoned(local).compatible().map(|time| time.timestamp().as_nanosecond());
        time.ok().and_then(|time| i64::try_from(time).ok()).unwrap_or(i64::MAX)
    }
}

/// `07:15` of a second of a day.
pub(crate) fn clock(second: f64) -> String {
    let minutes = (second.rem_euclid(DAY_SECONDS) / 60.0) as u32;
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

/// The seconds between two times of a day, whichever comes first; at most half a day. Both are from 0 to 86,400.
pub(crate) fn apart(one: f64, other: f64) -> f64 {
    let apart = (one - other).abs();
    apart.min(DAY_SECONDS - apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_at_four_by_the_clock_of_the_home_also_when_clocks_change() {
        let calendar = Calendar::new(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        let time = |text: &str| text.parse::<Timestamp>().unwrap().as_nanosecond() as i64;
        let winter = calendar.local(time("2026-03-28T06:30:00Z"));
        let summer = calendar.local(time("2026-03-29T05:30:00Z"));
        assert_eq!((winter.second, summer.second), (27_000.0, 27_000.0));
        assert_eq!(summer.day, winter.day + 1);
        assert!(Calendar::is_weekend(winter.day) && Calendar::is_weekend(summer.day));
        let night = calendar.local(time("2026-03-29T01:59:00Z"));
        assert_eq!((night.day, night.bin()), (winter.day, 23));
        assert!(!Calendar::is_weekend(summer.day + 1));
        for text in ["2026-03-28T06:30:00Z", "2026-03-30T00:30:00Z", "2026-03-29T05:30:00Z"] {
            let local = calendar.local(time(text));
            assert_eq!(calendar.time_ns(local.day, local.second), time(text), "{text}");
        }
        assert_eq!(calendar.time_ns(summer.day, 14_400.0), time("2026-03-29T02:00:00Z"));
    }

    #[test]
    fn times_of_day_meet_at_midnight() {
        assert_eq!((apart(60.0, DAY_SECONDS - 60.0), apart(0.0, DAY_SECONDS / 2.0)), (120.0, DAY_SECONDS / 2.0));
        assert_eq!((clock(26_100.0), clock(-60.0)), ("07:15".into(), "23:59".into()));
    }
}
