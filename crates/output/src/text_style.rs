//! How frames become text: which kinds, the trait of the text formats, and their style and times.

use std::fmt::Write as _;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use sizeleak_frame::Frame;
use sizeleak_text::rfc_3339;

use crate::flow_names::FlowNames;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HexLength {
    /// At most this many bytes, followed by `…` if there are more.
    AtMost(usize),
    Whole,
}

impl Default for HexLength {
    fn default() -> Self {
        Self::AtMost(16)
    }
}

/// The style of human-readable text. Machine-readable formats use only `binary`.
#[derive(Debug, Clone, Default)]
pub struct TextStyle {
    pub binary: HexLength,
    pub times: TimeFormat,
    pub colours: Colours,
}

pub(crate) fn hex(bytes: &[u8], length: HexLength) -> String {
    let shown = match length {
        HexLength::AtMost(most) => bytes.get(..most).unwrap_or(bytes),
        HexLength::Whole => bytes,
    };
    let mut text = String::with_capacity(2 * shown.len() + 3);
    for byte in shown {
        let _never_fails = write!(text, "{byte:02x}");
    }
    if shown.len() < bytes.len() {
        text.push('…');
    }
    text
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    #[default]
    Off,
    /// The colours of the terminal's palette.
    On,
}

impl Colours {
    pub(crate) fn heading(self) -> Style {
        self.style(Style::new().bold())
    }

    pub(crate) fn notice(self) -> Style {
        self.style(AnsiColor::Yellow.on_default())
    }

    /// Green if more likely than not; red without a candidate.
    pub(crate) fn probability(self, value: Option<f64>) -> Style {
        self.style(match value {
            Some(value) if value >= 0.9 => AnsiColor::Green.on_default().bold(),
            Some(value) if value >= 0.5 => AnsiColor::Green.on_default(),
            Some(_) => Style::new(),
            None => AnsiColor::Red.on_default(),
        })
    }

    fn style(self, style: Style) -> Style {
        match self {
            Self::Off => Style::new(),
            Self::On => style,
        }
    }
}

pub(crate) fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

pub(crate) trait TextFormat: Send {
    /// Writes a frame; `names` are those of the flows so far, its own included.
    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()>;

    /// Writes the header once: before the first frame, or at the first flush of a stream without frames.
    fn write_header(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// Writes what stands behind all frames; a stream without a summary is not complete.
    fn write_footer(&mut self, _is_complete: bool, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindSelection {
    /// All kinds, as a frame stream needs them.
    All,
    /// All but `hello` and `summary`, which describe the stream.
    Traffic,
    /// The results of the last stage: also without flows, sessions and notices.
    Results,
    Kinds(Vec<String>),
}

impl KindSelection {
    pub fn takes(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Traffic => !matches!(kind, "hello" | "summary"),
            Self::Results => !matches!(kind, "hello" | "summary" | "flow" | "session" | "notice"),
            Self::Kinds(kinds) => kinds.iter().any(|wanted| wanted == kind),
        }
    }

    pub fn only(&self) -> Option<&str> {
        match self {
            Self::Kinds(kinds) => kinds.first().filter(|_| kinds.len() == 1).map(String::as_str),
            _ => None,
        }
    }
}

/// The clock that times are shown in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    /// Coordinated universal time
    #[default]
    Utc,
    /// The time zone of this system or of TZ; each time comes with its offset from UTC
    Local,
}

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

    pub const TIME_OF_DAY_WIDTH: usize = 12;

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
    fn enabled_colours_depend_on_the_probability() {
        let shown = |colours: Colours, value| painted(colours.probability(value), "x");
        assert_eq!([Some(0.95), Some(0.2), None].map(|value| shown(Colours::Off, value)), ["x"; 3]);
        let expected = ["\u{1b}[1m\u{1b}[32mx\u{1b}[0m", "\u{1b}[32mx\u{1b}[0m", "x", "\u{1b}[31mx\u{1b}[0m"];
        assert_eq!([Some(0.9), Some(0.5), Some(0.2), None].map(|value| shown(Colours::On, value)), expected);
    }

    #[test]
    fn each_selection_takes_its_kinds() {
        let kinds = ["hello", "flow", "record", "new_kind", "notice", "summary"];
        let taken = |selection: &KindSelection| kinds.map(|kind| u8::from(selection.takes(kind)));
        assert_eq!(taken(&KindSelection::All), [1, 1, 1, 1, 1, 1]);
        assert_eq!(taken(&KindSelection::Traffic), [0, 1, 1, 1, 1, 0]);
        assert_eq!(taken(&KindSelection::Results), [0, 0, 1, 1, 0, 0]);
        let asked = KindSelection::Kinds(vec!["summary".into()]);
        assert_eq!((taken(&asked), asked.only()), ([0, 0, 0, 0, 0, 1], Some("summary")));
    }

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
