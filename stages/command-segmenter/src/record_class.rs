//! What a record is, under which condition the message it belongs to is a command, and what each record turned out to be,
//! for whoever wants to know it of more than commands. The algorithms `gap` and `record` classify a
//! record by its time and direction alone.

use sizeleak_frame::{Direction, Record};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::flow_history::{MAX_FLOWS, SizeClass, SizedRecord};
use crate::options::SAME_PACKET_NS;

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

/// The state of `gap` and `record`.
#[derive(Debug)]
pub(crate) struct RuleAlgorithm {
    /// How soon a record must follow to continue a command; `None` if each record is a command of its own.
    continued_within_ns: Option<i64>,
    answer_within_ns: i64,
    flows: TwoGenerationCache<u64, RuleFlow, MAX_FLOWS>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RuleFlow {
    /// The gateway's messages that wait for an answer: the full and the tiny ones.
    requests: Unanswered,
    pings: Unanswered,
    /// When the last record of a command came, if the gateway has been silent since.
    command_ns: Option<i64>,
}

/// Messages that wait for an answer: when the last one came, and how many there are.
#[derive(Debug, Clone, Copy, Default)]
struct Unanswered(Option<(i64, u32)>);

impl RuleAlgorithm {
    pub(crate) fn new(continued_within_ns: Option<i64>, answer_within_ns: i64) -> Self {
        Self { continued_within_ns, answer_within_ns, flows: TwoGenerationCache::default() }
    }

    pub(crate) fn classify(&mut self, sized: SizedRecord<'_>) -> RecordClass {
        let SizedRecord { record, size_class, .. } = sized;
        match size_class {
            SizeClass::Tiny => self.classify_tiny(record),
            SizeClass::Full => self.classify_full(record),
        }
    }

    pub(crate) fn knows(&self, flow: u64) -> bool {
        self.flows.peek(&flow).is_some()
    }

    pub(crate) fn restart_time(&mut self) {
        self.flows.clear();
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.flows.evicted()
    }

    fn classify_full(&mut self, record: &Record) -> RecordClass {
        let flow = self.flows.get_or_default(record.flow);
        if record.direction == Direction::FromGateway {
            flow.requests.add(record.time_ns, self.answer_within_ns);
            flow.command_ns = None;
            return RecordClass::Reply;
        }
        if flow.requests.answer(record.start_ns, self.answer_within_ns) {
            return RecordClass::Answer;
        }
        let command_ns = flow.command_ns.replace(record.time_ns);
        if self.continues(record, command_ns, i64::MAX) { RecordClass::CommandPart } else { RecordClass::CommandStart }
    }

    /// A tiny record to the gateway answers a tiny one, as a pong does, or else a full one, as an acknowledgement does;
    /// the next record is then no answer. If it answers nothing it may be the last part of a command.
    fn classify_tiny(&mut self, record: &Record) -> RecordClass {
        if !self.knows(record.flow) {
            return RecordClass::Tiny;
        }
        let flow = self.flows.get_or_default(record.flow);
        if record.direction == Direction::FromGateway {
            flow.pings.add(record.time_ns, self.answer_within_ns);
            return RecordClass::Tiny;
        }
        let is_answer = flow.pings.answer(record.start_ns, self.answer_within_ns)
            || flow.requests.answer(record.start_ns, self.answer_within_ns);
        let command_ns = flow.command_ns.filter(|_| !is_answer);
        if self.continues(record, command_ns, SAME_PACKET_NS) { RecordClass::CommandPart } else { RecordClass::Tiny }
    }

    fn continues(&self, record: &Record, command_ns: Option<i64>, within_ns: i64) -> bool {
        self.continued_within_ns.zip(command_ns).is_some_and(|(continued_within_ns, command_ns)| {
            record.start_ns.saturating_sub(command_ns) <= continued_within_ns.min(within_ns)
        })
    }
}

impl Unanswered {
    fn add(&mut self, time_ns: i64, within_ns: i64) {
        self.0 = Some((time_ns, self.count(time_ns, within_ns).saturating_add(1)));
    }

    /// Removes one of the messages; false if there is none.
    fn answer(&mut self, time_ns: i64, within_ns: i64) -> bool {
        let Some(rest) = self.count(time_ns, within_ns).checked_sub(1) else { return false };
        self.0 = self.0.map(|(last_ns, _)| (last_ns, rest));
        true
    }

    fn count(self, time_ns: i64, within_ns: i64) -> u32 {
        self.0.filter(|(last_ns, _)| time_ns.saturating_sub(*last_ns) <= within_ns).map_or(0, |(_, count)| count)
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
