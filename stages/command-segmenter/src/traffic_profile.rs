//! What a gateway and its service usually do, learned from the lengths and times of their records.

use std::collections::VecDeque;

use sizeleak_frame::{Direction, PerDirection, Record};
use sizeleak_platform::runtime::TwoGenerationCache;
use smallvec::SmallVec;

use crate::flow_history::{FlowHistory, ServiceBurst, SizeClass, SizedRecord};
use crate::message::FullLength;
use crate::options::TimeLimits;
use crate::periodic::{self, Arrival, PeriodicTraffic};

/// The most lengths remembered of each direction; at least the half used last is kept. With all their arrivals they take
/// 0.2 MB.
const MAX_LENGTHS: usize = 96;

/// Records within this time of each other, in nanoseconds, count as one message of several.
const BURST_NS: i64 = 1_000_000_000;

const MAX_UNSOLICITED: usize = 32;

/// Lengths seen this often are classified by their shares. If every other record only seems to be an answer, three of
/// three seem so in one case of eight.
const KNOWN: u32 = 3;

/// Lengths seen this often and nearly always as answers are answers at any time: by the same chance, seven of eight seem so
/// in 9 cases of 256.
const WELL_KNOWN: u32 = 8;

const MAX_DELAYS: usize = 16;

/// Fewer delays show no usual one. Six of eight within an eighth of the median are chance in 2 cases of 100, where delays
/// are spread over the time of replies.
const MIN_DELAYS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct TrafficProfile {
    service: TwoGenerationCache<u32, ServiceLengthStats, MAX_LENGTHS>,
    gateway: TwoGenerationCache<u32, GatewayLengthStats, MAX_LENGTHS>,
    /// The service's last unsolicited records, with their lengths.
    unsolicited: VecDeque<(u32, Arrival)>,
    full: PerDirection<FullLength>,
    /// Within what time the service answers, if that was learned.
    answer_within_ns: i64,
    /// Whether the service ever began an exchange, or only answers the gateway.
    service_begins: bool,
}

impl TrafficProfile {
    /// Learns from the next record of a flow, before it is classified. `history` is what was learned of the flow so
    /// far.
    pub(crate) fn learn(&mut self, sized: SizedRecord<'_>, history: &mut FlowHistory, limits: &TimeLimits) {
        let record = sized.record;
        let before = history.size_before(record, limits.same_write_ns());
        if let Some(length) = before.filter(|length| record.length <= *length) {
            self.full.of_mut(record.direction).add(length);
        }
        if !self.continues_full_record(record, history, limits) {
            match record.direction {
                Direction::FromGateway => self.learn_gateway(sized, history, limits),
                Direction::ToGateway => self.learn_service(sized, history, limits),
            }
        }
        history.remember(sized, limits.same_write_ns());
    }

    fn learn_gateway(&mut self, sized: SizedRecord<'_>, history: &mut FlowHistory, limits: &TimeLimits) {
        let Record { start_ns, time_ns, length, .. } = *sized.record;
        let stats = self.gateway.get_or_default(length);
        let command_ns = history.command_ns;
        let is_after_command = command_ns.is_some_and(|ns| start_ns.saturating_sub(ns) <= limits.reply_gap_ns);
        stats.add(is_after_command);
        if is_after_command {
            history.command_ns = Some(time_ns);
        }
        history.add_request(sized, length);
    }

