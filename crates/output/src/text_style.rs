//! How frames become text: which kinds, the trait of the text formats, and their style.

use std::fmt::Write as _;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use sizeleak_frame::Frame;

use crate::TimeFormat;

/// How many bytes of a binary field are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HexLength {
    /// At most this many bytes, followed by `…` if there are more.
    AtMost(usize),
    /// All bytes.
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
    /// How many bytes of binary fields are shown.
    pub binary: HexLength,
    /// The format of times.
    pub times: TimeFormat,
    /// Whether text is coloured.
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

/// Whether a table is coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    /// No colours.
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
    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()>;

    /// Observes a frame that is not selected but may describe others.
    fn observe(&mut self, _: &Frame) {}

    /// Writes the header once: before the first frame, or at the first flush of a stream without frames.
    fn write_header(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn write_footer(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// The kinds of frame to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindSelection {
    /// All kinds, as a frame stream needs them.
    All,
    /// All but `hello` and `summary`, which describe the stream.
    Traffic,
    /// The results of the last stage: also without flows, sessions and notices.
    Results,
    /// These kinds.
    Kinds(Vec<String>),
}

impl KindSelection {
    /// Whether this kind is written.
    pub fn takes(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Traffic => !matches!(kind, "hello" | "summary"),
            Self::Results => !matches!(kind, "hello" | "summary" | "flow" | "session" | "notice"),
            Self::Kinds(kinds) => kinds.iter().any(|wanted| wanted == kind),
        }
    }

    /// The kind, if it is only one.
    pub fn only(&self) -> Option<&str> {
        match self {
            Self::Kinds(kinds) => kinds.first().filter(|_| kinds.len() == 1).map(String::as_str),
            _ => None,
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
}
