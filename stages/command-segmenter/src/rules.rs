//! Who speaks and who answers on one flow.

use sizeleak_frame::{Direction, Record};

/// What was last said on a flow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Conversation {
    /// When the gateway last sent something that may be answered, and how many such records are unanswered.
    asked: Option<(i64, u32)>,
    /// When the gateway last sent a tiny record, and how many such are unanswered.
    pinged: Option<(i64, u32)>,
    /// When the last record began or continued a command with nothing said since.
    commanding: Option<i64>,
    /// When anything was last seen.
    pub(crate) last_ns: i64,
}

/// What a record is, as far as the conversation tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// From the gateway: a reply where a command is open, else a message of its own.
    Gateway,
    /// From the service, soon after a message of the gateway's.
    Answer,
    /// From the service, on its own account.
    Service {
        /// Since when the service has been speaking without pause for the other side, if it has.
        since_ns: Option<i64>,
    },
}

impl Conversation {
    /// Takes the next record of the flow that is not tiny.
    pub(crate) fn turn(&mut self, record: &Record, answer_within_ns: i64) -> Turn {
        self.last_ns = self.last_ns.max(record.time_ns);
        match record.direction {
            Direction::FromGateway => {
                let unanswered = unanswered(self.asked, record.time_ns, answer_within_ns);
                self.asked = Some((record.time_ns, unanswered.saturating_add(1)));
                self.commanding = None;
                Turn::Gateway
            }
            Direction::ToGateway => {
                if answer(&mut self.asked, record.start_ns, answer_within_ns) {
                    return Turn::Answer;
                }
                let since_ns = self.commanding.replace(record.time_ns);
                Turn::Service { since_ns }
            }
        }
    }

    /// Takes the next record of the flow that is tiny: to the gateway it answers a tiny one (a ping), or else, as an
    /// acknowledgement does, one that is not; what follows it is then no answer any more. Where it answers nothing it may
    /// be the end of a command: gives since when the service has been speaking one.
    pub(crate) fn tiny(&mut self, record: &Record, answer_within_ns: i64) -> Option<i64> {
        match record.direction {
            Direction::FromGateway => {
                let unanswered = unanswered(self.pinged, record.time_ns, answer_within_ns);
                self.pinged = Some((record.time_ns, unanswered.saturating_add(1)));
                None
            }
            Direction::ToGateway => {
                let is_answer = answer(&mut self.pinged, record.start_ns, answer_within_ns)
                    || answer(&mut self.asked, record.start_ns, answer_within_ns);
                self.commanding.filter(|_| !is_answer)
            }
        }
    }
}

/// How many of the gateway's messages are unanswered, given the last one's time and how many there were then.
fn unanswered(sent: Option<(i64, u32)>, time_ns: i64, within_ns: i64) -> u32 {
    match sent {
        Some((sent_ns, count)) if time_ns.saturating_sub(sent_ns) <= within_ns => count,
        _ => 0,
    }
}

/// Takes off one of the unanswered messages; false where there is none.
fn answer(sent: &mut Option<(i64, u32)>, time_ns: i64, within_ns: i64) -> bool {
    let Some(rest) = unanswered(*sent, time_ns, within_ns).checked_sub(1) else { return false };
    *sent = sent.map(|(sent_ns, _)| (sent_ns, rest));
    true
}
