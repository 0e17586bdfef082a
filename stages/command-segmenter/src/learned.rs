//! The algorithm `learned`: it knows from labelled captures which records are not commands (the model's `[noise]`), and
//! so what the service sends.
//!
//! It classifies a record when it comes, by the message that the record is or ends, in this order:
//!
//! 1. A record of the size at which messages are cut is continued by the next; their sum is the message.
//! 2. A message behind one of a size with which commands go on is its next part, whatever the gateway says in between.
//! 3. A message soon after a request of the gateway that its size answers is an answer. A command at that time is
//!    recognised only if its size differs from the answers to that request. In a connection that the gateway has opened,
//!    the first message is an answer to the request before it, whatever their sizes, unless requests bring commands.
//! 4. A message whose size no actions make up is not a command.
//! 5. A message of a size that is not known as noise is a command.
//! 6. For a size that may be noise or a command, likelihoods are compared: how often it is either,
//!    whether it is on the timer of that noise, and whether replies follow. The last is known when the replies have
//!    ended. That is also when a command is emitted, so nothing is delayed.
//!
//! Three commands are not recognised: one of the size of an answer when that answer is due; one of the size of a
//! keep-alive on its timer; and, if the gateway never replies, one of that size before the timer was seen on the
//! connection.

use sizeleak_frame::{Direction, Flow, Record, Session};
use sizeleak_model::{GatewayRecords, MIN_OCCURRENCES, RecordLayout, ServiceRecords};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::flow_history::{EndpointPair, FlowEndpoints, FlowHistory, MAX_FLOWS, ServiceBurst, SizeClass, SizedRecord};
use crate::message::{MessageReassembler, ReassembledMessage, Reassembly};
use crate::noise_model::{NoiseModel, NoiseModels, WELL_KNOWN};
use crate::options::{SAME_PACKET_NS, TimeLimits};
use crate::periodic::{PeriodicTraffic, Timer};
use crate::record_class::{CommandCondition, Decision, RecordClass, RuleAlgorithm};

const MAX_TIMERS: usize = 20_000;

/// What comes on the timers of endpoints, by its size.
type Timers = TwoGenerationCache<(EndpointPair, u32), PeriodicTraffic, MAX_TIMERS>;

#[derive(Debug)]
pub(crate) struct LearnedAlgorithm {
    noise_models: NoiseModels,
    /// For flows whose noise no model knows.
    others: RuleAlgorithm,
    endpoints: FlowEndpoints,
    timers: Timers,
    flows: TwoGenerationCache<u64, LearnedFlow, MAX_FLOWS>,
}

#[derive(Debug, Default)]
struct LearnedFlow {
    history: FlowHistory,
    reassembler: MessageReassembler,
    /// What the incomplete message of the service is if it ends here.
    incomplete: Option<Decision>,
    /// Whether the last message of the service is of a size with which commands go on.
    goes_on: bool,
}

impl LearnedAlgorithm {
    pub(crate) fn new(noise_models: NoiseModels, limits: &TimeLimits) -> Self {
        Self {
            noise_models,
            others: RuleAlgorithm::new(Some(limits.gap_ns), limits.answer_within_ns),
            endpoints: FlowEndpoints::default(),
            timers: TwoGenerationCache::default(),
            flows: TwoGenerationCache::default(),
        }
    }

    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.endpoints.add(flow);
        self.noise_models.add_flow(flow);
    }

    pub(crate) fn add_session(&mut self, session: &Session) {
        self.noise_models.add_session(session);
    }

    pub(crate) fn add_handshake(&mut self, record: &Record) {
        if self.noise_models.of_flow(record.flow).is_some() {
            self.flows.get_or_default(record.flow).history.add_handshake(record);
        }
    }

    pub(crate) fn knows(&self, flow: u64) -> bool {
        self.flows.peek(&flow).is_some() || self.others.knows(flow)
    }

    pub(crate) fn restart_time(&mut self) {
        self.timers.clear();
        self.flows.clear();
        self.others.restart_time();
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.flows.evicted() + self.others.evicted()
    }

    #[inline]
    pub(crate) fn classify(&mut self, sized: SizedRecord<'_>, limits: &TimeLimits) -> Decision {
        let Self { noise_models, others, endpoints, timers, flows } = self;
        let Some(noise_model) = noise_models.of_flow(sized.record.flow) else {
            return others.classify(sized).into();
        };
        let sized = SizedRecord { size: noise_model.size(sized.record), ..sized };
        let number = sized.record.flow;
        if noise_model.has_interval_timers {
            // Only timers look up the endpoints, but every record counts as their use, so that active flows stay known.
            endpoints.of(number);
        }
        let flow = flows.get_or_default(number);
        let mut classifier = ServiceClassifier { noise_model, timers, endpoints, limits };
        let decision = match sized.record.direction {
            Direction::FromGateway => flow.classify_gateway(sized, &classifier).into(),
            Direction::ToGateway => flow.classify_service(sized, &mut classifier),
        };
        flow.history.remember(sized, limits.same_write_ns());
        decision
    }
}

