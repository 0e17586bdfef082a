//! Judges by what was learned from labelled captures what a message is that the service has sent.

use sizeleak_frame::{Direction, Record};
use sizeleak_model::{RecordLayout, ServiceRecords};

use crate::beat::{Beat, chance};
use crate::exchange::{Exchange, Heard, Run};
use crate::knowledge::{Knowledge, WELL_KNOWN};
use crate::message::Message;
use crate::options::{SAME_PACKET, Times};
use crate::pair::{Pair, Pairs};
use crate::recent::Recent;
use crate::verdict::Verdict;
use crate::weigh::{Belief, Timing, weigh};

/// Beats that are remembered, half of them at least.
pub(crate) const MOST_BEATS: usize = 10_000;

/// What a message of the service's is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    pub(crate) decision: Decision,
    /// The place of the gateway's message that it answers.
    pub(crate) answers: Option<usize>,
}

impl<T: Into<Decision>> From<T> for Judged {
    fn from(decision: T) -> Self {
        Self { decision: decision.into(), answers: None }
    }
}

/// What is to be done about a record, and about the command it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// What the open command on the flow, with this record in it, is.
    pub(crate) belief: Belief,
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, belief: Belief::Command }
    }
}

impl Decision {
    /// What a message is that came in several pieces.
    pub(crate) fn of_whole(self) -> Belief {
        match self.verdict {
            Verdict::Command | Verdict::Continued => self.belief,
            _ => Belief::Noise,
        }
    }
}

/// Judges messages of the service's.
pub(crate) struct Judge<'a> {
    pub(crate) knowledge: &'a Knowledge,
    pub(crate) beats: &'a mut Recent<(Pair, u32), Beat, MOST_BEATS>,
    pub(crate) pairs: &'a mut Pairs,
    pub(crate) times: &'a Times,
}

impl Judge<'_> {
    /// Judges a message too small for a command.
    pub(crate) fn of_tiny(&self, heard: Heard<'_>, exchange: &Exchange) -> Judged {
        if let Some((at, _)) = exchange.asked(heard, self.answer_within(), |_| true) {
            return Judged { decision: Verdict::Tiny.into(), answers: Some(at) };
        }
        let is_piece = self.is_next_part(heard.record, exchange) || self.is_last_piece(heard, exchange);
        if is_piece { Verdict::Continued.into() } else { Verdict::Tiny.into() }
    }

    /// Judges any other; `heard` is its last record so far.
    pub(crate) fn of_message(&mut self, heard: Heard<'_>, message: &Message, exchange: &Exchange) -> Judged {
        let size = message.size;
        let kind = self.knowledge.service(size).copied().unwrap_or_default();
        if let Some(at) = self.answered(heard, size, &kind, exchange) {
            return Judged { decision: Verdict::Answer.into(), answers: Some(at) };
        }
        let follows_answer = exchange.run == Run::Answer && exchange.followed(heard.record, self.times.gap).is_some();
        if follows_answer && kind.answers > kind.commands.max(kind.alone) {
            return Verdict::Answer.into();
        }
        if self.is_next_part(heard.record, exchange) {
            return Verdict::Continued.into();
        }
        if !self.knowledge.is_explained(size) {
            return if self.is_last_piece(heard, exchange) {
                Verdict::Continued.into()
            } else if kind.answers + kind.alone == 0 {
                Verdict::Unexplained.into()
            } else if kind.answers > kind.alone {
                Verdict::Answer.into()
            } else {
                Verdict::KeepAlive.into()
            };
        }
        let (timing, chance) = self.timing(heard.record.flow, message, &kind);
        match weigh(self.knowledge, size, timing, chance) {
            Belief::Noise => Verdict::KeepAlive.into(),
            belief => Decision { verdict: Verdict::Command, belief }.into(),
        }
    }

    /// Whether a record is the next part of a command whose parts are written at once.
    fn is_next_part(&self, record: &Record, exchange: &Exchange) -> bool {
        self.knowledge.noise.written == RecordLayout::Parts
            && exchange.run == Run::Command
            && exchange.followed(record, self.times.at_once()).is_some()
    }

    /// Whether a record that no actions make up is what is left of a command longer than any that was labelled, so that it
    /// is not known how long records get: one of a size that was never seen, or one in the same packet.
    fn is_last_piece(&self, heard: Heard<'_>, exchange: &Exchange) -> bool {
        let is_new = self.knowledge.service(heard.size).is_none();
        let within_ns = if is_new { self.times.at_once() } else { SAME_PACKET };
        self.knowledge.full(Direction::ToGateway).is_none()
            && exchange.run == Run::Command
            && exchange.followed(heard.record, within_ns).is_some_and(|length| heard.size <= length)
    }

    fn answer_within(&self) -> i64 {
        let learned = self.knowledge.noise.answer_within_ms.unwrap_or_default();
        self.times.answer_within.max(i64::try_from(learned.saturating_mul(1_000_000)).unwrap_or(i64::MAX))
    }

    /// The place of the gateway's message that a message of this size answers, if it does.
    fn answered(&self, heard: Heard<'_>, size: u32, kind: &ServiceRecords, exchange: &Exchange) -> Option<usize> {
        let was_command = || self.knowledge.commands(size) > 0;
        let is_answer = || kind.answers > 0 && !was_command();
        let may_be_first = || kind.alone == 0 && !was_command();
        let soon = exchange.asked(heard, self.answer_within(), |ask| match self.knowledge.gateway(ask.length) {
            Some(asked) if asked.by.is_some() => asked.by == Some(size) || is_answer(),
            Some(asked) if asked.brings_commands() => kind.answers > 0,
            None | Some(_) => is_answer() || may_be_first(),
        });
        // What is known to answer nothing else may do so late.
        let is_surely_answer = || kind.answers >= WELL_KNOWN && !was_command();
        let late = || {
            let is_partner =
                |size_asked: u32| self.knowledge.gateway(size_asked).is_some_and(|asked| asked.by == Some(size));
            exchange.asked(heard, self.times.reply_within, |ask| is_partner(ask.length))
        };
        soon.or_else(|| if is_surely_answer() { late() } else { None }).map(|(at, _)| at)
    }

    /// Whether a message comes on the beat of the noise of its size, and how probable that is by chance.
    fn timing(&mut self, flow: u64, message: &Message, kind: &ServiceRecords) -> (Timing, f64) {
        let occurrence = message.begun;
        let period_of = |ms: u64| i64::try_from(ms.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let (is_on, period) = if let Some(period) = kind.every_ms.map(period_of) {
            let beat = self.beats.entry((*self.pairs.of(flow), message.size));
            let is_on = beat.keeps(occurrence.time_ns, period);
            beat.learn(occurrence);
            (is_on, period)
        } else if let Some(period) = kind.after_silence_ms.map(period_of) {
            (occurrence.silence_ns.map(|_| occurrence.follows_silence(period)), period)
        } else {
            return (Timing::Unknown, 1.0);
        };
        let timing = match is_on {
            Some(true) => Timing::On,
            Some(false) => Timing::Off,
            None => Timing::Unknown,
        };
        (timing, chance(period))
    }
}
