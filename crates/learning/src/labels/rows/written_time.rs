//! Times as labels write them, and what they mean in their file.
//!
//! Epoch times have the unit of their magnitude: below 10¹¹ they are seconds (until the year 5138), below 10¹⁴
//! milliseconds, below 10¹⁷ microseconds, else nanoseconds; each of the last three means a time after 1973. All epoch
//! times of a file have the same unit. Dates with a time of day are RFC 3339 or ISO 8601, with `T` or a blank between,
//! with seconds or without, or have one [`DateFormat`] in all the file, as spreadsheets and people write dates.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, Zoned};
use sizeleak_text::{counted, listed};

use crate::labels::error::{LabelError, short};

static PARSER: DateTimeParser = DateTimeParser::new();

const MINUTE_NS: i64 = 60_000_000_000;

/// This many times on whole minutes are no accident.
const MIN_WHOLE_MINUTES: usize = 2;

/// The most times in doubt that are named.
const MAX_DOUBTS: usize = 3;

/// The units of epoch times: up to which number, their names, and their decimals down to the nanosecond.
const UNITS: [(u64, &str, usize); 4] = [
    (99_999_999_999, "seconds", 9),
    (99_999_999_999_999, "milliseconds", 6),
    (99_999_999_999_999_999, "microseconds", 3),
    (u64::MAX, "nanoseconds", 0),
];

/// In which order the rows of a file stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowOrder {
    OldestFirst,
    /// As many programs show what happened.
    NewestFirst,
}

impl RowOrder {
    /// The order of rows with these times: the one in which more of them follow each other.
    pub(crate) fn of_times(times: &[i64]) -> Self {
        let forward = times.windows(2).filter(|pair| pair[0] < pair[1]).count();
        let backward = times.windows(2).filter(|pair| pair[0] > pair[1]).count();
        if backward > forward { Self::NewestFirst } else { Self::OldestFirst }
    }
}

/// Reads the times of one file, in order of its lines.
pub(crate) struct TimeReader<'a> {
    zone: Option<&'a LabelZone>,
    format: Option<DateFormat>,
    order: RowOrder,
    /// That of the epoch times, by its index among [`UNITS`].
    unit: Option<usize>,
    /// The time before, to tell apart what a clock shows twice.
    before: Option<i64>,
    times: usize,
    are_whole_minutes: bool,
    /// Whether all times have been written without seconds.
    are_without_seconds: bool,
    /// The times that may be an hour off, by date, each with its line: no row tells which of two passes over the hour it is
    /// of.
    doubtful: BTreeMap<Date, Vec<(u64, i64)>>,
}

impl<'a> TimeReader<'a> {
    /// A reader; `zone` is that of times that name none, `format` that of dates.
    pub(crate) fn new(zone: Option<&'a LabelZone>, format: Option<DateFormat>, order: RowOrder) -> Self {
        let (are_whole_minutes, are_without_seconds, doubtful) = (true, true, BTreeMap::new());
        Self {
            zone,
            format,
            order,
            unit: None,
            before: None,
            times: 0,
            are_whole_minutes,
            are_without_seconds,
            doubtful,
        }
    }

    /// The next time, in nanoseconds since the epoch.
    pub(crate) fn read(&mut self, text: &str, line: u64) -> Result<i64, LabelError> {
        let time = match EpochNumber::parse(text) {
            Some(number) => {
                self.are_without_seconds = false;
                self.epoch(&number, text, line)?
            }
            None => self.calendar(text, line)?,
        };
        self.times += 1;
        self.are_whole_minutes &= time % MINUTE_NS == 0;
        self.before = Some(time);
        Ok(time)
    }

    /// Whether the times have no seconds: none is written, or all are 0 and that is no accident.
    pub(crate) fn is_to_the_minute(&self) -> bool {
        let is_accident = self.times < MIN_WHOLE_MINUTES && !self.are_without_seconds;
        self.times > 0 && self.are_whole_minutes && !is_accident
    }