impl LearnedFlow {
    #[inline]
    fn classify_gateway(&mut self, sized: SizedRecord<'_>, classifier: &ServiceClassifier<'_>) -> RecordClass {
        let Reassembly { message, is_first, is_last, .. } = self.reassemble(sized, classifier);
        let is_after_command = self.is_after_command(sized.record, classifier);
        let known = classifier.noise_model.gateway(message.size);
        // A message of unknown size that follows a command is a reply to it, and no request.
        if is_last && known.map_or(!is_after_command, GatewayRecords::is_answered) {
            self.history.add_request(sized, message.size);
        }
        if is_after_command {
            self.history.command_ns = Some(sized.record.time_ns);
        }
        match sized.size_class {
            SizeClass::Tiny if is_first && is_last => RecordClass::Tiny,
            _ if known.is_some_and(GatewayRecords::is_telemetry) => RecordClass::Telemetry,
            _ => RecordClass::Reply,
        }
    }

    fn is_after_command(&self, record: &Record, classifier: &ServiceClassifier<'_>) -> bool {
        let is_recent = |ns: i64| record.start_ns.saturating_sub(ns) <= classifier.limits.reply_gap_ns;
        self.history.command_ns.is_some_and(is_recent)
    }

    fn classify_service(&mut self, sized: SizedRecord<'_>, classifier: &mut ServiceClassifier<'_>) -> Decision {
        let Reassembly { message, is_first, is_last, .. } = self.reassemble(sized, classifier);
        let is_tiny = sized.size_class == SizeClass::Tiny && is_first && is_last;
        let is_due = self.goes_on && self.is_after_command(sized.record, classifier);
        let tiny = is_tiny.then(|| classifier.classify_tiny(sized, &self.history));
        let decided = if let Some(tiny) = tiny.filter(|tiny| !is_due || tiny.answered_request.is_some()) {
            tiny
        } else if is_due {
            RecordClass::CommandPart.into()
        } else {
            // Only a whole message is tiny.
            classifier.classify_full(SizedRecord { size_class: SizeClass::Full, ..sized }, &message, &self.history)
        };
        self.incomplete = (!is_last).then_some(decided);
        if is_last {
            self.end_message(decided);
            let is_command = self.history.service_burst == ServiceBurst::Command;
            self.goes_on = is_tiny && self.goes_on || is_command && classifier.noise_model.is_continued(message.size);
        }
        if self.history.service_burst == ServiceBurst::Command || !is_last {
            self.history.command_ns = Some(sized.record.time_ns);
        }
        if is_first && is_last {
            return decided;
        }
        // Whether several parts are a command is decided with the last one; until then they are held as one.
        let is_start = is_first && decided.class != RecordClass::CommandPart;
        let class = if is_start { RecordClass::CommandStart } else { RecordClass::CommandPart };
        Decision { condition: decided.condition_of_whole(), ..class.into() }
    }

    /// Adds a record to its message. That may show that the message before has ended.
    #[inline]
    fn reassemble(&mut self, sized: SizedRecord<'_>, classifier: &ServiceClassifier<'_>) -> Reassembly {
        let full = classifier.noise_model.full_size(sized.record.direction);
        let reassembly = self.reassembler.add(sized, &self.history, full, classifier.limits.gap_ns);
        if reassembly.ended.is_some()
            && let Some(decided) = self.incomplete.take()
        {
            self.end_message(decided);
        }
        reassembly
    }

    fn end_message(&mut self, decided: Decision) {
        if let Some(index) = decided.answered_request {
            self.history.remove_request(index);
        }
        self.history.service_burst = match decided.class {
            RecordClass::CommandStart | RecordClass::CommandPart => ServiceBurst::Command,
            RecordClass::Answer => ServiceBurst::Answer,
            _ => ServiceBurst::None,
        };
    }
}

