//! Which captures are processed, by the times of their packets.

use crate::capture_file::{CaptureFile, FileVerdict};

/// A range of time. Captures count as a whole: one with a packet on either side of a bound is inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first moment, in nanoseconds since 1970; `None` without a bound.
    pub since_ns: Option<i64>,
    /// The first moment behind it, in nanoseconds since 1970; `None` without a bound.
    pub until_ns: Option<i64>,
}

impl TimeRange {
    /// Whether it has no bound.
    pub(crate) fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Gives a capture the verdict that it has in this range, whatever range it was looked at for before.
    pub(crate) fn judge(&self, file: &mut CaptureFile) {
        if !matches!(file.verdict, FileVerdict::Whole | FileVerdict::Damaged | FileVerdict::Outside) {
            return;
        }
        file.verdict = match file.damaged_places {
            _ if self.is_outside(file) => FileVerdict::Outside,
            0 => FileVerdict::Whole,
            _ => FileVerdict::Damaged,
        };
    }

    /// Whether a capture has packets, but none from its first to its last one can be in the range.
    fn is_outside(&self, file: &CaptureFile) -> bool {
        let is_before = file.last_ns.zip(self.since_ns).is_some_and(|(last, since)| last < since);
        is_before || file.first_ns.zip(self.until_ns).is_some_and(|(first, until)| first >= until)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn captures_without_a_packet_in_the_range_are_outside_until_the_range_has_one() {
        let file = CaptureFile::unread(Path::new("a"), FileVerdict::Damaged, String::new());
        let mut file = CaptureFile { first_ns: Some(10), last_ns: Some(19), damaged_places: 1, ..file };
        let mut verdict = |since_ns, until_ns| {
            TimeRange { since_ns, until_ns }.judge(&mut file);
            file.verdict
        };
        assert_eq!(verdict(Some(20), None), FileVerdict::Outside);
        assert_eq!(verdict(None, Some(10)), FileVerdict::Outside);
        for (since, until) in [(Some(19), None), (None, Some(11)), (Some(12), Some(13)), (None, None)] {
            assert_eq!(verdict(since, until), FileVerdict::Damaged, "{since:?} {until:?}");
        }
        let mut empty = CaptureFile::unread(Path::new("a"), FileVerdict::Whole, String::new());
        TimeRange { since_ns: Some(20), until_ns: None }.judge(&mut empty);
        assert_eq!(empty.verdict, FileVerdict::Whole, "a capture without packets has no times");
        let mut other = CaptureFile { verdict: FileVerdict::NoCapture, ..file.clone() };
        TimeRange { since_ns: Some(20), until_ns: None }.judge(&mut other);
        assert_eq!(other.verdict, FileVerdict::NoCapture);
    }
}
