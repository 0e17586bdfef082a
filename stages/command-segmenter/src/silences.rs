//! How long all traffic was silent, to distinguish a silence that is usual from one that is not.

/// Fewer records show no usual silence.
const MIN_RECORDS: u64 = 100;

/// A silence this many times as long as every earlier one is unusual.
const UNUSUAL: i64 = 10;

/// The longest silence between two records.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    records: u64,
    last_ns: i64,
    longest_ns: i64,
}

impl Silences {
    /// Adds the next record.
    #[inline]
    pub(crate) fn add(&mut self, time_ns: i64) {
        if self.records > 0 {
            self.longest_ns = self.longest_ns.max(time_ns.saturating_sub(self.last_ns));
        }
        self.records += 1;
        self.last_ns = time_ns;
    }

    /// The longest silence so far, if this one is unusual compared with it.
    pub(crate) fn exceeded_by(&self, silence_ns: i64) -> Option<i64> {
        let is_unusual = self.records >= MIN_RECORDS && silence_ns / UNUSUAL > self.longest_ns;
        is_unusual.then_some(self.longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_unusual_if_none_of_many_was_a_tenth_as_long() {
        let mut silences = Silences::default();
        for second in 0..99 {
            silences.add(second * 1_000);
            assert_eq!(silences.exceeded_by(i64::MAX), None, "too few records");
        }
        silences.add(98_000 + 5_000);
        assert_eq!((silences.exceeded_by(50_000), silences.exceeded_by(50_010)), (None, Some(5_000)));
        silences.add(i64::MIN);
        silences.add(i64::MAX);
        assert_eq!(silences.exceeded_by(i64::MAX), None);
    }
}
