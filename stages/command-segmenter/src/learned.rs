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

use crate::beat::Beat;
use crate::exchange::{Exchange, Heard, Run, Weight};
use crate::judge::{Decision, Judge, Judged, MOST_BEATS};
use crate::knowledge::Knowledge;
use crate::message::{Piece, Taken, Unfinished};
use crate::options::Times;
use crate::pair::{Pair, Pairs};
use crate::verdict::Verdict;

/// Flows whose last words are remembered, half of them at least.
const MOST_FLOWS: usize = 100_000;

/// What was learned, and what was last said on every flow.
#[derive(Debug)]
pub(crate) struct Learned {
    knowledge: Knowledge,
    pairs: Pairs,
    beats: TwoGenerationCache<(Pair, u32), Beat>,
    flows: TwoGenerationCache<u64, Talk>,
}

/// What was last said on a flow.
#[derive(Debug, Default)]
struct Talk {
    exchange: Exchange,
    unfinished: Unfinished,
    /// What the unfinished message of the service's is if it ends here.
    so_far: Option<Judged>,
}

impl Learned {
    /// The algorithm that has this knowledge.
    pub(crate) fn new(knowledge: Knowledge) -> Self {
        Self {
            knowledge,
            pairs: Pairs::default(),
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
    pub(crate) fn decide(&mut self, heard: Heard<'_>, times: &Times) -> Decision {
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
            Direction::ToGateway => talk.of_service(heard, &mut Judge { knowledge, beats, pairs, times }),
        };
        talk.exchange.remember(heard);
        decision
    }
}

impl Talk {
    #[inline]
    fn of_gateway(&mut self, heard: Heard<'_>, knowledge: &Knowledge, times: &Times) -> Verdict {
        let Taken { message, piece, .. } = self.take(heard, knowledge, times);
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
            Weight::Tiny if piece == Piece::Whole => Verdict::Tiny,
            _ if kind.is_some_and(GatewayRecords::is_telemetry) => Verdict::Telemetry,
            _ => Verdict::Reply,
        }
    }

    fn is_after_command(&self, record: &Record, times: &Times) -> bool {
        let within = |command_ns: i64| record.start_ns.saturating_sub(command_ns) <= times.reply_gap;
        self.exchange.command_ns.is_some_and(within)
    }

    fn of_service(&mut self, heard: Heard<'_>, judge: &mut Judge<'_>) -> Decision {
        let Taken { message, piece, .. } = self.take(heard, judge.knowledge, judge.times);
        let judged = if heard.weight == Weight::Tiny && piece == Piece::Whole {
            judge.of_tiny(heard, &self.exchange)
        } else {
            // What is tiny is so as a whole.
            judge.of_message(Heard { weight: Weight::Full, ..heard }, &message, &self.exchange)
        };
        self.so_far = (!piece.is_end()).then_some(judged);
        if piece.is_end() {
            self.settle(judged);
        }
        if self.exchange.run == Run::Command || !piece.is_end() {
            self.exchange.command_ns = Some(heard.record.time_ns);
        }
        if piece == Piece::Whole {
            return judged.decision;
        }
        // Whether the pieces are a command shows in the end; until then they are kept as one.
        let verdict = if piece == Piece::First { Verdict::Command } else { Verdict::Continued };
        Decision { verdict, belief: judged.decision.of_whole() }
    }

    /// Adds a record to its message. If that shows that the message before has ended, takes note of what it was.
    #[inline]
    fn take(&mut self, heard: Heard<'_>, knowledge: &Knowledge, times: &Times) -> Taken {
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
    fn settle(&mut self, judged: Judged) {
        if let Some(at) = judged.answers {
            self.exchange.answer(at);
        }
        self.exchange.run = match judged.decision.verdict {
            Verdict::Command | Verdict::Continued => Run::Command,
            Verdict::Answer => Run::Answer,
            _ => Run::Nothing,
        };
    }
}