    fn learn_service(&mut self, sized: SizedRecord<'_>, history: &mut FlowHistory, limits: &TimeLimits) {
        let record = sized.record;
        let is_full = sized.size_class == SizeClass::Full;
        self.service_begins |= is_full && history.is_known() && history.begins_exchange(record);
        if let Some(delay_ns) = history.delay(record).filter(|delay_ns| *delay_ns <= limits.reply_gap_ns) {
            self.learn_delay(record.length, delay_ns, limits);
        }
        let answer_within_ns = self.answer_within_ns(limits);
        let answered = history.find_request(sized, answer_within_ns, |request| self.is_answered(request.size));
        let usual = answered.and_then(|(_, request)| self.gateway_stats(request.size)?.usual_answer());
        let continues_answer =
            history.service_burst == ServiceBurst::Answer && history.is_continued_by(record, limits.gap_ns);
        let arrival = history.arrival(record);
        if answered.is_some() || continues_answer {
            let arrival = Some(arrival).filter(|_| usual != Some(record.length));
            self.service.get_or_default(record.length).add_answer(arrival);
            history.service_burst = ServiceBurst::Answer;
        } else {
            self.learn_unsolicited(record.length, arrival);
            history.service_burst = ServiceBurst::Command;
            if is_full {
                history.command_ns = Some(record.time_ns);
            }
        }
        if let Some(request) = history.small_request(sized, answer_within_ns) {
            self.gateway.get_or_default(request).echo.add(record.length);
            let stats = self.service.get_or_default(record.length);
            stats.echoes = stats.echoes.saturating_add(1);
        }
        // Every request counts here, so that a length that seemed to have no answers can be found to have some.
        if let Some((index, request)) = history.find_request(sized, answer_within_ns, |_| true) {
            self.gateway.get_or_default(request.size).add_answer(record.length);
            history.remove_request(index);
        }
    }

    /// Learns how long after the gateway's last record one of the service came. If answers turn out to take longer than
    /// was known, everything learned about answers is discarded.
    fn learn_delay(&mut self, length: u32, delay_ns: i64, limits: &TimeLimits) {
        let stats = self.service.get_or_default(length);
        stats.add_delay(delay_ns);
        let Some(within_ns) = stats.usual_delay_limit() else { return };
        if within_ns.saturating_sub(within_ns / 4) > self.answer_within_ns(limits) {
            *self = Self {
                full: self.full,
                answer_within_ns: within_ns,
                service_begins: self.service_begins,
                ..Self::default()
            };
        }
    }

    fn learn_unsolicited(&mut self, length: u32, arrival: Arrival) {
        self.service.get_or_default(length).add_unsolicited(arrival);
        if self.unsolicited.len() >= MAX_UNSOLICITED {
            self.unsolicited.pop_front();
        }
        self.unsolicited.push_back((length, arrival));
    }

    pub(crate) fn service_stats(&self, length: u32) -> Option<&ServiceLengthStats> {
        self.service.peek(&length)
    }

    pub(crate) fn gateway_stats(&self, length: u32) -> Option<&GatewayLengthStats> {
        self.gateway.peek(&length)
    }

    pub(crate) fn is_answered(&self, request: u32) -> bool {
        self.gateway_stats(request).is_none_or(GatewayLengthStats::is_answered)
    }

    pub(crate) fn may_answer(&self, request: u32, length: u32) -> bool {
        let stats = self.gateway_stats(request);
        stats.is_none_or(|stats| stats.is_answered() && stats.can_be_answered_by(length))
    }

    pub(crate) fn is_usual_answer(&self, request: u32, length: u32) -> bool {
        let stats = self.gateway_stats(request);
        stats.is_some_and(|stats| stats.answered > KNOWN && stats.is_answered() && stats.usual_answer() == Some(length))
    }

    pub(crate) fn answer_within_ns(&self, limits: &TimeLimits) -> i64 {
        limits.answer_within_ns.max(self.answer_within_ns)
    }

    /// Whether a record of the service belongs to an exchange that the gateway began, where the service begins none: it
    /// is an answer, however late, unless such requests are not answered, or not by that length.
    pub(crate) fn is_late_answer(&self, record: &Record, history: &FlowHistory) -> bool {
        !self.service_begins
            && history.opening_request(record).is_some_and(|request| self.may_answer(request, record.length))
    }

