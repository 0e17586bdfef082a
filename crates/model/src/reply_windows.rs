//! How long the replies to a gateway's commands take, where that is longer than usual.

use serde::{Deserialize, Serialize};

/// The longest time within which replies can come, in milliseconds.
pub const MAX_REPLY_WITHIN_MS: u64 = 60_000;

/// When what the gateway sends counts as a reply to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReplyWindows {
    /// Replies come within this time after a command, in milliseconds.
    #[serde(rename = "reply-within-ms")]
    pub within_ms: u64,
    /// Replies end when the gateway is silent for this long, in milliseconds.
    #[serde(rename = "reply-gap-ms")]
    pub gap_ms: u64,
    /// Within this time most replies have come, in milliseconds. A command later than that after another one does not
    /// share its replies.
    #[serde(rename = "reply-mostly-within-ms", default = "usually_mostly_ms")]
    pub mostly_ms: u64,
}

/// Within what time most replies come where a model does not say.
fn usually_mostly_ms() -> u64 {
    1_000
}

impl ReplyWindows {
    pub(crate) fn fault(self) -> Option<&'static str> {
        let is_possible =
            (1..=MAX_REPLY_WITHIN_MS).contains(&self.within_ms) && (1..=self.within_ms).contains(&self.gap_ms);
        (!is_possible || self.mostly_ms > MAX_REPLY_WITHIN_MS).then_some(
            "in [segmenter] `reply-within-ms` must be 1 to 60000, `reply-gap-ms` at least 1 and no longer, and \
             `reply-mostly-within-ms` at most 60000",
        )
    }

    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            within_ms: self.within_ms.max(other.within_ms),
            gap_ms: self.gap_ms.max(other.gap_ms),
            mostly_ms: self.mostly_ms.max(other.mostly_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_bounded() {
        let fault = |within_ms, gap_ms| ReplyWindows { within_ms, gap_ms, mostly_ms: 1_000 }.fault();
        assert_eq!((fault(60_000, 60_000), fault(12_000, 800)), (None, None));
        assert!(ReplyWindows { within_ms: 3_000, gap_ms: 800, mostly_ms: 60_001 }.fault().is_some());
        assert!([(60_001, 800), (0, 0), (3_000, 0), (3_000, 3_001)].into_iter().all(|(a, b)| fault(a, b).is_some()));
    }
}
