//! Counts by name, where names come from outside: only so many names are kept, and no long ones.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

/// At most this many names are counted separately, all others together.
pub(crate) const MAX_NAMES: usize = 200;

/// Longer names are not counted separately, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// The name that all others are counted under.
pub(crate) const OTHER: &str = "other";

/// A name as it is counted.
pub(crate) fn counted_name(name: &str) -> &str {
    if name.len() > MAX_NAME_BYTES { OTHER } else { name }
}

/// How often each name has occurred; the number of names is bounded, further ones count as `other`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<String, u64>);

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

    /// Whether nothing has been counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and how often they occurred, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, times)| (name.as_str(), *times))
    }
}

/// As `command 307, flow 4`.
impl Display for Tally {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        for (at, (name, times)) in self.iter().enumerate() {
            write!(formatter, "{}{name} {times}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
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
}
