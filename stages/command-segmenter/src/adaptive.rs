//! The algorithm that learns from the records themselves what is no command, looking ahead before it decides.

use std::collections::VecDeque;

use sizeleak_frame::{Flow, Record};
use sizeleak_runtime::TwoGenerationCache;

use crate::endpoints::{EndpointPair, FlowEndpoints};
use crate::flow_history::{FlowHistory, SizedRecord};
use crate::options::TimeLimits;
use crate::record_class::{self, RecordClass};
use crate::study;
use crate::traffic_profile::TrafficProfile;

/// Flows whose last words are remembered, half of them at least.
const MOST_FLOWS: usize = 100_000;

/// FlowEndpoints of a gateway and a service whose habits are remembered, half of them at least.
const MOST_PAIRS: usize = 2_000;

/// Records that wait to be decided about; of more, the oldest is decided about early.
const MOST_WAITING: usize = 1 << 16;

/// Learns from each record when it comes, and decides about it when what came after it was learned from too.
#[derive(Debug)]
pub(crate) struct AdaptiveAlgorithm {
    pairs: FlowEndpoints,
    habits: TwoGenerationCache<EndpointPair, TrafficProfile>,
    learned: TwoGenerationCache<u64, FlowHistory>,
    decided: TwoGenerationCache<u64, FlowHistory>,
    waiting: VecDeque<Record>,
    now_ns: Option<i64>,
    pub(crate) decided_early: u64,
}

impl Default for AdaptiveAlgorithm {
    fn default() -> Self {
        Self {
            pairs: FlowEndpoints::default(),
            habits: TwoGenerationCache::new(MOST_PAIRS),
            learned: TwoGenerationCache::new(MOST_FLOWS),
            decided: TwoGenerationCache::new(MOST_FLOWS),
            waiting: VecDeque::new(),
            now_ns: None,
            decided_early: 0,
        }
    }
}

impl AdaptiveAlgorithm {
    /// Takes note of a flow's ends.
    pub(crate) fn flow(&mut self, flow: &Flow) {
        self.pairs.learn(flow);
    }

    /// Learns from a record, and lets it wait.
    pub(crate) fn learn(&mut self, heard: SizedRecord<'_>, times: &TimeLimits) {
        let record = heard.record;
        self.now_ns = self.now_ns.max(Some(record.time_ns));
        let habits = self.habits.get_or_default(*self.pairs.of(record.flow));
        study::learn(heard, self.learned.get_or_default(record.flow), habits, times);
        self.waiting.push_back(record.clone());
    }

    /// The next record that has waited long enough.
    pub(crate) fn ready(&mut self, times: &TimeLimits) -> Option<Record> {
        let now_ns = self.now_ns?;
        let has_waited = |record: &mut Record| now_ns.saturating_sub(record.time_ns) >= times.look_ahead;
        if let Some(record) = self.waiting.pop_front_if(has_waited) {
            return Some(record);
        }
        if self.waiting.len() <= MOST_WAITING {
            return None;
        }
        self.decided_early += 1;
        self.waiting.pop_front()
    }

    /// The next record, however short it has waited.
    pub(crate) fn rest(&mut self) -> Option<Record> {
        self.waiting.pop_front()
    }

    /// Decides about a record.
    pub(crate) fn decide(&mut self, heard: SizedRecord<'_>, times: &TimeLimits) -> RecordClass {
        let flow = heard.record.flow;
        let habits = self.habits.get_or_default(*self.pairs.of(flow));
        record_class::decide(heard, self.decided.get_or_default(flow), habits, times)
    }

    /// How many flows and pairs were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.habits.evicted() + self.decided.evicted()
    }
}