    /// A sentence about the times that may be an hour off.
    pub(crate) fn doubts(&self) -> Option<String> {
        let times = self.doubtful.values().flatten().map(|(line, time)| {
            let time = Timestamp::from_nanosecond((*time).into());
            time.map_or_else(|_| format!("line {line}"), |time| format!("line {line} (taken for {time})"))
        });
        let count = times.clone().count();
        (count > 0).then(|| {
            format!(
                "{} of an hour that the clock showed twice, and may be an hour off, since no other row tells which of the two \
                 is meant: {}; write such times with their offset from UTC (02:30+01:00)",
                counted(count, "row is", "rows are"),
                listed(times, MAX_DOUBTS)
            )
        })
    }

    fn epoch(&mut self, number: &EpochNumber<'_>, text: &str, line: u64) -> Result<i64, LabelError> {
        let unit = number.unit();
        let expected = *self.unit.get_or_insert(unit);
        if unit != expected {
            let (text, [unit, expected]) = (short(text), [unit, expected].map(|unit| UNITS[unit].1));
            let fault = format!("`{text}` has the magnitude of {unit}, but the times above it are in {expected}");
            return Err(LabelError::at(line, fault));
        }
        number.nanoseconds(unit).ok_or_else(|| LabelError::no_time(line, text))
    }

    fn calendar(&mut self, text: &str, line: u64) -> Result<i64, LabelError> {
        let fault = || LabelError::no_time(line, text);
        if let Some(local) = self.format.as_ref().and_then(|format| format.read(text)) {
            self.are_without_seconds &= self.format.as_ref().is_some_and(|format| !format.has_seconds());
            // Other abbreviations mean several zones: they need the name of one.
            let is_utc = matches!(without_zone(text).1, Some("UTC" | "GMT" | "Z"));
            let (given, utc) = (self.zone, LabelZone::utc());
            return self.in_zone(if is_utc { Some(&utc) } else { given }, local, text, line);
        }
        // As mosquitto writes it.
        let plain = text.replace("Z+", "+").replace("Z-", "-");
        let text = plain.as_str();
        let [has_seconds, has_zone] = seconds_and_zone(text).ok_or_else(fault)?;
        self.are_without_seconds &= !has_seconds;
        let nanoseconds = |time: Timestamp| i64::try_from(time.as_nanosecond()).map_err(|_| fault());
        if has_zone {
            let offset = text.parse::<Timestamp>();
            let named = || text.parse::<Zoned>().map(|zoned| zoned.timestamp());
            return nanoseconds(offset.or_else(|_| named()).map_err(|_| fault())?);
        }
        let local: DateTime = text.parse().map_err(|_| fault())?;
        self.in_zone(self.zone, local, text, line)
    }

    fn in_zone(&mut self, zone: Option<&LabelZone>, local: DateTime, text: &str, line: u64) -> Result<i64, LabelError> {
        let fault = || LabelError::no_time(line, text);
        let zone = zone.ok_or_else(|| {
            let text = short(text);
            let wanted = "name that of the labels' clock with `--label-zone` (such as Europe/Berlin, +01:00 or UTC)";
            LabelError::at(line, format_args!("`{text}` has no time zone: {wanted}"))
        })?;
        let ambiguous = zone.0.to_ambiguous_timestamp(local);
        let time = |time: Result<Timestamp, jiff::Error>| {
            time.ok().and_then(|time| i64::try_from(time.as_nanosecond()).ok()).ok_or_else(fault)
        };
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => time(ambiguous.unambiguous()),
            // Rows are mostly in order of time, so the second pass over the hour is the one that goes on.
            AmbiguousOffset::Fold { .. } => {
                let (earlier, later) = (time(ambiguous.earlier())?, time(ambiguous.later())?);
                let is_second = match self.order {
                    RowOrder::OldestFirst => self.before.is_some_and(|before| before > earlier),
                    RowOrder::NewestFirst => self.before.is_none_or(|before| before >= later),
                };
                let time = if is_second { later } else { earlier };
                // A row that goes on from within the hour shows where one pass ends, for those before it too.
                let goes_on = self.before.is_some_and(|before| (earlier..=later).contains(&before));
                if goes_on && is_second == (self.order == RowOrder::OldestFirst) {
                    self.doubtful.remove(&local.date());
                } else {
                    self.doubtful.entry(local.date()).or_default().push((line, time));
                }
                Ok(time)
            }
            AmbiguousOffset::Gap { .. } => {
                let text = short(text);
                let fault =
                    format!("`{text}` did not exist in the zone of the labels: clocks were put forward over it");
                Err(LabelError::of_line(line, fault))
            }
        }
    }
}

