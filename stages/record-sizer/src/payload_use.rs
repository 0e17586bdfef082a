//! How much of a connection's payload was used to size records, and how much was lost.

use serde::{Deserialize, Serialize};
use sizeleak_platform::runtime::MOST_COUNTED;

/// Bytes of a connection's payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PayloadUse {
    /// Bytes on the wire in all its segments.
    pub(crate) seen: u64,
    /// Bytes that were not used: missing from the capture, skipped, or not confirmed.
    pub(crate) lost: u64,
}

impl PayloadUse {
    /// Whether it can be counted on.
    pub(crate) fn is_valid(self) -> bool {
        self.seen <= MOST_COUNTED
    }

    /// The share that was lost, in millionths. Bytes that are missing were not seen.
    pub(crate) fn lost_millionths(self) -> u64 {
        let whole = u128::from(self.seen.max(self.lost)).max(1);
        (u128::from(self.lost) * 1_000_000 / whole) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_at_most_all() {
        let share = |seen, lost| PayloadUse { seen, lost }.lost_millionths();
        assert_eq!(
            (share(0, 0), share(200, 1), share(10, 400), share(u64::MAX, u64::MAX)),
            (0, 5000, 1_000_000, 1_000_000)
        );
    }
}