    /// Whether a large record of the service answers a small one of the gateway: such small ones are mostly followed at
    /// once by that length, and that length mostly follows such small ones.
    pub(crate) fn is_answer_to_small(
        &self,
        sized: SizedRecord<'_>,
        history: &FlowHistory,
        limits: &TimeLimits,
    ) -> bool {
        let length = sized.record.length;
        let Some(request) = history.small_request(sized, self.answer_within_ns(limits)) else { return false };
        let is_usual = |stats: &GatewayLengthStats| {
            stats.echo.length == length && u64::from(stats.echo.votes) * 2 >= u64::from(stats.count)
        };
        let is_echo = |stats: &ServiceLengthStats| {
            stats.echoes >= KNOWN && u64::from(stats.echoes) * 4 >= u64::from(stats.count) * 3
        };
        self.service_stats(length).is_some_and(is_echo) && self.gateway_stats(request).is_some_and(is_usual)
    }

    pub(crate) fn is_keep_alive(&self, length: u32, arrival: Arrival) -> bool {
        self.service_stats(length).is_some_and(|stats| stats.is_on_timer(arrival)) && !self.is_scripted()
    }

    /// Whether records of varying lengths come at a steady interval: these are commands sent by a script.
    fn is_scripted(&self) -> bool {
        let intervals: Vec<(u32, i64)> = self
            .unsolicited
            .iter()
            .zip(self.unsolicited.iter().skip(1))
            .map(|((_, before), (length, arrival))| (*length, arrival.time_ns.saturating_sub(before.time_ns)))
            .filter(|(_, interval_ns)| *interval_ns >= BURST_NS)
            .collect();
        let usual = periodic::usual_timer(intervals.iter().map(|(_, interval_ns)| *interval_ns));
        let Some((timer, _)) = usual else { return false };
        let steady: Vec<u32> =
            intervals.iter().filter(|(_, interval_ns)| timer.is(*interval_ns)).map(|(length, _)| *length).collect();
        let count = |length: &u32| steady.iter().filter(|other| *other == length).count();
        let most_frequent = steady.iter().map(count).max().unwrap_or_default();
        steady.len() * 5 >= intervals.len() * 3 && most_frequent * 5 < steady.len() * 3
    }

    /// Whether records of this length are as long as records get where messages are cut, so that the next continues it.
    pub(crate) fn is_full(&self, direction: Direction, length: u32) -> bool {
        self.full.of(direction).is(length)
    }

    pub(crate) fn continues_full_record(&self, record: &Record, history: &FlowHistory, limits: &TimeLimits) -> bool {
        let before = history.size_before(record, limits.gap_ns);
        before.is_some_and(|length| record.length <= length && self.is_full(record.direction, length))
    }
}

#[derive(Debug, Default)]
pub(crate) struct ServiceLengthStats {
    count: u32,
    answers: u32,
    /// How many came at once after a small record of the gateway.
    echoes: u32,
    unsolicited: PeriodicTraffic,
    /// These and answers, because a keep-alive that happens to come just after a request or an answer looks like an
    /// answer; but not the usual answers to what they answer: those to a poll are on its timer.
    arrivals: PeriodicTraffic,
    /// The last delays after the gateway's records, and how many there were.
    delays: SmallVec<[i64; 2]>,
    delay_count: u32,
}

/// What records of one length are, as far as requests of the gateway show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthRole {
    Answer,
    /// So surely an answer that, without a request, it must be late or its request was not captured.
    AlwaysAnswer,
    Unsolicited,
    Unknown,
}

impl ServiceLengthStats {
    fn add_answer(&mut self, arrival: Option<Arrival>) {
        self.count = self.count.saturating_add(1);
        if let Some(unusual) = arrival {
            self.arrivals.add(unusual);
        }
        self.answers = self.answers.saturating_add(1);
    }

    fn add_unsolicited(&mut self, arrival: Arrival) {
        self.count = self.count.saturating_add(1);
        self.unsolicited.add(arrival);
        self.arrivals.add(arrival);
    }

