//! The algorithm that knows from labelled captures what is no command (the model's `[noise]`).
//!
//! It decides when a record comes, in this order, about the message that the record is or ends:
//!
//! 1. A record of the size at which messages are cut is continued by the next; their sum is the message.
//! 2. What comes soon after a message of the gateway's that such a size answers is an answer. A command may come there
//!    too: it is told by having another size than the answers to that message have.
//! 3. What no actions make up is none.
//! 4. A size that is not known as noise is a command.
//! 5. A size that is noise and may be a command is weighed (`weigh`): how often it is either, whether it keeps the beat
//!    of that noise, and whether replies follow. For the last it stays in doubt until its replies are over, which is
//!    when a command is told anyway: nothing is looked for further ahead.
//!
//! What cannot be told apart: a command of exactly the size of an answer, where that answer is due; one of exactly the
//! size of a keep-alive, on its beat; and, where the gateway does not reply, one of that size before the beat was heard
//! on the connection.

use sizeleak_frame::{Direction, Flow, Record};
use sizeleak_model::GatewayRecords;
use sizeleak_runtime::TwoGenerationCache;

use crate::endpoints::{EndpointPair, FlowEndpoints};
use crate::flow_history::{FlowHistory, ServiceBurst, SizeClass, SizedRecord};
use crate::message::{MessagePart, MessageReassembler, Reassembly};
use crate::noise_model::NoiseModel;
use crate::options::TimeLimits;
use crate::periodic::PeriodicTraffic;
use crate::record_class::RecordClass;
use crate::service_classifier::{Decision, MOST_BEATS, ServiceClassifier, ServiceDecision};

/// Flows whose last words are remembered, half of them at least.
const MOST_FLOWS: usize = 100_000;

/// What was learned, and what was last said on every flow.
#[derive(Debug)]
pub(crate) struct LearnedAlgorithm {
    knowledge: NoiseModel,
    pairs: FlowEndpoints,
    beats: TwoGenerationCache<(EndpointPair, u32), PeriodicTraffic>,
    flows: TwoGenerationCache<u64, LearnedFlow>,
}

/// What was last said on a flow.
#[derive(Debug, Default)]
struct LearnedFlow {
    exchange: FlowHistory,
    unfinished: MessageReassembler,
    /// What the unfinished message of the service's is if it ends here.
    so_far: Option<ServiceDecision>,
}

impl LearnedAlgorithm {
    /// The algorithm that has this knowledge.
    pub(crate) fn new(knowledge: NoiseModel) -> Self {
        Self {
            knowledge,
            pairs: FlowEndpoints::default(),
            beats: TwoGenerationCache::new(MOST_BEATS),
            flows: TwoGenerationCache::new(MOST_FLOWS),
        }
    }

    /// Takes note of a flow's ends.
    pub(crate) fn flow(&mut self, flow: &Flow) {
        self.pairs.learn(flow);
    }

    /// How many flows were forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.flows.evicted()
    }

    /// Decides about the next record of a flow.
    #[inline]
    pub(crate) fn decide(&mut self, heard: SizedRecord<'_>, times: &TimeLimits) -> Decision {
        let Self { knowledge, pairs, beats, flows } = self;
        let heard = knowledge.in_basis(heard);
        let flow = heard.record.flow;
        if knowledge.has_timers() {
            // Whoever talks is not forgotten, though only what may be on a timer asks who it is.
            pairs.of(flow);
        }
        let talk = flows.get_or_default(flow);
        let decision = match heard.record.direction {
            Direction::FromGateway => talk.of_gateway(heard, knowledge, times).into(),
            Direction::ToGateway => talk.of_service(heard, &mut ServiceClassifier { knowledge, beats, pairs, times }),
        };
        talk.exchange.remember(heard);
        decision
    }
}

impl LearnedFlow {
    #[inline]
    fn of_gateway(&mut self, heard: SizedRecord<'_>, knowledge: &NoiseModel, times: &TimeLimits) -> RecordClass {
        let Reassembly { message, piece, .. } = self.take(heard, knowledge, times);
        let is_after_command = self.is_after_command(heard.record, times);
        let kind = knowledge.gateway(message.size);
        if piece.is_end() {
            // What is not known and follows a command is a reply to it.
            if kind.map_or(!is_after_command, GatewayRecords::is_answered) {
                self.exchange.ask(heard, message.size);
            }
        }
        if is_after_command {
            self.exchange.command_ns = Some(heard.record.time_ns);
        }
        match heard.weight {
            SizeClass::Tiny if piece == MessagePart::Whole => RecordClass::Tiny,
            _ if kind.is_some_and(GatewayRecords::is_telemetry) => RecordClass::Telemetry,
            _ => RecordClass::Reply,
        }
    }

    fn is_after_command(&self, record: &Record, times: &TimeLimits) -> bool {
        let within = |command_ns: i64| record.start_ns.saturating_sub(command_ns) <= times.reply_gap;
        self.exchange.command_ns.is_some_and(within)
    }

    fn of_service(&mut self, heard: SizedRecord<'_>, judge: &mut ServiceClassifier<'_>) -> Decision {
        let Reassembly { message, piece, .. } = self.take(heard, judge.knowledge, judge.times);
        let judged = if heard.weight == SizeClass::Tiny && piece == MessagePart::Whole {
            judge.of_tiny(heard, &self.exchange)
        } else {
            // What is tiny is so as a whole.
            judge.of_message(SizedRecord { weight: SizeClass::Full, ..heard }, &message, &self.exchange)
        };
        self.so_far = (!piece.is_end()).then_some(judged);
        if piece.is_end() {
            self.settle(judged);
        }
        if self.exchange.run == ServiceBurst::Command || !piece.is_end() {
            self.exchange.command_ns = Some(heard.record.time_ns);
        }
        if piece == MessagePart::Whole {
            return judged.decision;
        }
        // Whether the pieces are a command shows in the end; until then they are kept as one.
        let verdict = if piece == MessagePart::First { RecordClass::Command } else { RecordClass::Continued };
        Decision { verdict, belief: judged.decision.of_whole() }
    }

    /// Adds a record to its message. If that shows that the message before has ended, takes note of what it was.
    #[inline]
    fn take(&mut self, heard: SizedRecord<'_>, knowledge: &NoiseModel, times: &TimeLimits) -> Reassembly {
        let full = knowledge.full(heard.record.direction);
        let taken = self.unfinished.take(heard, &self.exchange, full, times.gap);
        if taken.ended.is_some()
            && let Some(judged) = self.so_far.take()
        {
            self.settle(judged);
        }
        taken
    }

    /// Takes note of what a whole message of the service's was.
    fn settle(&mut self, judged: ServiceDecision) {
        if let Some(at) = judged.answers {
            self.exchange.answer(at);
        }
        self.exchange.run = match judged.decision.verdict {
            RecordClass::Command | RecordClass::Continued => ServiceBurst::Command,
            RecordClass::Answer => ServiceBurst::Answer,
            _ => ServiceBurst::Nothing,
        };
    }
}
