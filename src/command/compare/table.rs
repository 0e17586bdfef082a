//! A comparison as a person reads it: under each figure, a line for every pipeline.

use std::fmt::{Display, Formatter, Result};

use super::comparison::{Comparison, Difference, Entry};
use super::figure::{FIGURES, Figure, Unit};
use crate::command::evaluate::{NONE, percent};
use crate::statistics::Interval;

/// The table of a comparison.
pub(super) struct Table<'a>(pub(super) &'a Comparison);

impl Display for Table<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        let Comparison { commands, confidence, pipelines, .. } = self.0;
        for (number, compared) in (1..).zip(pipelines) {
            writeln!(formatter, "[{number}] {}", compared.pipeline)?;
        }
        let sure = 100.0 * confidence.share();
        writeln!(
            formatter,
            "\n{commands} labelled commands; intervals of {sure} %; * a difference whose interval excludes 0\n"
        )?;
        let headings = ["", "", "interval", "less [1]", "", "interval", "p"].map(str::to_owned);
        write_row(formatter, "", &headings)?;
        for (place, figure) in FIGURES.iter().enumerate() {
            for (number, compared) in (1..).zip(pipelines) {
                let Some(value) = compared.figures.get(place) else { continue };
                write_row(formatter, if number == 1 { figure.title } else { "" }, &cells(figure, number, value))?;
            }
        }
        Ok(())
    }
}

fn write_row(formatter: &mut Formatter<'_>, title: &str, cells: &[String; 7]) -> Result {
    let [number, value, interval, difference, star, between, p_value] = cells;
    let row =
        format!("{title:<28}{number:>4}{value:>9}  {interval:<16}{difference:>8} {star:<1} {between:<17}{p_value:>8}");
    writeln!(formatter, "{}", row.trim_end())
}

fn cells(figure: &Figure, number: usize, value: &Entry) -> [String; 7] {
    let unit = figure.unit;
    let shown = value.value.map_or_else(|| NONE.to_owned(), |value| unit.say(value));
    let interval = value.interval.map_or_else(String::new, |interval| unit.range(interval));
    let number = format!("[{number}]");
    let Some(Difference { value: more, interval: between, p_value, excludes_zero }) = &value.difference else {
        return [number, shown, interval, String::new(), String::new(), String::new(), String::new()];
    };
    let star = if *excludes_zero { "*" } else { "" };
    let between = between.map_or_else(String::new, |interval| unit.difference_range(interval));
    let p_value = p_value.map_or_else(String::new, probability);
    [number, shown, interval, unit.difference(*more), star.to_owned(), between, p_value]
}

impl Unit {
    fn say(self, value: f64) -> String {
        match self {
            Self::Percent => percent(value),
            Self::Decimals(digits) => format!("{value:.digits$}"),
        }
    }

    /// The ends of an interval, without what is written behind the value.
    fn range(self, Interval { low, high }: Interval) -> String {
        let [low, high] = [low, high].map(|end| self.say(end));
        format!("{} to {}", low.trim_end_matches(" %"), high.trim_end_matches(" %"))
    }

    /// A difference with its sign.
    fn difference(self, value: f64) -> String {
        let (value, digits) = self.in_points(value);
        let shown = format!("{value:+.digits$}");
        // What rounds to nothing has no sign.
        if shown.chars().any(|character| character.is_ascii_digit() && character != '0') {
            shown
        } else {
            shown.trim_start_matches(['+', '-']).to_owned()
        }
    }

    fn difference_range(self, Interval { low, high }: Interval) -> String {
        format!("{} to {}", self.difference(low), self.difference(high))
    }

    fn in_points(self, value: f64) -> (f64, usize) {
        match self {
            Self::Percent => (100.0 * value, 1),
            Self::Decimals(digits) => (value, digits),
        }
    }
}

fn probability(value: f64) -> String {
    if value < 0.0001 { "<0.0001".to_owned() } else { format!("{value:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_unless_they_are_nothing() {
        let shown = [0.0311, -0.0004, 0.0, -0.25].map(|value| Unit::Percent.difference(value));
        assert_eq!(shown, ["+3.1", "0.0", "0.0", "-25.0"]);
        let interval = Interval { low: -1.26, high: 0.04 };
        assert_eq!(Unit::Decimals(1).difference_range(interval), "-1.3 to 0.0");
        assert_eq!(Unit::Percent.range(Interval { low: 0.951, high: 0.9999 }), "95.1 to 99.9");
    }

    #[test]
    fn small_probabilities_are_not_nothing() {
        assert_eq!([1.0, 0.04999, 0.0001, 1e-9].map(probability), ["1.0000", "0.0500", "0.0001", "<0.0001"]);
    }
}
