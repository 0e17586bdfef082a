//! The algorithms `gap` and `record`: they classify a record by its time and direction alone.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_frame::{Direction, Record};

use crate::flow_history::{SizeClass, SizedRecord};
use crate::options::SAME_PACKET_NS;
use crate::record_class::RecordClass;

/// More flows than this are not remembered; those silent for longest are evicted.
pub(crate) const MAX_FLOWS: usize = 100_000;

/// The state of `gap` and `record`.
#[derive(Debug)]
pub(crate) struct RuleAlgorithm {
    /// How soon a record must follow to continue a command; `None` if each record is a command of its own.
    continued_within_ns: Option<i64>,
    answer_within_ns: i64,
    flows: HashMap<u64, RuleFlow, RandomState>,
    evicted: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct RuleFlow {
    /// The gateway's messages that wait for an answer: the full and the tiny ones.
    requests: Unanswered,
    pings: Unanswered,
    /// When the last record of a command came, if the gateway has been silent since.
    command_ns: Option<i64>,
    /// When the last record that is not tiny came.
    last_ns: i64,
}

/// Messages that wait for an answer: when the last one came, and how many there are.
#[derive(Debug, Clone, Copy, Default)]
struct Unanswered(Option<(i64, u32)>);

impl RuleAlgorithm {
    pub(crate) fn new(continued_within_ns: Option<i64>, answer_within_ns: i64) -> Self {
        Self { continued_within_ns, answer_within_ns, flows: HashMap::default(), evicted: 0 }
    }

    pub(crate) fn classify(&mut self, sized: SizedRecord<'_>) -> RecordClass {
        let SizedRecord { record, size_class, .. } = sized;
        match size_class {
            SizeClass::Tiny => self.classify_tiny(record),
            SizeClass::Full => {
                let class = self.classify_full(record);
                self.evict();
                class
            }
        }
    }

    pub(crate) fn knows(&self, flow: u64) -> bool {
        self.flows.contains_key(&flow)
    }

    pub(crate) fn restart_time(&mut self) {
        self.flows.clear();
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn classify_full(&mut self, record: &Record) -> RecordClass {
        let flow = self.flows.entry(record.flow).or_default();
        flow.last_ns = flow.last_ns.max(record.time_ns);
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
        let Some(flow) = self.flows.get_mut(&record.flow) else { return RecordClass::Tiny };
        if record.direction == Direction::FromGateway {
            flow.pings.add(record.time_ns, self.answer_within_ns);
            return RecordClass::Tiny;
        }
        let is_answer = flow.pings.answer(record.start_ns, self.answer_within_ns)
            || flow.requests.answer(record.start_ns, self.answer_within_ns);
        let command_ns = flow.command_ns.filter(|_| !is_answer);
        if self.continues(record, command_ns, SAME_PACKET_NS) { RecordClass::CommandPart } else { RecordClass::Tiny }
    }

    /// Whether a record continues the command whose last record came at a time.
    fn continues(&self, record: &Record, command_ns: Option<i64>, within_ns: i64) -> bool {
        self.continued_within_ns.zip(command_ns).is_some_and(|(continued_within_ns, command_ns)| {
            record.start_ns.saturating_sub(command_ns) <= continued_within_ns.min(within_ns)
        })
    }

    /// Evicts half of the flows if there are too many: half, so that each flow of a flood costs constant time.
    fn evict(&mut self) {
        let before = self.flows.len();
        if before <= MAX_FLOWS {
            return;
        }
        let mut times: Vec<i64> = self.flows.values().map(|flow| flow.last_ns).collect();
        let (_, &mut median_ns, _) = times.select_nth_unstable(MAX_FLOWS / 2);
        // Of flows silent since the same time those with lower numbers are kept, whatever the order of the table.
        let later = self.flows.iter().filter(|(_, flow)| flow.last_ns >= median_ns);
        let mut kept: Vec<u64> = later.map(|(number, _)| *number).collect();
        kept.sort_unstable();
        kept.truncate(MAX_FLOWS / 2 + 1);
        self.flows.retain(|number, _| kept.binary_search(number).is_ok());
        self.evicted += (before - self.flows.len()) as u64;
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

    /// How many messages wait, if the last one came within a time.
    fn count(self, time_ns: i64, within_ns: i64) -> u32 {
        self.0.filter(|(last_ns, _)| time_ns.saturating_sub(*last_ns) <= within_ns).map_or(0, |(_, count)| count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::from;

    #[test]
    fn a_flood_of_flows_evicts_those_silent_for_longest() {
        let mut algorithm = RuleAlgorithm::new(None, 0);
        for flow in 0..=MAX_FLOWS as u32 {
            let record = Record { flow: flow.into(), ..from(flow.into(), 90) };
            algorithm.classify(SizedRecord::new(&record, SizeClass::Full));
        }
        assert_eq!(algorithm.flows.len(), MAX_FLOWS / 2 + 1);
        assert_eq!(algorithm.evicted(), MAX_FLOWS as u64 / 2);
        assert!(algorithm.flows.contains_key(&(MAX_FLOWS as u64)) && !algorithm.flows.contains_key(&0));
    }
}