pub(crate) struct ServiceClassifier<'a> {
    pub(crate) noise_model: &'a NoiseModel,
    pub(crate) timers: &'a mut Timers,
    pub(crate) endpoints: &'a mut FlowEndpoints,
    pub(crate) limits: &'a TimeLimits,
}

impl ServiceClassifier<'_> {
    pub(crate) fn classify_tiny(&self, sized: SizedRecord<'_>, history: &FlowHistory) -> Decision {
        let request = history.find_request(sized, self.answer_within_ns(), |_| true);
        if let Some((index, _)) = request {
            return Decision { answered_request: Some(index), ..RecordClass::Tiny.into() };
        }
        let is_part = self.is_next_part(sized.record, history) || self.is_last_part(sized, history);
        if is_part { RecordClass::CommandPart.into() } else { RecordClass::Tiny.into() }
    }

    /// Classifies any other message; `sized` is its last record so far.
    pub(crate) fn classify_full(
        &mut self,
        sized: SizedRecord<'_>,
        message: &ReassembledMessage,
        history: &FlowHistory,
    ) -> Decision {
        let size = message.size;
        let known = self.noise_model.service(size).copied().unwrap_or_default();
        if let Some(index) = self.answered_request(sized, size, &known, history) {
            return Decision { answered_request: Some(index), ..RecordClass::Answer.into() };
        }
        let follows_answer =
            history.service_burst == ServiceBurst::Answer && history.is_continued_by(sized.record, self.limits.gap_ns);
        if follows_answer && known.answers > known.commands.max(known.alone) {
            return RecordClass::Answer.into();
        }
        if self.is_next_part(sized.record, history) {
            return RecordClass::CommandPart.into();
        }
        if !self.noise_model.is_explained(size) {
            return if self.is_last_part(sized, history) {
                RecordClass::CommandPart.into()
            } else if known.answers + known.alone == 0 {
                RecordClass::Unexplained.into()
            } else if known.answers > known.alone {
                RecordClass::Answer.into()
            } else {
                RecordClass::KeepAlive.into()
            };
        }
        let (is_on_timer, chance) = self.timer_phase(sized.record.flow, message, &known);
        match command_condition(self.noise_model, size, is_on_timer, chance) {
            CommandCondition::Never => RecordClass::KeepAlive.into(),
            condition => Decision { condition, ..RecordClass::CommandStart.into() },
        }
    }

    fn is_next_part(&self, record: &Record, history: &FlowHistory) -> bool {
        self.noise_model.noise.written == RecordLayout::Parts
            && history.service_burst == ServiceBurst::Command
            && history.is_continued_by(record, self.limits.same_write_ns())
    }

    /// Whether a record is the last part of a command longer than every labelled one, so that the size of full records
    /// is not known: its size was never seen, or it is in the same packet.
    fn is_last_part(&self, sized: SizedRecord<'_>, history: &FlowHistory) -> bool {
        let is_new = self.noise_model.service(sized.size).is_none();
        let within_ns = if is_new { self.limits.same_write_ns() } else { SAME_PACKET_NS };
        self.noise_model.full_size(Direction::ToGateway).is_none()
            && history.service_burst == ServiceBurst::Command
            && history.size_before(sized.record, within_ns).is_some_and(|before| sized.size <= before)
    }

    fn answer_within_ns(&self) -> i64 {
        self.limits.answer_within_ns.max(nanoseconds(self.noise_model.noise.answer_within_ms.unwrap_or_default()))
    }

    fn answered_request(
        &self,
        sized: SizedRecord<'_>,
        size: u32,
        known: &ServiceRecords,
        history: &FlowHistory,
    ) -> Option<usize> {
        let may_be_command = || self.noise_model.labelled_commands(size) > 0;
        let is_answer = || known.answers > 0 && !may_be_command();
        let may_be_answer = || known.alone == 0 && !may_be_command();
        // Under block ciphers and padding, many messages have the size of a command.
        let is_first_answer = history.awaits_first_answer() && !self.noise_model.polls;
        let in_time = history.find_request(sized, self.answer_within_ns(), |request| {
            match self.noise_model.gateway(request.size) {
                _ if is_first_answer => true,
                Some(requests) if requests.by.is_some() => requests.by == Some(size) || is_answer(),
                Some(requests) if requests.brings_commands() => known.answers > 0,
                None | Some(_) => is_answer() || may_be_answer(),
            }
        });
        let late = || {
            // The usual answer to a request may be late if it is surely an answer.
            let is_usual =
                |requested: u32| self.noise_model.gateway(requested).is_some_and(|requests| requests.by == Some(size));
            let is_surely_answer = known.answers >= WELL_KNOWN && !may_be_command();
            is_surely_answer
                .then(|| history.find_request(sized, self.limits.reply_within_ns, |request| is_usual(request.size)))?
        };
        in_time.or_else(late).map(|(index, _)| index)
    }

    /// Whether a message is on the timer of noise of its size, and the probability of that by chance. `None` if there is
    /// no timer, or its phase is not known.
    fn timer_phase(&mut self, flow: u64, message: &ReassembledMessage, known: &ServiceRecords) -> (Option<bool>, f64) {
        let arrival = message.arrival;
        let Some(period_ms) = known.every_ms.or(known.after_silence_ms) else { return (None, 1.0) };
        let timer = Timer { period_ns: nanoseconds(period_ms), late_ns: nanoseconds(known.jitter_ms) };
        let is_on_timer = if known.every_ms.is_some() {
            let traffic = self.timers.get_or_default((self.endpoints.of(flow), message.size));
            let is_on_timer = traffic.is_on(timer, arrival.time_ns);
            traffic.add(arrival);
            is_on_timer
        } else {
            arrival.silence_ns.map(|silence_ns| timer.is(silence_ns))
        };
        (is_on_timer, timer.chance())
    }
}

