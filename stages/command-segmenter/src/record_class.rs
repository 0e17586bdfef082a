//! What a record is, under which condition the message it belongs to is a command, and what each record turned out to be,
//! for whoever wants to know it of more than commands.

use sizeleak_frame::{Direction, Record};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordClass {
    CommandStart,
    CommandPart,
    /// The service's answer to the gateway.
    Answer,
    KeepAlive,
    /// The gateway's reply, if a command is open.
    Reply,
    Telemetry,
    Tiny,
    /// A record of the service whose size was never seen and fits no actions.
    Unexplained,
}

/// When a message of the service is a command: that may depend on the replies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandCondition {
    Always,
    Never,
    IfReplied,
    IfSilent,
    /// It is as long as answers are: only the gateway's reply shows that it is none that is late or whose request was not
    /// captured.
    UnlessLate,
}

impl CommandCondition {
    pub(crate) fn is_met(self, replies: u32) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::IfReplied | Self::UnlessLate => replies > 0,
            Self::IfSilent => replies == 0,
        }
    }
}

/// What a record is, and when the open message of its flow, this record included, is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) class: RecordClass,
    pub(crate) condition: CommandCondition,
    /// The index of the request that the message answers.
    pub(crate) answered_request: Option<usize>,
}

impl From<RecordClass> for Decision {
    fn from(class: RecordClass) -> Self {
        Self { class, condition: CommandCondition::Always, answered_request: None }
    }
}

impl Decision {
    /// When a message is a command that consists of several records and was classified as a whole.
    pub(crate) fn condition_of_whole(self) -> CommandCondition {
        match self.class {
            RecordClass::CommandStart | RecordClass::CommandPart => self.condition,
            _ => CommandCondition::Never,
        }
    }
}

/// What a record of application data is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordRole {
    /// It belongs to a message that is a command or, from the gateway, a report; whether that is emitted may depend on
    /// its replies.
    Message,
    /// The other side's reply to a command or to a report.
    Reply,
    /// An answer to what the other side had asked.
    Answer,
    /// It comes by a timer: a keep-alive, or the request of a poll.
    Periodic,
    /// Too few bytes for any of these: a ping, an acknowledgement.
    Small,
    Other,
}

/// A record of application data and what it is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassifiedRecord {
    pub flow: u64,
    pub direction: Direction,
    /// Its length on the wire in bytes.
    pub length: u32,
    pub role: RecordRole,
}

impl ClassifiedRecord {
    /// A record with its role, by what commands and reports made of it. The class is [`RecordClass::Reply`] only where it
    /// is a reply to a command; as a report, a record that is none and that says nothing is [`RecordClass::Telemetry`].
    pub(crate) fn new(record: &Record, class: RecordClass, as_report: RecordClass) -> Self {
        let Record { flow, direction, length, .. } = *record;
        Self { flow, direction, length, role: role(class, as_report) }
    }
}

fn role(class: RecordClass, as_report: RecordClass) -> RecordRole {
    match (class, as_report) {
        (RecordClass::CommandStart | RecordClass::CommandPart, _)
        | (_, RecordClass::CommandStart | RecordClass::CommandPart) => RecordRole::Message,
        (RecordClass::Reply, _) | (_, RecordClass::Reply) => RecordRole::Reply,
        (RecordClass::Tiny, _) => RecordRole::Small,
        (RecordClass::KeepAlive, _) | (_, RecordClass::KeepAlive) => RecordRole::Periodic,
        (RecordClass::Answer, _) | (_, RecordClass::Answer) => RecordRole::Answer,
        (RecordClass::Telemetry | RecordClass::Unexplained, _) => RecordRole::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_count_where_commands_say_nothing() {
        assert_eq!(role(RecordClass::Telemetry, RecordClass::KeepAlive), RecordRole::Periodic);
        assert_eq!(role(RecordClass::Telemetry, RecordClass::Telemetry), RecordRole::Other);
        assert_eq!(role(RecordClass::Reply, RecordClass::Telemetry), RecordRole::Reply);
        assert_eq!(role(RecordClass::CommandStart, RecordClass::KeepAlive), RecordRole::Message);
        assert_eq!(role(RecordClass::Answer, RecordClass::Reply), RecordRole::Reply);
    }
}
