//! The colours of a table.

use anstyle::{AnsiColor, Style};

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

/// Text in a style.
pub(crate) fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
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
}