fn nanoseconds(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX)
}

/// A record is noise only if that is this much more likely than a command: of nine at the limit, one is a command.
const LIKELIHOOD_RATIO: f64 = 8.0;

/// Commands without a label may be this much more frequent at one size than expected.
const UNLABELLED_RATIO: f64 = 2.0;

/// When a record that answers nothing is a command. `chance` is the probability of being on the timer by chance.
pub(crate) fn command_condition(
    noise_model: &NoiseModel,
    size: u32,
    is_on_timer: Option<bool>,
    chance: f64,
) -> CommandCondition {
    let Some(records) = noise_model.service(size) else { return CommandCondition::Always };
    let expected = noise_model.expected_commands(size);
    let unlabelled = UNLABELLED_RATIO * expected * noise_model.noise.missing_labels as f64 / 100.0;
    let Some(prior) = noise_prior(records, unlabelled) else { return CommandCondition::Always };
    let (timed_noise, timed_command) = match is_on_timer {
        None => (1.0, 1.0),
        Some(true) => (share(records.on_beat, records.alone), chance),
        Some(false) => (1.0 - share(records.on_beat, records.alone), 1.0 - chance),
    };
    let noise = prior * timed_noise;
    let command = LIKELIHOOD_RATIO * expected * timed_command;
    let noise_replied = share(records.replied, records.alone);
    let command_replied = share(noise_model.noise.replied, noise_model.noise.commands);
    let is_noise_if_replied = noise * noise_replied > command * command_replied;
    let is_noise_if_silent = noise * (1.0 - noise_replied) > command * (1.0 - command_replied);
    match (is_noise_if_replied, is_noise_if_silent) {
        (true, true) => CommandCondition::Never,
        (false, false) => CommandCondition::Always,
        (false, true) => CommandCondition::IfReplied,
        (true, false) => CommandCondition::IfSilent,
    }
}

/// How often unsolicited noise of a size came, without the `unlabelled` commands counted with it; `None` if it was so
/// rare that all of it may have been such commands.
fn noise_prior(records: &ServiceRecords, unlabelled: f64) -> Option<f64> {
    let alone = records.alone as f64 - unlabelled;
    if alone >= MIN_OCCURRENCES as f64 {
        return Some(alone);
    }
    // An answer may be late, or its request may be missing from the capture.
    (records.answers >= WELL_KNOWN).then(|| alone.max(0.0) + 0.5)
}

/// The expected probability of an event that was seen `part` times in `whole` trials.
fn share(part: u64, whole: u64) -> f64 {
    (part as f64 + 0.5) / (whole as f64 + 1.0)
}

#[cfg(test)]
mod tests;
