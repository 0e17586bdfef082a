//! The algorithm `adaptive`: it learns from the records themselves, and looks ahead before it classifies them. And
//! reports, messages that the gateway sends unprompted: they are found in the same way with the two directions
//! exchanged, so that periodic requests and answers of the gateway are none.

use std::collections::VecDeque;

use sizeleak_frame::{Direction, Flow, Record};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::flow_history::{
    EndpointPair, FlowHistory, MAX_FLOWS, Request, ServiceBurst, SizeClass, SizedRecord, Tunnels,
};
use crate::open_commands::OpenCommands;
use crate::options::{SAME_PACKET_NS, TimeLimits};
use crate::record_class::{CommandCondition, Decision, RecordClass};
use crate::traffic_profile::{GatewayLengthStats, LengthRole, ServiceLengthStats, TrafficProfile};

const MAX_PROFILES: usize = 2_000;

/// The most records that wait; above that, the oldest is classified early. With the next one they fill a ring whose length
/// is a power of two.
const MAX_WAITING: usize = (1 << 16) - 1;

#[derive(Debug, Default)]
pub(crate) struct AdaptiveAlgorithm {
    pub(crate) flows: ProfiledFlows,
    /// By time, and by arrival where times are equal: first those that were learned from.
    waiting: VecDeque<Record>,
    learned: usize,
    now_ns: Option<i64>,
    pub(crate) decided_early: u64,
}

impl AdaptiveAlgorithm {
    pub(crate) fn add(&mut self, record: &Record) {
        self.now_ns = self.now_ns.max(Some(record.time_ns));
        let unlearned = self.waiting.range(self.learned..).rev();
        let later = unlearned.take_while(|waiting| waiting.time_ns > record.time_ns).count();
        self.waiting.insert(self.waiting.len() - later, record.clone());
    }

    /// Learns from the next record that none with an earlier time will follow, or from the next one at all.
    pub(crate) fn learn_next(&mut self, which: Queued, min_size: u64, limits: &TimeLimits) -> Option<&Record> {
        let record = self.waiting.get(self.learned)?;
        let is_ordered = self.now_ns?.saturating_sub(record.time_ns) >= limits.hole_wait_ns.min(limits.look_ahead_ns);
        let is_forced = self.learned == 0 && self.waiting.len() > MAX_WAITING;
        if which == Queued::Due && !is_ordered && !is_forced {
            return None;
        }
        self.learned += 1;
        self.flows.learn(SizedRecord::new(record, SizeClass::of(record, min_size)), limits);
        Some(record)
    }

    pub(crate) fn next_due(&mut self, limits: &TimeLimits) -> Option<Record> {
        let first = self.waiting.front().filter(|_| self.learned > 0)?;
        let is_due = self.now_ns?.saturating_sub(first.time_ns) >= limits.look_ahead_ns;
        if !is_due && self.waiting.len() <= MAX_WAITING {
            return None;
        }
        self.decided_early += u64::from(!is_due);
        self.next()
    }

    pub(crate) fn next(&mut self) -> Option<Record> {
        self.learned = self.learned.checked_sub(1)?;
        self.waiting.pop_front()
    }

    /// Forgets the times of earlier records, of which none waits; what was learned from them stays.
    pub(crate) fn restart_time(&mut self) {
        self.now_ns = None;
        self.flows.restart_time();
    }
}

#[derive(Debug, Default)]
pub(crate) struct ProfiledFlows {
    tunnels: Tunnels,
    profiles: TwoGenerationCache<EndpointPair, TrafficProfile, MAX_PROFILES>,
    flows: TwoGenerationCache<u64, ProfiledFlow, MAX_FLOWS>,
}

#[derive(Debug, Default)]
struct ProfiledFlow {
    endpoints: Option<EndpointPair>,
    /// Its history up to the last record, and up to the last one that was classified.
    learned: FlowHistory,
    classified: FlowHistory,
}

