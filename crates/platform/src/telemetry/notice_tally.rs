//! Counts notices by stage and word, with the detail of the first one of each.

use std::collections::BTreeMap;

use sizeleak_frame::Notice;

use crate::telemetry::tally::{MAX_NAMES, OTHER, counted_name};

/// A longer detail is cut, in bytes.
const MAX_DETAIL_BYTES: usize = 1000;

/// Notices by stage and word. Their number is bounded: further ones count as `other`.
#[derive(Debug, Clone, Default)]
pub struct NoticeTally(BTreeMap<(String, String), CountedNotice>);

/// Notices with the same stage and word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedNotice {
    /// How many there were.
    pub times: u64,
    /// The beginning of the first one's detail.
    pub detail: Option<String>,
}

impl NoticeTally {
    /// Counts a notice.
    pub fn add(&mut self, notice: &Notice) {
        let mut name = (counted_name(&notice.stage).to_owned(), counted_name(&notice.what).to_owned());
        if self.0.len() >= MAX_NAMES && !self.0.contains_key(&name) {
            name = (OTHER.to_owned(), OTHER.to_owned());
        }
        let first = || CountedNotice { times: 0, detail: notice.detail.as_deref().map(beginning) };
        let counted = self.0.entry(name).or_insert_with(first);
        counted.times = counted.times.saturating_add(1);
    }

    /// The stages, the words and the notices, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &CountedNotice)> {
        self.0.iter().map(|((stage, what), counted)| (stage.as_str(), what.as_str(), counted))
    }
}

/// The beginning of a detail, which may be of any length.
pub(crate) fn beginning(detail: &str) -> String {
    let end = (0..=MAX_DETAIL_BYTES.min(detail.len())).rev().find(|end| detail.is_char_boundary(*end)).unwrap_or(0);
    detail.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(stage: &str, what: &str, detail: String) -> Notice {
        Notice {
            time_ns: None,
            stage: stage.to_owned().into(),
            flow: None,
            what: what.to_owned().into(),
            bytes: None,
            detail: Some(detail),
        }
    }

    #[test]
    fn names_and_details_are_bounded() {
        let mut tally = NoticeTally::default();
        tally.add(&notice("mine", "word", "ä".repeat(1 << 20)));
        for number in 0..1000 {
            tally.add(&notice(&format!("stage {number}"), &"w".repeat(1 << 10), String::new()));
        }
        tally.add(&notice("mine", "word", "second".to_owned()));
        assert_eq!(tally.iter().count(), MAX_NAMES + 1);
        assert_eq!(tally.iter().map(|(.., counted)| counted.times).sum::<u64>(), 1002);
        let (.., first) = tally.iter().find(|(stage, ..)| *stage == "mine").unwrap();
        assert_eq!((first.times, first.detail.as_ref().map(String::len)), (2, Some(MAX_DETAIL_BYTES)));
        let bytes: usize = tally.iter().map(|(stage, what, _)| stage.len() + what.len()).sum();
        assert!(bytes < 10_000, "{bytes}");
    }
}
