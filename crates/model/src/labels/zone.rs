//! The time zone of labels whose times name none.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{AmbiguousOffset, TimeZone};

static PARSER: DateTimeParser = DateTimeParser::new();

/// A time zone: a name of the IANA database, or a fixed offset from UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelZone(TimeZone);

impl FromStr for LabelZone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if matches!(text, "Z" | "z") {
            return Ok(Self(TimeZone::UTC));
        }
        let zone = PARSER.parse_time_zone(text);
        zone.map(Self).map_err(|_| "write a time zone like Europe/Berlin, or an offset from UTC like +01:00".to_owned())
    }
}

/// What a clock of the zone means.
pub(crate) enum ZonedTime {
    /// One time, in nanoseconds since the epoch.
    Once(i64),
    /// Two times, the earlier one first: clocks were put back.
    Twice(i64, i64),
    /// None: clocks were put forward over it.
    Never,
}

impl LabelZone {
    /// The times at which a clock of this zone shows `local`; `None` for a time beyond the years 1677 to 2262.
    pub(crate) fn times_of(&self, local: DateTime) -> Option<ZonedTime> {
        let ambiguous = self.0.to_ambiguous_timestamp(local);
        let offset = ambiguous.offset();
        let time = |time: Result<jiff::Timestamp, jiff::Error>| i64::try_from(time.ok()?.as_nanosecond()).ok();
        Some(match offset {
            AmbiguousOffset::Unambiguous { .. } => ZonedTime::Once(time(ambiguous.unambiguous())?),
            AmbiguousOffset::Gap { .. } => ZonedTime::Never,
            AmbiguousOffset::Fold { .. } => ZonedTime::Twice(time(ambiguous.earlier())?, time(ambiguous.later())?),
        })
    }
}
