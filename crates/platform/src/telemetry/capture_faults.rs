//! Captures that were skipped or are damaged: a line for each at the end of a run, from the notices of `capture`.

use sizeleak_frame::{Notice, what};

use crate::telemetry::log::{complain, is_quiet, say};
use crate::telemetry::tally::beginning;

const STAGE: &str = "capture";

/// At most this many captures have a line of their own.
const MAX_LINES: usize = 200;

/// At most this many faults of one capture are told apart; `capture` reports fewer.
const MAX_FAULTS: usize = 16;

/// What separates a capture's name from the place of its damage.
const PLACE: &str = ": is damaged at byte ";

/// The captures that were not read, or not whole, in the order in which that was found.
#[derive(Debug, Clone, Default)]
pub struct CaptureFaults {
    lines: Vec<FaultLine>,
    /// Notices beyond those lines.
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
