//! How long a service takes to answer, where its records of one length come after the gateway's by always the same time.

use std::collections::VecDeque;

/// Delays remembered of a kind of record.
const MOST_REMEMBERED: usize = 16;

/// So few delays show nothing.
const LEAST_REMEMBERED: usize = 8;

/// How much later than the gateway's last record those of one length came.
#[derive(Debug, Default)]
pub(crate) struct Delays(VecDeque<i64>);

impl Delays {
    /// Remembers a delay.
    pub(crate) fn learn(&mut self, delay_ns: i64) {
        if self.0.len() >= MOST_REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(delay_ns.max(0));
    }

    /// Within what time such a record comes: half as much again as usual. None where delays differ, as those of records do
    /// that are no answers.
    pub(crate) fn within(&self) -> Option<i64> {
        let mut sorted: Vec<i64> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let usual = sorted.get(sorted.len() / 2).copied()?;
        let alike = sorted.iter().filter(|delay| delay.abs_diff(usual) <= usual.unsigned_abs() / 8).count();
        let is_usual = sorted.len() >= LEAST_REMEMBERED && alike * 4 >= sorted.len() * 3;
        is_usual.then(|| usual.saturating_add(usual / 2))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn within(delays: impl IntoIterator<Item = i64>) -> Option<i64> {
        let mut learned = Delays::default();
        delays.into_iter().for_each(|delay| learned.learn(delay));
        learned.within()
    }

    #[test]
    fn usual_delays_are_learned_and_others_are_not() {
        assert_eq!(within([200, 204, 207, 201, 900, 203, 205, 202, 206]), Some(306));
        assert_eq!(within([200; 7]), None, "too few");
        assert_eq!(within((0..16).map(|n| n * 190)), None, "commands come at any time");
    }

    proptest! {
        #[test]
        fn any_delays_can_be_learned(delays in prop::collection::vec(any::<i64>(), 0..40)) {
            let least = delays.iter().map(|delay| (*delay).max(0)).min().unwrap_or_default();
            prop_assert!(within(delays).is_none_or(|within| within >= least));
        }
    }
}
