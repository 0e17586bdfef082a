//! The names of kinds of frames, as users type them, and those that a stream has.

use std::collections::BTreeSet;

use sizeleak_frame::{Frame, KINDS, what};
use sizeleak_pipeline::suggestion::did_you_mean;
use sizeleak_platform::telemetry::log::say;

/// The name of a kind that this program knows.
pub(super) fn known_kind(text: &str) -> Result<String, String> {
    let kind = kind(text)?;
    if KINDS.contains(&&*kind) { Ok(kind) } else { Err(unknown(&kind)) }
}

/// The name of a kind, known or not; not one that is nearly that of a known kind.
pub(super) fn kind(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !is_name {
        return Err("this is not the name of a kind".to_owned() + &did_you_mean(text, KINDS));
    }
    if KINDS.contains(&text) || did_you_mean(text, KINDS).is_empty() { Ok(text.to_owned()) } else { Err(unknown(text)) }
}

/// Why a kind is not accepted.
fn unknown(kind: &str) -> String {
    format!("there is no kind `{kind}`{} (there are {})", did_you_mean(kind, KINDS), KINDS.join(", "))
}

/// The most kinds of a stream that are remembered.
const MAX_KINDS: usize = 64;

/// The kinds that a stream has.
#[derive(Debug, Default)]
pub(super) struct KindsSeen {
    kinds: BTreeSet<String>,
    /// What is wrong with the times of the captures, as far as that was said.
    clock: Option<String>,
}

impl KindsSeen {
    /// Takes the next frame.
    pub(super) fn add(&mut self, frame: &Frame) {
        let kind = frame.kind();
        if !self.kinds.contains(kind) && self.kinds.len() < MAX_KINDS {
            self.kinds.insert(kind.to_owned());
        }
        if let Frame::Notice(notice) = frame
            && notice.stage == "capture"
            && notice.what == what::CLOCK
        {
            self.clock.clone_from(&notice.detail);
        }
    }

    /// Says which of the kinds that were wanted were not there.
    pub(super) fn report_absent(&self, wanted: &[String]) {
        for kind in wanted.iter().filter(|kind| !self.kinds.contains(*kind)) {
            let known = if KINDS.contains(&&**kind) { "" } else { ", a kind that this program does not know" };
            let seen = self.kinds.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            // Records need no times; what is made of them does.
            let why = match &self.clock {
                Some(clock) if matches!(&**kind, "command" | "correction" | "identification") => {
                    format!(". Why: {clock}")
                }
                _ => String::new(),
            };
            say("note", &format!("there is no frame of kind `{kind}`{known}; the stream has {seen}{why}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_near_a_known_kind_are_refused_and_suggest_it() {
        for (typed, meant) in [
            ("packet", "packets"),
            ("records", "record"),
            ("comand", "command"),
            ("identifications", "identification"),
            ("Notice", "notice"),
        ] {
            for fault in [kind(typed).unwrap_err(), known_kind(typed).unwrap_err()] {
                assert!(fault.contains(&format!("did you mean `{meant}`?")), "{fault}");
            }
        }
    }

    #[test]
    fn kinds_of_other_programs_are_accepted_where_any_stream_is_shown() {
        assert_eq!(kind("dance").as_deref(), Ok("dance"));
        assert!(known_kind("dance").unwrap_err().contains("there is no kind `dance` (there are hello, "));
        assert!(KINDS.iter().all(|known| known_kind(known).as_deref() == Ok(known)));
    }
}
