//! The algorithms `gap` and `record`: they classify a record by its time and direction alone.

use sizeleak_frame::{Direction, Record};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::flow_history::{MAX_FLOWS, SizeClass, SizedRecord};
use crate::options::SAME_PACKET_NS;
use crate::record_class::RecordClass;

/// The state of `gap` and `record`.
#[derive(Debug)]
pub(crate) struct RuleAlgorithm {
    /// How soon a record must follow to continue a command; `None` if each record is a command of its own.
    continued_within_ns: Option<i64>,
    answer_within_ns: i64,
    flows: TwoGenerationCache<u64, RuleFlow>,
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
        Self { continued_within_ns, answer_within_ns, flows: TwoGenerationCache::new(MAX_FLOWS) }
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
