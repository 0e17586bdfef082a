//! How the commands of a gateway are padded.

use crate::policies::PaddingPolicy;
use serde::{Deserialize, Serialize};

/// How the commands of a gateway are padded, so that a size stands for several sizes before the padding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LearnedPadding {
    /// All sizes leave the same rest modulo this number of bytes, as was found in the captures.
    Modulo(u32),
    Policy(PaddingPolicy),
}

impl LearnedPadding {
    /// The sizes that a message may have had before it was padded to one from `least` to `most` bytes, as a range; at
    /// most 65536 of them. A size that the policy does not pad to is taken not to be padded.
    pub fn sizes_before(&self, [least, most]: [i64; 2]) -> [i64; 2] {
        match self {
            Self::Modulo(bytes) => [least.saturating_sub(i64::from(*bytes) - 1).max(0), most],
            Self::Policy(policy) => {
                let before = |size: i64| policy.sizes_before(u64::try_from(size).ok()?);
                // A block cipher leaves few sizes.
                let all = (least..=most.min(least.saturating_add(MAX_SIZES))).filter_map(before);
                let range = all.reduce(|[first, last], [least, most]| [first.min(least), last.max(most)]);
                let range = range.map(|range| range.map(|size| i64::try_from(size).unwrap_or(i64::MAX)));
                range.map_or([least, most], |[first, last]| [first, last.min(first.saturating_add(MAX_BEFORE))])
            }
        }
    }

    /// Whether messages are padded to any size from `least` to `most` bytes; true where only a range is known.
    pub fn pads_to(&self, [least, most]: [i64; 2]) -> bool {
        let Self::Policy(policy) = self else { return true };
        let mut sizes = (least.max(0)..=most.min(least.saturating_add(MAX_SIZES))).map(|size| size as u64);
        sizes.any(|size| policy.sizes_before(size).is_some())
    }

    /// The probability that a message of `size` bytes is padded to one from `least` to `most` bytes; 1 where only a
    /// range is known.
    pub fn probability(&self, size: i64, [least, most]: [i64; 2]) -> f64 {
        let (Self::Policy(policy), Ok(size)) = (self, u64::try_from(size)) else { return 1.0 };
        let padded = (least.max(0)..=most.min(least.saturating_add(MAX_SIZES))).map(|size| size as u64);
        let probability: f64 = padded.map(|padded| policy.probability(size, padded)).sum();
        // Sizes that the policy does not pad to are taken not to be padded.
        if probability > 0.0 || self.pads_to([least, most]) { probability } else { 1.0 }
    }
}

/// The most sizes before padding, less one: those of a policy that pads to 64 KiB.
const MAX_BEFORE: i64 = 65_535;

/// The most sizes that a block cipher leaves, less one, a bound of the time: ciphers leave sixteen.
const MAX_SIZES: i64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_before_padding_are_those_of_the_policy() {
        let padding = LearnedPadding::Policy(PaddingPolicy::Map { sizes: vec![[4, 30], [9, 20], [20, 30]] });
        // Sizes beyond the map go to multiples of its greatest.
        assert_eq!(padding.sizes_before([30, 30]), [0, 30]);
        assert_eq!(padding.sizes_before([20, 21]), [5, 9]);
        assert_eq!(padding.sizes_before([21, 22]), [21, 22], "not padded");
        let is_padded = |size, seen| padding.probability(size, seen) > 0.99;
        assert_eq!([4, 5, 10, 31].map(|size| is_padded(size, [30, 30])), [true, false, true, false]);
        let constant = LearnedPadding::Policy(PaddingPolicy::Constant { bytes: 1_000_000 });
        assert_eq!(constant.sizes_before([1_000_000; 2]), [1, 65_536]);
        assert_eq!(padding.sizes_before([-5, -3]), [-5, -3]);
        assert_eq!(
            [[20, 20], [21, 22], [28, 31], [-5, -3]].map(|seen| padding.pads_to(seen)),
            [true, false, true, false]
        );
        assert!(is_padded(21, [21, 22]), "not padded");
        assert_eq!(LearnedPadding::Modulo(16).sizes_before([10, 37]), [0, 37]);
        assert!(LearnedPadding::Modulo(16).probability(3, [37, 37]) > 0.99);
    }

    #[test]
    fn a_number_or_a_policy_is_read() {
        #[derive(Deserialize)]
        struct Keys {
            padding: LearnedPadding,
        }
        let read = |text| toml::from_str::<Keys>(text).map(|keys| keys.padding);
        assert_eq!(read("padding = 16").unwrap(), LearnedPadding::Modulo(16));
        let policy = PaddingPolicy::Table { buckets: vec![104, 131] };
        assert_eq!(
            read("padding = { kind = \"table\", buckets = [104, 131] }").unwrap(),
            LearnedPadding::Policy(policy)
        );
        assert!(read("padding = \"much\"").is_err());
    }
}
