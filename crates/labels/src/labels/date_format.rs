//! Forms of dates other than ISO 8601, as spreadsheets and people write them.

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::fmt::strtime;

use super::error::{LabelError, short};

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

    pub(crate) fn has_seconds(&self) -> bool {
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
pub(super) fn without_zone(text: &str) -> (&str, Option<&str>) {
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