impl ProfiledFlows {
    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.flows.get_or_default(flow.flow).endpoints = Some(self.tunnels.endpoints(flow));
    }

    pub(crate) fn add_handshake(&mut self, record: &Record) {
        let ProfiledFlow { learned, classified, .. } = self.flows.get_or_default(record.flow);
        learned.add_handshake(record);
        classified.add_handshake(record);
    }

    pub(crate) fn restart_time(&mut self) {
        for flow in self.flows.values_mut() {
            *flow = ProfiledFlow { endpoints: flow.endpoints, ..ProfiledFlow::default() };
        }
    }

    pub(crate) fn knows(&self, flow: u64) -> bool {
        self.flows.peek(&flow).is_some_and(|flow| flow.learned.is_known())
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.profiles.evicted() + self.flows.evicted()
    }

    #[inline]
    fn profiled(&mut self, number: u64) -> (&mut ProfiledFlow, &mut TrafficProfile) {
        let flow = self.flows.get_or_default(number);
        let endpoints = *flow.endpoints.get_or_insert(EndpointPair::Flow(number));
        (flow, self.profiles.get_or_default(endpoints))
    }

    pub(crate) fn learn(&mut self, sized: SizedRecord<'_>, limits: &TimeLimits) {
        let (flow, profile) = self.profiled(sized.record.flow);
        profile.learn(sized, &mut flow.learned, limits);
    }

    pub(crate) fn classify(&mut self, sized: SizedRecord<'_>, limits: &TimeLimits) -> Decision {
        let (ProfiledFlow { learned, classified: history, .. }, profile) = self.profiled(sized.record.flow);
        let classifier = ProfileClassifier { profile, limits };
        let is_in_use = history.is_known() || learned.has_gateway_record;
        let class = match sized.record.direction {
            Direction::FromGateway => classifier.classify_gateway(sized, history),
            Direction::ToGateway => classifier.classify_service(sized, history),
        };
        match class {
            RecordClass::CommandStart => history.service_burst = ServiceBurst::Command,
            RecordClass::Answer => history.service_burst = ServiceBurst::Answer,
            // Small records may come between the parts of a message.
            RecordClass::Tiny if history.service_burst == ServiceBurst::Command => {}
            RecordClass::KeepAlive | RecordClass::Unexplained | RecordClass::Tiny => {
                history.service_burst = ServiceBurst::None;
            }
            RecordClass::CommandPart | RecordClass::Reply | RecordClass::Telemetry => {}
        }
        history.remember(sized, limits.same_write_ns());
        // A gateway that says nothing on a connection, before or after, does not act: it may not even have the
        // connection any more.
        let role = || profile.service_stats(sized.record.length).map(ServiceLengthStats::role);
        let condition = match class {
            RecordClass::CommandStart if role() == Some(LengthRole::AlwaysAnswer) => CommandCondition::UnlessLate,
            _ if is_in_use => CommandCondition::Always,
            _ => CommandCondition::IfReplied,
        };
        Decision { condition, ..class.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    Due,
    All,
}

struct ProfileClassifier<'a> {
    profile: &'a TrafficProfile,
    limits: &'a TimeLimits,
}

impl ProfileClassifier<'_> {
    fn classify_gateway(&self, sized: SizedRecord<'_>, history: &mut FlowHistory) -> RecordClass {
        let length = sized.record.length;
        if !self.profile.continues_full_record(sized.record, history, self.limits) {
            history.add_request(sized, length);
        }
        let is_telemetry = || self.profile.gateway_stats(length).is_some_and(GatewayLengthStats::is_telemetry);
        match sized.size_class {
            SizeClass::Tiny => RecordClass::Tiny,
            SizeClass::Full if is_telemetry() => RecordClass::Telemetry,
            SizeClass::Full => RecordClass::Reply,
        }
    }

    fn classify_service(&self, sized: SizedRecord<'_>, history: &mut FlowHistory) -> RecordClass {
        let Self { profile, limits } = self;
        let record = sized.record;
        if profile.continues_full_record(record, history, limits) {
            match history.service_burst {
                ServiceBurst::Command => return RecordClass::CommandPart,
                ServiceBurst::Answer => return RecordClass::Answer,
                ServiceBurst::None => {}
            }
        }
        let is_tiny = sized.size_class == SizeClass::Tiny;
        // The length of a part says nothing about the message.
        let is_part = profile.is_full(record.direction, record.length);
        let stats = profile.service_stats(record.length).filter(|_| !is_part);
        let role = stats.map_or(LengthRole::Unknown, ServiceLengthStats::role);
        if let Some(index) = self.answered_request(sized, role, history) {
            history.remove_request(index);
            return if is_tiny { RecordClass::Tiny } else { RecordClass::Answer };
        }
        let continues = |burst, within_ns| history.service_burst == burst && history.is_continued_by(record, within_ns);
        if is_tiny {
            let is_last_part = continues(ServiceBurst::Command, SAME_PACKET_NS);
            return if is_last_part { RecordClass::CommandPart } else { RecordClass::Tiny };
        }
        let is_answer = matches!(role, LengthRole::Answer | LengthRole::AlwaysAnswer);
        let continues_answer = || is_answer && continues(ServiceBurst::Answer, limits.gap_ns);
        if profile.is_answer_to_small(sized, history, limits) {
            RecordClass::Answer
        } else if profile.is_keep_alive(record.length, history.arrival(record)) {
            RecordClass::KeepAlive
        } else if continues_answer() {
            RecordClass::Answer
        } else if role == LengthRole::AlwaysAnswer {
            RecordClass::CommandStart
        } else if continues(ServiceBurst::Command, limits.same_write_ns())
            || history.service_burst == ServiceBurst::Command && history.continues_small(record, limits.gap_ns)
        {
            RecordClass::CommandPart
        } else if profile.is_late_answer(record, history) {
            RecordClass::Answer
        } else {
            RecordClass::CommandStart
        }
    }

    fn answered_request(&self, sized: SizedRecord<'_>, role: LengthRole, history: &FlowHistory) -> Option<usize> {
        let is_answered = |request: &Request| self.profile.is_answered(request.size);
        let may_answer = |request: &Request| self.profile.may_answer(request.size, sized.record.length);
        let is_usual = |request: &Request| self.profile.is_usual_answer(request.size, sized.record.length);
        let answer_within_ns = self.profile.answer_within_ns(self.limits);
        let request = match role {
            LengthRole::Unsolicited if !history.awaits_first_answer() => {
                history.find_request(sized, answer_within_ns, is_usual)
            }
            // A length that always answers may do so late.
            LengthRole::AlwaysAnswer => history.find_request(sized, self.limits.reply_within_ns, is_answered),
            LengthRole::Answer | LengthRole::Unsolicited => history.find_request(sized, answer_within_ns, is_answered),
            LengthRole::Unknown => history.find_request(sized, answer_within_ns, may_answer),
        };
        request.map(|(index, _)| index)
    }
}

