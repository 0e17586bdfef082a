//! Which commands and deviations are drawn: by time, gateway and flow.

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::TimeFormat;

/// A time that a user gives, with or without an offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    /// With an offset.
    Exact(Timestamp),
    /// By a wall clock.
    Wall(DateTime),
}

impl std::str::FromStr for TimePoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let exact = text.parse().map(Self::Exact);
        let time = exact.or_else(|_| text.parse().map(Self::Wall));
        time.map_err(|_| "write it like 2026-01-06, 2026-01-06T08:30 or 2026-01-06T08:30:00Z")
    }
}

impl TimePoint {
    /// In nanoseconds since 1970, by the clock of `times`; `None` before 1677 and after 2262.
    pub fn nanoseconds(self, times: &TimeFormat) -> Option<i64> {
        let time = match self {
            Self::Exact(time) => time,
            Self::Wall(time) => times.timestamp(time).ok()?,
        };
        i64::try_from(time.as_nanosecond()).ok()
    }
}

/// Decides which commands and deviations are drawn; by default all.
#[derive(Debug, Default)]
pub struct CommandFilter {
    /// Only commands from this time on.
    pub from_ns: Option<i64>,
    /// Only commands before this time.
    pub until_ns: Option<i64>,
    /// Only commands to these gateways; all if empty.
    pub gateways: Vec<IpAddr>,
    /// Only commands in these flows; all if empty.
    pub flows: Vec<u64>,
}

impl CommandFilter {
    /// Whether what happened at a time in some of these flows is drawn. Where the gateway is unknown it is drawn only if no
    /// gateways are given.
    pub(super) fn accepts(&self, time_ns: i64, gateway: Option<IpAddr>, flows: impl IntoIterator<Item = u64>) -> bool {
        self.from_ns.is_none_or(|from| time_ns >= from)
            && self.until_ns.is_none_or(|until| time_ns < until)
            && (self.gateways.is_empty() || gateway.is_some_and(|gateway| self.gateways.contains(&gateway)))
            && (self.flows.is_empty() || flows.into_iter().any(|flow| self.flows.contains(&flow)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_points_are_exact_or_by_the_clock() {
        let nanoseconds = |text: &str| text.parse::<TimePoint>().map(|time| time.nanoseconds(&TimeFormat::default()));
        assert_eq!(nanoseconds("1970-01-02"), Ok(Some(86_400_000_000_000)));
        assert_eq!(nanoseconds("1970-01-01T00:01"), Ok(Some(60_000_000_000)));
        assert_eq!(nanoseconds("1970-01-01T02:00:00.5+02:00"), Ok(Some(500_000_000)));
        assert_eq!(nanoseconds("9999-01-01"), Ok(None));
        assert!(nanoseconds("tomorrow").is_err() && nanoseconds("").is_err());
    }
}
