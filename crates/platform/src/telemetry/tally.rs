//! Counts by name, and of notices by stage and word, where names come from outside: only so many names are kept, and no
//! long ones.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use sizeleak_frame::Notice;

/// At most this many names are counted separately, all others together.
const MAX_NAMES: usize = 200;

/// A longer detail of a notice is cut, in bytes.
const MAX_DETAIL_BYTES: usize = 1000;

/// Longer names are not counted separately, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The name that all others are counted under.
const OTHER: &str = "other";

fn counted_name(name: &str) -> &str {
    if name.len() > MAX_NAME_BYTES { OTHER } else { name }
}

/// How often each name has occurred; the number of names is bounded, further ones count as `other`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(pub(crate) BTreeMap<String, u64>);

impl Tally {
    /// Counts `times` occurrences of a name; 0 leaves no trace.
    pub fn add(&mut self, name: &str, times: u64) {
        let name = counted_name(name);
        if let Some(before) = self.0.get_mut(name) {
            *before = before.saturating_add(times);
        } else if times > 0 && self.0.len() < MAX_NAMES {
            self.0.insert(name.to_owned(), times);
        } else if times > 0 {
            let others = self.0.entry(OTHER.to_owned()).or_default();
            *others = others.saturating_add(times);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, times)| (name.as_str(), *times))
    }
}

impl Display for Tally {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for (at, (name, times)) in self.iter().enumerate() {
            write!(formatter, "{}{name} {times}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// Notices by stage and word. Their number is bounded: further ones count as `other`.
#[derive(Debug, Clone, Default)]
pub struct NoticeTally(BTreeMap<(String, String), CountedNotice>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountedNotice {
    pub times: u64,
    /// The beginning of the first one's detail.
    pub detail: Option<String>,
}

impl NoticeTally {
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

    #[test]
    fn number_and_length_of_names_are_bounded() {
        let mut tally = Tally::default();
        for number in 0..1000 {
            tally.add(&format!("word {number}"), 2);
        }
        tally.add("word 0", 1);
        tally.add(&"x".repeat(1 << 20), 1);
        tally.add("absent", 0);
        assert_eq!(tally.iter().count(), MAX_NAMES + 1);
        assert_eq!(tally.iter().map(|(_, times)| times).sum::<u64>(), 2002);
        let times = |wanted: &str| tally.iter().find(|(name, _)| *name == wanted).map(|(_, times)| times);
        assert_eq!((times("word 0"), times("absent")), (Some(3), None));
        assert_eq!(times(OTHER), Some(2 * (1000 - MAX_NAMES as u64) + 1));
    }

    #[test]
    fn tally_is_shown_as_a_list() {
        let mut tally = Tally::default();
        for (name, times) in [("flow", 4), ("command", 307)] {
            tally.add(name, times);
        }
        assert_eq!(tally.to_string(), "command 307, flow 4");
    }

    fn notice(stage: &str, what: &str, detail: String) -> Notice {
        Notice::new(stage.to_owned(), what.to_owned(), detail)
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
