//! Counts by name, and of notices by stage and word, where names come from outside: only so many names are kept, and no
//! long ones. And the captures that were skipped or are damaged, from the notices of `capture`: a line for each at the
//! end of a run.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use sizeleak_frame::{Notice, what};

use crate::telemetry::log::{complain, is_quiet, say};

const MAX_NAMES: usize = 200;

const MAX_DETAIL_BYTES: usize = 1000;

/// Longer names are not counted separately, in bytes.
const MAX_NAME_BYTES: usize = 100;

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
    /// Whether another one has another detail.
    pub differ: bool,
}

impl NoticeTally {
    pub fn add(&mut self, notice: &Notice) {
        let mut name = (counted_name(&notice.stage).to_owned(), counted_name(&notice.what).to_owned());
        if self.0.len() >= MAX_NAMES && !self.0.contains_key(&name) {
            name = (OTHER.to_owned(), OTHER.to_owned());
        }
        let detail = notice.detail.as_deref().map(beginning);
        let first = || CountedNotice { times: 0, detail: detail.clone(), differ: false };
        let counted = self.0.entry(name).or_insert_with(first);
        counted.differ |= counted.detail != detail;
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

const STAGE: &str = "capture";

const MAX_LINES: usize = 200;

/// At most this many faults of one capture are told apart; `capture` reports fewer.
const MAX_FAULTS: usize = 16;

/// What separates a capture's name from the place of its damage.
const PLACE: &str = ": is damaged at byte ";

/// The captures that were not read, or not whole, in the order in which that was found.
#[derive(Debug, Clone, Default)]
pub struct CaptureFaults {
    lines: Vec<FaultLine>,
    more: u64,
    /// Whether the run fails because of one of those.
    has_more_errors: bool,
}

#[derive(Debug, Clone)]
struct FaultLine {
    name: Option<String>,
    /// Its different faults, the first one first: name, place and reason.
    faults: Vec<String>,
    is_error: bool,
}

impl CaptureFaults {
    /// Whether a notice is about a capture that was skipped or is damaged.
    pub fn is_one(notice: &Notice) -> bool {
        let words = [what::RESYNC, what::TRUNCATED, what::MALFORMED, what::UNSUPPORTED];
        notice.stage == STAGE && words.contains(&&*notice.what) && notice.detail.is_some()
    }

    /// Takes the next notice; those about anything else, and those that are known from an earlier run over the same
    /// captures, are passed over.
    pub fn add(&mut self, notice: &Notice) {
        let Some(detail) = notice.detail.as_deref().filter(|_| Self::is_one(notice)) else { return };
        let is_error = notice.what == what::TRUNCATED || notice.what == what::MALFORMED;
        let name = detail.split_once(PLACE).filter(|_| notice.what == what::RESYNC).map(|(name, _)| name);
        let rest = |name: &str| detail.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
        let fault = beginning(detail);
        if self.lines.iter().any(|line| line.faults.contains(&fault)) {
            return;
        }
        if let Some(line) = self.lines.iter_mut().find(|line| line.name.as_deref().is_some_and(rest)) {
            if line.faults.len() < MAX_FAULTS {
                line.faults.push(fault);
            }
            line.is_error |= is_error;
        } else if self.lines.len() < MAX_LINES {
            self.lines.push(FaultLine { name: name.map(str::to_owned), faults: vec![fault], is_error });
        } else {
            self.more += 1;
            self.has_more_errors |= is_error;
        }
    }

    /// Prints a line for each capture, except for one that `error`, the error that the run ends with, names alone.
    /// Where only errors are printed, captures that do not fail the run have none.
    pub fn print(&self, error: Option<&str>) {
        if let ([FaultLine { faults, .. }], Some(error)) = (self.lines.as_slice(), error)
            && let [only] = faults.as_slice()
            && error.contains(only)
        {
            return;
        }
        for line in &self.lines {
            let Some((first, others)) = line.faults.split_first() else { continue };
            let more = match others.len() {
                0 => String::new(),
                1 => " (and one more place in it)".to_owned(),
                more => format!(" (and {more} more places in it)"),
            };
            let sentence = format!("{first}{more}");
            if line.is_error {
                complain(STAGE, &sentence);
            } else {
                say(STAGE, &sentence);
            }
        }
        if self.more > 0 && (self.has_more_errors || !is_quiet()) {
            complain(STAGE, &format!("and {} more captures, or places in captures; -v prints each", self.more));
        }
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
        assert!(first.differ);
        let bytes: usize = tally.iter().map(|(stage, what, _)| stage.len() + what.len()).sum();
        assert!(bytes < 10_000, "{bytes}");
    }

    fn faults(notices: &[(&'static str, String)]) -> CaptureFaults {
        let mut faults = CaptureFaults::default();
        for (what, detail) in notices {
            let (stage, what, detail) = (STAGE.into(), (*what).into(), Some(detail.clone()));
            faults.add(&Notice { time_ns: None, stage, flow: None, what, bytes: None, detail });
        }
        faults
    }

    #[test]
    fn a_capture_that_is_damaged_in_several_places_has_one_line() {
        let damage = |place: u64| (what::RESYNC, format!("a: b.pcap{PLACE}{place}: a packet claims 7 bytes"));
        let cut = (what::TRUNCATED, "a: b.pcap: is cut at byte 99".to_owned());
        let other = (what::TRUNCATED, "a: b.pcap2: is cut at byte 9".to_owned());
        let once = [damage(3), other, damage(30), cut];
        // Captures may be read more than once.
        for notices in [&once[..], &[&once[..], &once[..]].concat()] {
            let faults = faults(notices);
            let lines = faults.lines.iter().map(|line| (&*line.faults[0], line.faults.len(), line.is_error));
            let first = "a: b.pcap: is damaged at byte 3: a packet claims 7 bytes";
            assert_eq!(lines.collect::<Vec<_>>(), [(first, 3, true), ("a: b.pcap2: is cut at byte 9", 1, true)]);
        }
    }

    #[test]
    fn captures_have_lines_in_order_and_their_number_is_bounded() {
        let all: Vec<_> = (0..1000).rev().map(|number| (what::MALFORMED, format!("{number}.pcap: is empty"))).collect();
        let faults = faults(&all);
        assert_eq!((faults.lines.len(), faults.more), (MAX_LINES, 800));
        assert!(faults.lines.iter().zip(&all).all(|(line, (_, detail))| line.faults == [detail.as_str()]));
    }

    #[test]
    fn notices_about_anything_else_are_no_faults_of_captures() {
        assert!(faults(&[(what::CLOCK, "5 captures begin at the same time".to_owned())]).lines.is_empty());
    }
}
