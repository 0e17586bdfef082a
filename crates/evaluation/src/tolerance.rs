//! How far a command may be from its label.

use jiff::SignedDuration;

/// How far a command may be from its label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance(i64);

impl Tolerance {
    /// None: that of labels with the times of their commands.
    pub const EXACT: Self = Self(0);

    /// That of labels whose times have seconds: people write down what they do as they do it.
    pub const USUAL: Self = Self(2_000_000_000);

    /// That of labels to the minute: half a minute of rounding either way, and a minute because clocks without seconds
    /// are set by hand.
    pub const OF_MINUTES: Self = Self(90_000_000_000);

    /// In nanoseconds.
    pub fn nanoseconds(self) -> i64 {
        self.0
    }
}

impl std::str::FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration: SignedDuration = text.parse().map_err(|_| "write it like 2s or 500ms".to_owned())?;
        match i64::try_from(duration.as_nanos()) {
            Ok(nanoseconds @ 0..) => Ok(Self(nanoseconds)),
            _ => Err("it must be from 0 s to 292 years".to_owned()),
        }
    }
}

impl std::fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", SignedDuration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tolerance(text: &str) -> Result<Tolerance, String> {
        text.parse()
    }

    #[test]
    fn tolerance_needs_a_unit_and_no_sign() {
        assert_eq!(tolerance("500ms").unwrap().nanoseconds(), 500_000_000);
        assert!(tolerance("2").is_err() && tolerance("-1s").is_err() && tolerance("99999999999999h").is_err());
    }
}