pub(crate) fn has_own_format(text: &str) -> bool {
    EpochNumber::parse(text).is_none()
        && [text.parse::<Timestamp>().is_ok(), text.parse::<Zoned>().is_ok(), text.parse::<DateTime>().is_ok()]
            == [false; 3]
}

struct EpochNumber<'a> {
    is_negative: bool,
    whole: u64,
    decimals: &'a str,
}

impl<'a> EpochNumber<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, decimals) = digits.split_once(['.', ',']).unwrap_or((digits, ""));
        let are_digits = whole.bytes().chain(decimals.bytes()).all(|byte| byte.is_ascii_digit());
        let whole = whole.parse().ok().filter(|_| are_digits)?;
        Some(Self { is_negative, whole, decimals })
    }

    fn unit(&self) -> usize {
        UNITS.partition_point(|(most, ..)| *most < self.whole)
    }

    /// Without floating point, truncated to nanoseconds.
    fn nanoseconds(&self, unit: usize) -> Option<i64> {
        let (.., places) = UNITS[unit];
        let decimals: String = self.decimals.chars().chain("000000000".chars()).take(places).collect();
        let decimals: i128 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
        let scale = 10_i128.pow(u32::try_from(places).ok()?);
        let since = i128::from(self.whole) * scale + decimals;
        i64::try_from(if self.is_negative { -since } else { since }).ok()
    }
}

/// Whether a time of day has seconds, and a zone behind it; `None` without one of at least hours and minutes.
fn seconds_and_zone(text: &str) -> Option<[bool; 2]> {
    let (_, rest) = text.split_once(['T', 't', ' '])?;
    let end = rest.find(['Z', 'z', '+', '-', '[']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at_checked(end)?;
    let digits = clock.bytes().take_while(|byte| !matches!(byte, b'.' | b',')).filter(u8::is_ascii_digit).count();
    (digits >= 4).then_some([digits > 4, !zone.is_empty()])
}

/// A time zone: a name of the IANA database, or a fixed offset from UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelZone(TimeZone);

impl FromStr for LabelZone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if matches!(text, "Z" | "z") {
            return Ok(Self::utc());
        }
        let zone = PARSER.parse_time_zone(text);
        zone.map(Self).map_err(|_| "write a time zone like Europe/Berlin, or an offset from UTC like +01:00".to_owned())
    }
}

impl LabelZone {
    pub(super) fn utc() -> Self {
        Self(TimeZone::UTC)
    }
}

const DATES: [&str; 14] = [
    "%Y-%m-%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d-%b-%Y",
    "%d. %B %Y",
];

const TIMES: [&str; 7] = ["%H:%M:%S", "%H:%M", "%H:%M:%S%.f", "%I:%M:%S %p", "%I:%M:%S%.f %p", "%I:%M %p", "%I:%M%p"];

const JOINTS: [&str; 3] = [" ", ", ", " at "];

/// The forms that read none of so many first times are not tried with the others.
const FIRST_TIMES: usize = 20;

/// A form of dates with a time of day, as `strptime` writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateFormat(String);

