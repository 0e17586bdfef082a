//! The algorithm `learned`: it knows from labelled captures which records are not commands (the model's `[noise]`).
//!
//! It classifies a record when it comes, by the message that the record is or ends, in this order:
//!
//! 1. A record of the size at which messages are cut is continued by the next; their sum is the message.
//! 2. A message behind one of a size with which commands go on is its next part, whatever the gateway says in between.
//! 3. A message soon after a request of the gateway that its size answers is an answer. A command at that time is
//!    recognised only if its size differs from the answers to that request.
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
use sizeleak_model::GatewayRecords;
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::endpoints::{EndpointPair, FlowEndpoints};
use crate::flow_history::{FlowHistory, ServiceBurst, SizeClass, SizedRecord};
use crate::message::{MessagePart, MessageReassembler, Reassembly};
use crate::noise_model::NoiseModels;
use crate::options::TimeLimits;
use crate::periodic::PeriodicTraffic;
use crate::record_class::{Decision, RecordClass};
use crate::rules::RuleAlgorithm;
use crate::service_classifier::ServiceClassifier;

/// The most flows with a remembered history; at least the half used last is kept.
const MAX_FLOWS: usize = 100_000;

/// The most timers that are remembered; at least the half used last is kept.
const MAX_TIMERS: usize = 20_000;

#[derive(Debug)]
pub(crate) struct LearnedAlgorithm {
    noise_models: NoiseModels,
    /// For flows whose noise no model knows.
    others: RuleAlgorithm,
    endpoints: FlowEndpoints,
    timers: TwoGenerationCache<(EndpointPair, u32), PeriodicTraffic>,
    flows: TwoGenerationCache<u64, LearnedFlow>,
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
            timers: TwoGenerationCache::new(MAX_TIMERS),
            flows: TwoGenerationCache::new(MAX_FLOWS),
        }
    }

    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.endpoints.add(flow);
        self.noise_models.add_flow(flow);
    }

    pub(crate) fn add_session(&mut self, session: &Session) {
        self.noise_models.add_session(session);
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
        if noise_model.has_interval_timers() {
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
        let Reassembly { message, part, .. } = self.reassemble(sized, classifier);
        let is_after_command = self.is_after_command(sized.record, classifier);
        let known = classifier.noise_model.gateway(message.size);
        // A message of unknown size that follows a command is a reply to it, and no request.
        if part.is_end() && known.map_or(!is_after_command, GatewayRecords::is_answered) {
            self.history.add_request(sized, message.size);
        }
        if is_after_command {
            self.history.command_ns = Some(sized.record.time_ns);
        }
        match sized.size_class {
            SizeClass::Tiny if part == MessagePart::Whole => RecordClass::Tiny,
            _ if known.is_some_and(GatewayRecords::is_telemetry) => RecordClass::Telemetry,
            _ => RecordClass::Reply,
        }
    }

    /// Whether a record follows a command, or replies to it, before these have ended.
    fn is_after_command(&self, record: &Record, classifier: &ServiceClassifier<'_>) -> bool {
        let is_recent = |ns: i64| record.start_ns.saturating_sub(ns) <= classifier.limits.reply_gap_ns;
        self.history.command_ns.is_some_and(is_recent)
    }

    fn classify_service(&mut self, sized: SizedRecord<'_>, classifier: &mut ServiceClassifier<'_>) -> Decision {
        let Reassembly { message, part, .. } = self.reassemble(sized, classifier);
        let is_tiny = sized.size_class == SizeClass::Tiny && part == MessagePart::Whole;
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
        self.incomplete = (!part.is_end()).then_some(decided);
        if part.is_end() {
            self.end_message(decided);
            let is_command = self.history.service_burst == ServiceBurst::Command;
            self.goes_on = is_tiny && self.goes_on || is_command && classifier.noise_model.is_continued(message.size);
        }
        if self.history.service_burst == ServiceBurst::Command || !part.is_end() {
            self.history.command_ns = Some(sized.record.time_ns);
        }
        if part == MessagePart::Whole {
            return decided;
        }
        // Whether several parts are a command is decided with the last one; until then they are held as one.
        let is_start = part == MessagePart::First && decided.class != RecordClass::CommandPart;
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
