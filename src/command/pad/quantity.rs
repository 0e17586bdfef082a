//! Budgets and targets as they are written on the command line: `20%`, `12B`, `5%-of-guessing`.

use std::str::FromStr;

use sizeleak_audit::padding::{Goal, PaddedHome};

/// What a table is to be the best for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Demand {
    /// The least leakage for these bytes.
    Budget(Budget),
    /// The fewest bytes for this leakage.
    Target(Target),
}

/// The most bytes that padding may add to a command, as is expected.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Budget {
    /// As a share of the command's bytes.
    Share(f64),
    /// In bytes.
    Bytes(f64),
}

/// How often a command may be named at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    /// In this share of cases.
    Share(f64),
    /// By this share of guessing more often than by guessing.
    AboveGuessing(f64),
}

impl Demand {
    /// In bytes and probability, for the commands of a home.
    pub(super) fn goal(self, home: &PaddedHome) -> Goal {
        match self {
            Self::Budget(budget) => Goal::Budget(budget.bytes(home.command_bytes)),
            Self::Target(target) => Goal::Target(target.named(home.unpadded.command.guessing)),
        }
    }
}

impl Budget {
    /// In bytes, for commands of this many bytes.
    fn bytes(self, command_bytes: f64) -> f64 {
        match self {
            Self::Share(share) => share * command_bytes,
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Target {
    /// The probability, where guessing has this one.
    fn named(self, guessing: f64) -> f64 {
        match self {
            Self::Share(share) => share,
            Self::AboveGuessing(share) => guessing * (1.0 + share),
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = || text.strip_suffix('B').and_then(number).map(Self::Bytes);
        let share = || text.strip_suffix('%').and_then(number).map(|percent| Self::Share(percent / 100.0));
        share().or_else(bytes).ok_or_else(|| "write it like 20% or 12B".to_owned())
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |text: &str| text.strip_suffix('%').and_then(number).map(|percent| percent / 100.0);
        let above = || text.strip_suffix("-of-guessing").and_then(percent).map(Self::AboveGuessing);
        let share = || percent(text).filter(|share| *share <= 1.0).map(Self::Share);
        above().or_else(share).ok_or_else(|| "write it like 8% or 5%-of-guessing".to_owned())
    }
}

/// A share on the command line: 0.5 or 50%.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(number).map(|percent| percent / 100.0);
    let share = percent.or_else(|| number(text)).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "it must be above 0 and at most 1, or 100%".to_owned())
}

/// A number that is neither negative nor infinite.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(
            ["20%", "12B", "0%"].map(str::parse),
            [Ok(Budget::Share(0.2)), Ok(Budget::Bytes(12.0)), Ok(Budget::Share(0.0))]
        );
        assert_eq!("50%".parse(), Ok(Target::Share(0.5)));
        assert_eq!("50%-of-guessing".parse(), Ok(Target::AboveGuessing(0.5)));
        assert!((Target::AboveGuessing(0.5).named(0.1) - 0.15).abs() < 1e-12);
        assert_eq!((share("50%"), share("0.5")), (Ok(0.5), Ok(0.5)));
        for wrong in ["", "20", "%", "-1%", "nan%", "inf%", "1e999%", "B"] {
            assert!(wrong.parse::<Budget>().is_err(), "{wrong}");
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
        assert!("101%".parse::<Target>().is_err() && share("0").is_err() && share("1.1").is_err());
    }
}