impl FromStr for DateFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = strtime::format(text, DateTime::constant(2026, 1, 5, 8, 0, 0, 0));
        match known {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(format!("{error}: write it like %d/%m/%Y %H:%M")),
        }
    }
}

impl fmt::Display for DateFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl DateFormat {
    pub(crate) fn read(&self, text: &str) -> Option<DateTime> {
        DateTime::strptime(&self.0, without_zone(text).0).or_else(|_| DateTime::strptime(&self.0, text)).ok()
    }

    fn has_seconds(&self) -> bool {
        ["%S", "%T", "%s"].iter().any(|part| self.0.contains(part))
    }

    /// The form that reads the most of some times, each with its line; `None` if none reads any.
    pub(crate) fn of_times(times: &[(&str, u64)]) -> Result<Option<Self>, LabelError> {
        let all = JOINTS.iter().flat_map(|joint| {
            DATES.iter().flat_map(move |date| TIMES.iter().map(move |time| Self(format!("{date}{joint}{time}"))))
        });
        let read =
            |format: &Self, times: &[(&str, u64)]| times.iter().filter(|(text, _)| format.read(text).is_some()).count();
        let first = times.get(..FIRST_TIMES).unwrap_or(times);
        let mut found: Vec<(usize, Self)> =
            all.filter(|format| read(format, first) > 0).map(|format| (read(&format, times), format)).collect();
        let most = found.iter().map(|(read, _)| *read).max().unwrap_or(0);
        found.retain(|(read, _)| *read == most);
        let mut formats = found.into_iter().map(|(_, format)| format);
        let Some(format) = formats.next() else { return Ok(None) };
        for other in formats {
            let differs = times.iter().find(|(text, _)| format.read(text) != other.read(text));
            if let Some((text, line)) = differs {
                let read = [&format, &other].map(|format| {
                    format.read(text).map_or_else(|| "no time".to_owned(), |time| time.date().to_string())
                });
                let fault = format!(
                    "`{}` may be {} or {}: say which with `--label-format '{format}'` or `--label-format '{other}'`",
                    short(text),
                    read[0],
                    read[1]
                );
                return Err(LabelError::at(*line, fault));
            }
        }
        Ok(Some(format))
    }
}