/// Reports, which are learned and classified as if the service had sent them.
impl ProfiledFlows {
    pub(crate) fn learn_report(&mut self, record: &Record, min_size: u64, limits: &TimeLimits) {
        let reversed = reversed(record);
        self.learn(SizedRecord::new(&reversed, SizeClass::of(record, min_size)), limits);
    }

    /// Adds a record to the open commands if it is a report or the reply to one, unless it is part of a command or of the
    /// replies to one. Returns what it is as a report; telemetry if it is none of that.
    pub(crate) fn classify_report(
        &mut self,
        sized: SizedRecord<'_>,
        is_in_command: bool,
        commands: &mut OpenCommands,
        limits: &TimeLimits,
    ) -> RecordClass {
        let record = sized.record;
        let as_command = reversed(record);
        let Decision { class, condition, .. } = self.classify(SizedRecord { record: &as_command, ..sized }, limits);
        match (record.direction, class) {
            _ if is_in_command => RecordClass::Telemetry,
            (Direction::FromGateway, RecordClass::CommandPart) if commands.extend(record, condition) => class,
            (Direction::FromGateway, RecordClass::CommandStart | RecordClass::CommandPart) => {
                commands.start(record, condition, limits);
                RecordClass::CommandStart
            }
            (Direction::ToGateway, RecordClass::Reply) if commands.add_reply(record) => class,
            (Direction::FromGateway, RecordClass::KeepAlive | RecordClass::Answer) => class,
            _ => RecordClass::Telemetry,
        }
    }
}

pub(crate) fn reversed(record: &Record) -> Record {
    Record { direction: record.direction.reversed(), ..record.clone() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::options::Options;
    use crate::testing::from;

    proptest! {
        #[test]
        fn records_are_learned_and_classified_by_time_then_arrival(
            arrivals in prop::collection::vec((0i64..20, any::<bool>()), 0..80),
        ) {
            let limits = Options::default().time_limits(None).unwrap();
            let mut adaptive = AdaptiveAlgorithm::default();
            let (mut tree, mut expected) = (BTreeMap::new(), Vec::new());
            for (arrived, (at_ms, learns)) in (0..).zip(arrivals) {
                adaptive.add(&Record { flow: arrived, ..from(at_ms, 90) });
                tree.insert((at_ms, arrived), arrived);
                if learns {
                    adaptive.learn_next(Queued::All, 0, &limits);
                    expected.extend(tree.pop_first().map(|(_, arrived)| arrived));
                }
            }
            while adaptive.learn_next(Queued::All, 0, &limits).is_some() {}
            expected.extend(tree.into_values());
            let classified: Vec<u64> = std::iter::from_fn(|| adaptive.next()).map(|record| record.flow).collect();
            prop_assert_eq!(classified, expected);
        }
    }
}
