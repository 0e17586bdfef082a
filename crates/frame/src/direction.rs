//! The direction of data, seen from the gateway.

use serde::{Deserialize, Serialize};

/// The direction of a segment or record. In `segments` rows it is 0 or 1, elsewhere a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the service to the gateway, like commands. 0 in rows.
    #[default]
    ToGateway,
    /// From the gateway to the service, like replies. 1 in rows.
    FromGateway,
}

impl Direction {
    /// Both directions, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::ToGateway, Self::FromGateway];

    pub fn number(self) -> u8 {
        match self {
            Self::ToGateway => 0,
            Self::FromGateway => 1,
        }
    }

    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::ToGateway),
            1 => Some(Self::FromGateway),
            _ => None,
        }
    }

    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::ToGateway => Self::FromGateway,
            Self::FromGateway => Self::ToGateway,
        }
    }

    /// Its name in frames other than `segments`.
    pub fn word(self) -> &'static str {
        match self {
            Self::ToGateway => "to_gateway",
            Self::FromGateway => "from_gateway",
        }
    }
}
