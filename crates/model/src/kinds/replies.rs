//! P(replies, bytes of replies | kind), where replies tell kinds apart that have the same size.

use serde::{Deserialize, Serialize};

use super::kind::{SPREADS, SeenCommand};
use crate::two_sided::two_sided;

/// The smallest likelihood, so that one odd reply does not exclude a kind.
const LEAST: f64 = 1e-6;

/// How replies are smoothed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindReplies {
    /// Mean absolute deviation of the bytes of replies from those seen, in bytes.
    pub spread: f64,
    /// How many labelled commands weigh as much as what all kinds have.
    pub strength: f64,
}

impl KindReplies {
    pub(super) fn is_valid(&self) -> bool {
        let [least, most] = SPREADS;
        (least / 2.0..=most).contains(&self.spread) && (1e-3..=1e6).contains(&self.strength)
    }

    /// P(replies, bytes | a kind seen with `own`), smoothed towards what `all` commands have.
    pub(super) fn likelihood(&self, own: impl Iterator<Item = SeenCommand>, all: f64, replies: u32, bytes: i64) -> f64 {
        let (weight, commands) = self.near(own, replies, bytes);
        ((weight + self.strength * all) / (commands + self.strength)).max(LEAST * all.max(f64::MIN_POSITIVE))
    }

    /// P(replies, bytes) over these commands, smoothed towards any number and bytes.
    pub(super) fn pooled(&self, seen: impl Iterator<Item = SeenCommand>, replies: u32, bytes: i64) -> f64 {
        let (weight, commands) = self.near(seen, replies, bytes);
        // One further command, whose replies may be any: a geometric number of them, with bytes of any size.
        let anything = 0.5_f64.powf(f64::from(replies.min(64)) + 1.0) * if replies == 0 { 1.0 } else { 1e-4 };
        (weight + anything) / (commands + 1.0)
    }

    fn near(&self, seen: impl Iterator<Item = SeenCommand>, replies: u32, bytes: i64) -> (f64, f64) {
        let (mut weight, mut commands) = (0.0, 0.0);
        for one in seen {
            let times = one.times as f64;
            commands += times;
            if one.replies == replies {
                let of_bytes = match replies {
                    0 => 1.0,
                    _ => two_sided(one.reply_bytes.abs_diff(bytes) as f64, self.spread),
                };
                weight += times * of_bytes;
            }
        }
        (weight, commands)
    }
}
