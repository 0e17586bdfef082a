//! Padding policies by name, as a person writes them: `multiple:16`, `padme`.

use std::fmt;
use std::str::FromStr;

use crate::policies::padding_policy::{Draw, PaddingPolicy};
use crate::policies::policy_error::PolicyError;

impl FromStr for PaddingPolicy {
    type Err = PolicyError;

    /// Reads a policy without a table.
    fn from_str(name: &str) -> Result<Self, PolicyError> {
        let unknown = || PolicyError::Name(name.to_owned());
        let (kind, bytes) = match name.split_once(':') {
            Some((kind, bytes)) => (kind, Some(bytes.parse().map_err(|_| unknown())?)),
            None => (name, None),
        };
        let policy = match (kind, bytes) {
            ("none", None) => Self::None,
            ("multiple", Some(bytes)) => Self::Multiple { bytes },
            ("powers-of-two", None) => Self::PowersOfTwo,
            ("padme", None) => Self::Padme,
            ("tls13", Some(bytes)) => Self::Tls13Multiple { bytes },
            ("random", Some(most)) => Self::Random { most, draw: Draw::Independent },
            ("keyed-random", Some(most)) => Self::Random { most, draw: Draw::Keyed },
            ("constant", Some(bytes)) => Self::Constant { bytes },
            _ => return Err(unknown()),
        };
        policy.check()?;
        Ok(policy)
    }
}

impl fmt::Display for PaddingPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Multiple { bytes } => write!(formatter, "multiple:{bytes}"),
            Self::PowersOfTwo => formatter.write_str("powers-of-two"),
            Self::Padme => formatter.write_str("padme"),
            Self::Tls13Multiple { bytes } => write!(formatter, "tls13:{bytes}"),
            Self::Random { most, draw: Draw::Independent } => write!(formatter, "random:{most}"),
            Self::Random { most, draw: Draw::Keyed } => write!(formatter, "keyed-random:{most}"),
            Self::Constant { bytes } => write!(formatter, "constant:{bytes}"),
            Self::Table { buckets } if buckets.len() == 1 => write!(formatter, "table of one bucket"),
            Self::Table { buckets } => write!(formatter, "table of {} buckets", buckets.len()),
            Self::Map { sizes } => write!(formatter, "map of {} sizes", sizes.len()),
            Self::RandomTable { rows, .. } => write!(formatter, "random table of {} sizes", rows.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let names = "none multiple:16 powers-of-two padme tls13:128 random:0 random:64 keyed-random:64 constant:512";
        for name in names.split(' ') {
            assert_eq!(name.parse::<PaddingPolicy>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["", "pad", "multiple", "multiple:", "multiple:-1", "padme:3", "none:", "multiple:1:2"] {
            assert_eq!(name.parse::<PaddingPolicy>(), Err(PolicyError::Name(name.to_owned())));
        }
        assert_eq!("multiple:0".parse::<PaddingPolicy>(), Err(PolicyError::Unit(0)));
    }
}
