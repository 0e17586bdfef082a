//! The colours of a table, on a terminal only.

use anstyle::{AnsiColor, Style};

/// Whether a table has colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    /// It has none.
    #[default]
    Off,
    /// It has those of the terminal's own palette.
    On,
}

impl Colours {
    pub(super) fn heading(self) -> Style {
        self.style(Style::new().bold())
    }

    pub(super) fn notice(self) -> Style {
        self.style(AnsiColor::Yellow.on_default())
    }

    /// Green is more likely than not; red is explained by nothing.
    pub(super) fn probability(self, value: Option<f64>) -> Style {
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

/// Text in a style; as it is where the style is plain.
pub(super) fn painted(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_off_or_by_probability() {
        let shown = |colours: Colours, value| painted(colours.probability(value), "x");
        assert_eq!([Some(0.95), Some(0.2), None].map(|value| shown(Colours::Off, value)), ["x"; 3]);
        let expected = ["\u{1b}[1m\u{1b}[32mx\u{1b}[0m", "\u{1b}[32mx\u{1b}[0m", "x", "\u{1b}[31mx\u{1b}[0m"];
        assert_eq!([Some(0.9), Some(0.5), Some(0.2), None].map(|value| shown(Colours::On, value)), expected);
    }
}