    /// Whether an arrival is on a timer: on one of unsolicited records, or on one that runs on and that most records of
    /// this length are on, those included that look like answers. A timer that traffic resets never fires close behind
    /// other records.
    fn is_on_timer(&self, arrival: Arrival) -> bool {
        // Without answers both lists are the same.
        self.unsolicited.is_on_timer(arrival) || self.answers > 0 && self.arrivals.is_on_interval_timer(arrival.time_ns)
    }

    fn add_delay(&mut self, delay_ns: i64) {
        if self.delays.len() >= MAX_DELAYS {
            self.delays.remove(0);
        }
        self.delays.push(delay_ns.max(0));
        self.delay_count = self.delay_count.saturating_add(1);
    }

    /// The time within which records of this length follow the gateway's: one and a half times the usual delay. `None`
    /// if delays differ, or if few records have one: then they are not answers.
    fn usual_delay_limit(&self) -> Option<i64> {
        // Few unsolicited records happen to follow one of the gateway.
        if u64::from(self.delay_count.saturating_sub(1)) * 4 < u64::from(self.count) || self.delays.len() < MIN_DELAYS {
            return None;
        }
        let mut sorted = self.delays.clone();
        sorted.sort_unstable();
        let usual_ns = sorted[sorted.len() / 2];
        let is_usual = |delay_ns: &&i64| delay_ns.abs_diff(usual_ns) <= usual_ns.unsigned_abs() / 8;
        let usual_count = sorted.iter().filter(is_usual).count();
        (usual_count * 4 >= sorted.len() * 3).then(|| usual_ns.saturating_add(usual_ns / 2))
    }

    pub(crate) fn role(&self) -> LengthRole {
        let (count, answers) = (u64::from(self.count), u64::from(self.answers));
        match self.count {
            ..KNOWN => LengthRole::Unknown,
            WELL_KNOWN.. if answers * 8 >= count * 7 => LengthRole::AlwaysAnswer,
            _ if answers * 5 >= count * 4 => LengthRole::Answer,
            // Periodic records may have the same length as answers, as HTTP's empty responses do.
            _ if answers * 2 <= count && !self.unsolicited.is_periodic() => LengthRole::Unsolicited,
            _ => LengthRole::Unknown,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct GatewayLengthStats {
    count: u32,
    answered: u32,
    after_command: u32,
    usual_answer: MajorityLength,
    /// The length of what follows a small record at once.
    echo: MajorityLength,
}

/// The length that most of some records have, by the majority vote of Boyer and Moore.
#[derive(Debug, Clone, Copy, Default)]
struct MajorityLength {
    length: u32,
    votes: u32,
}

impl MajorityLength {
    fn add(&mut self, length: u32) {
        if length == self.length {
            self.votes = self.votes.saturating_add(1);
        } else if let Some(votes) = self.votes.checked_sub(1) {
            self.votes = votes;
        } else {
            *self = Self { length, votes: 1 };
        }
    }
}

impl GatewayLengthStats {
    fn add(&mut self, is_after_command: bool) {
        self.count = self.count.saturating_add(1);
        self.after_command = self.after_command.saturating_add(is_after_command.into());
    }

    fn add_answer(&mut self, length: u32) {
        self.answered = self.answered.saturating_add(1);
        self.usual_answer.add(length);
    }

    fn is_answered(&self) -> bool {
        self.count <= KNOWN || u64::from(self.answered) * 3 >= u64::from(self.count)
    }

    /// Whether a record of this length may be its answer: not if nearly all answers have another length.
    fn can_be_answered_by(&self, length: u32) -> bool {
        self.answered <= KNOWN || self.usual_answer().is_none_or(|usual| usual == length)
    }

    fn usual_answer(&self) -> Option<u32> {
        let has_usual_length = u64::from(self.usual_answer.votes) * 5 >= u64::from(self.answered) * 3;
        has_usual_length.then_some(self.usual_answer.length)
    }

    /// Whether such records come at any time, mostly not after commands.
    pub(crate) fn is_telemetry(&self) -> bool {
        self.count > KNOWN && u64::from(self.after_command) * 2 < u64::from(self.count)
    }
}

#[cfg(test)]
mod tests;