/// A time without the abbreviation of a zone behind it, and that.
fn without_zone(text: &str) -> (&str, Option<&str>) {
    let is_zone = |(_, zone): &(&str, &str)| {
        !matches!(*zone, "AM" | "PM")
            && (1..=5).contains(&zone.len())
            && zone.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    text.rsplit_once(' ').filter(is_zone).map_or((text, None), |(time, zone)| (time, Some(zone)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of a file in a zone, and whether they are to the minute.
    fn read(texts: &[&str], zone: Option<&str>) -> Result<(Vec<i64>, bool), String> {
        let zone = zone.map(|zone| zone.parse().unwrap());
        let mut reader = TimeReader::new(zone.as_ref(), None, RowOrder::OldestFirst);
        let times = texts.iter().zip(2..).map(|(text, line)| reader.read(text, line));
        let times = times.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        Ok((times, reader.is_to_the_minute()))
    }

    const EIGHT: i64 = 1_767_600_000_000_000_000;

    #[test]
    fn the_unit_of_epoch_times_is_that_of_their_magnitude() {
        let once = |text: &str| read(&[text], None).unwrap().0[0];
        for text in ["1767600000", "1767600000.0", "1767600000000", "1767600000000.0", "1767600000000000"] {
            assert_eq!(once(text), EIGHT, "{text}");
        }
        assert_eq!(once("1767600000000000000"), EIGHT);
        assert_eq!(once("1767600000123.5"), EIGHT + 123_500_000);
        assert_eq!((once("-0.5"), once("0"), once("1767600000.1234567899")), (-500_000_000, 0, EIGHT + 123_456_789));
    }

    #[test]
    fn epoch_times_of_a_file_have_one_unit() {
        let error = read(&["1767600000", "1767600000000"], None).unwrap_err();
        assert!(error.contains("line 3") && error.contains("milliseconds") && error.contains("in seconds"), "{error}");
    }

    #[test]
    fn calendar_times_are_those_of_their_zone() {
        let once = |text: &str, zone| read(&[text], zone).map(|(times, _)| times[0]);
        for text in [
            "2026-01-05T08:00:00Z",
            "2026-01-05 08:00:00Z",
            "2026-01-05T09:00:00+01:00",
            "2026-01-05t08:00Z",
            "20260105T080000Z",
            "2026-01-05T09:00[Europe/Berlin]",
            "2026-01-05T09:00:00+01:00[Europe/Berlin]",
        ] {
            assert_eq!(once(text, Some("+05:00")), Ok(EIGHT), "{text}");
        }
        for (text, zone) in [
            ("2026-01-05T08:00:00", "UTC"),
            ("2026-01-05 08:00", "Z"),
            ("2026-01-05 09:00:00.000", "Europe/Berlin"),
            ("2026-01-05 13:30", "+05:30"),
        ] {
            assert_eq!(once(text, Some(zone)), Ok(EIGHT), "{text} {zone}");
        }
        assert_eq!(once("2026-07-05 10:00", Some("Europe/Berlin")), once("2026-07-05T08:00Z", None));
        assert!(once("2026-01-05 08:00:00", None).unwrap_err().contains("`--label-zone`"));
    }

    #[test]
    fn times_that_a_clock_shows_twice_go_on_and_those_it_skips_are_errors() {
        // Clocks were put back at 03:00 on 25 October.
        let texts = ["2026-10-25 02:10", "2026-10-25 02:50", "2026-10-25 02:20", "2026-10-25 03:00"];
        let (times, _) = read(&texts, Some("Europe/Berlin")).unwrap();
        let minutes: Vec<i64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / MINUTE_NS).collect();
        assert_eq!(minutes, [40, 30, 40]);
        let error = read(&["2026-03-29 02:30"], Some("Europe/Berlin")).unwrap_err();
        assert!(error.contains("line 2") && error.contains("did not exist"), "{error}");
    }

    #[test]
    fn times_that_a_clock_shows_twice_go_back_where_the_newest_comes_first() {
        let texts =
            ["2026-10-25 02:00", "2026-10-25 02:30", "2026-10-25 02:59", "2026-10-25 02:05", "2026-10-25 03:00"];
        let zone = "Europe/Berlin".parse().unwrap();
        let times = |texts: &[&str], order| -> Vec<i64> {
            let mut reader = TimeReader::new(Some(&zone), None, order);
            texts.iter().map(|text| reader.read(text, 2).unwrap()).collect()
        };
        for last in 1..=texts.len() {
            let forward = times(&texts[..last], RowOrder::OldestFirst);
            let mut texts = texts[..last].to_vec();
            texts.reverse();
            let mut backward = times(&texts, RowOrder::NewestFirst);
            backward.reverse();
            // What begins or ends within the hour may be of either pass.
            if last > 3 {
                assert_eq!(forward, backward, "{last}");
            }
            assert!(backward.is_sorted() && forward.is_sorted(), "{last}");
        }
    }

    #[test]
    fn times_that_a_clock_shows_twice_are_in_doubt_unless_another_row_tells_of_which_pass_they_are() {
        let zone = "Europe/Berlin".parse().unwrap();
        let doubts = |texts: &[&str], order| {
            let mut reader = TimeReader::new(Some(&zone), None, order);
            texts.iter().zip(2..).for_each(|(text, line)| assert!(reader.read(text, line).is_ok()));
            reader.doubts().unwrap_or_default()
        };
        let (oldest, newest) = (RowOrder::OldestFirst, RowOrder::NewestFirst);
        for (texts, order, [lines, time]) in [
            (&["2026-10-25 02:30"][..], oldest, ["1 row is", "line 2 (taken for 2026-10-25T00:30:00Z)"]),
            (
                &["2026-10-25 03:30", "2026-10-25 02:30"],
                newest,
                ["1 row is", "line 3 (taken for 2026-10-25T01:30:00Z)"],
            ),
            (&["2026-10-25 02:10", "2026-10-25 02:10", "2026-10-25 03:00"], oldest, ["2 rows are", "line 3 (taken"]),
            // As a log shows it that is sorted by device.
            (&["2026-12-25 02:10", "2026-10-25 02:10"], oldest, ["1 row is", "line 3 (taken"]),
            (&["2025-10-26 02:50", "2026-10-25 02:50", "2026-10-25 02:10"], oldest, ["1 row is", "line 2 (taken"]),
        ] {
            let said = doubts(texts, order);
            assert!(said.starts_with(lines) && said.contains(time), "{texts:?}: {said}");
        }
        let passes = ["2026-10-25 02:10", "2026-10-25 02:50", "2026-10-25 02:20", "2026-10-25 02:50"];
        assert_eq!(doubts(&passes, oldest), "");
        let newest_first: Vec<&str> = passes.iter().rev().copied().collect();
        assert_eq!(doubts(&newest_first, newest), "");
        assert_eq!(doubts(&["2026-10-25 02:30+01:00", "2026-10-25 01:59", "2026-10-25 03:00"], oldest), "");
    }

    #[test]
    fn times_to_the_minute_are_recognised() {
        let is_to_the_minute = |texts: &[&str]| read(texts, Some("UTC")).unwrap().1;
        assert!(is_to_the_minute(&["2026-01-05 08:00"]));
        assert!(is_to_the_minute(&["1767600000", "1767600060.0"]));
        assert!(!is_to_the_minute(&["1767600000"]), "by chance once in sixty times");
        assert!(!is_to_the_minute(&["1767600000", "1767600061"]));
        assert!(!is_to_the_minute(&["2026-01-05 08:00", "2026-01-05 08:00:01"]));
        assert!(!is_to_the_minute(&[]));
    }

    #[test]
    fn text_that_is_no_time_is_an_error_that_names_the_line() {
        for text in ["", "yesterday", "2026-01-05", "2026-01-05T08", "08:00", "1e9", "99999999999999999999", "--1"] {
            let error = read(&[text], Some("UTC")).unwrap_err();
            assert!(error.starts_with(&format!("line 2: `{text}` is not a time")), "{text}: {error}");
        }
        assert!("Mars/Olympus".parse::<LabelZone>().is_err());
    }

    fn format(texts: &[&str]) -> Result<Option<String>, String> {
        let times: Vec<(&str, u64)> = texts.iter().copied().zip(2..).collect();
        let found = DateFormat::of_times(&times).map_err(|error| error.to_string())?;
        Ok(found.map(|format| format.0))
    }

    #[test]
    fn forms_are_those_that_read_the_whole_column() {
        for (texts, expected) in [
            (&["05/06/2022 19:25", "25/06/2022 19:27"][..], "%d/%m/%Y %H:%M"),
            (&["6/25/2022, 7:25 PM", "6/5/2022, 7:27 AM"], "%m/%d/%Y, %I:%M %p"),
            (&["25.06.2022 19:25:01"], "%d.%m.%Y %H:%M:%S"),
            (&["25 Jun 2022 19:25:01.5"], "%d %b %Y %H:%M:%S%.f"),
            (&["2022/06/05 19:25"], "%Y/%m/%d %H:%M"),
        ] {
            assert_eq!(format(texts), Ok(Some(expected.to_owned())), "{texts:?}");
        }
        assert_eq!(format(&["yesterday", "08:00"]), Ok(None));
    }

    #[test]
    fn two_readings_are_an_error_that_shows_both() {
        let error = format(&["05/06/2022 19:25", "06/06/2022 19:25"]).unwrap_err();
        for part in ["line 2", "2022-06-05", "2022-05-06", "--label-format '%d/%m/%Y %H:%M'"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
