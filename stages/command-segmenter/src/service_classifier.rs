//! Classifies what the service sends, by what was learned from labelled captures.

use sizeleak_frame::{Direction, Record};
use sizeleak_model::{MIN_OCCURRENCES, RecordLayout, ServiceRecords};
use sizeleak_platform::runtime::TwoGenerationCache;

use crate::endpoints::{EndpointPair, FlowEndpoints};
use crate::flow_history::{FlowHistory, ServiceBurst, SizedRecord};
use crate::message::ReassembledMessage;
use crate::noise_model::{NoiseModel, WELL_KNOWN};
use crate::options::{SAME_PACKET_NS, TimeLimits};
use crate::periodic::{PeriodicTraffic, Timer};
use crate::record_class::{CommandCondition, Decision, RecordClass};

pub(crate) struct ServiceClassifier<'a> {
    pub(crate) noise_model: &'a NoiseModel,
    /// The messages of each size that is on a timer.
    pub(crate) timers: &'a mut TwoGenerationCache<(EndpointPair, u32), PeriodicTraffic>,
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
        let (phase, chance) = self.timer_phase(sized.record.flow, message, &known);
        match command_condition(self.noise_model, size, phase, chance) {
            CommandCondition::Never => RecordClass::KeepAlive.into(),
            condition => Decision { condition, ..RecordClass::CommandStart.into() },
        }
    }

    /// Whether a record is the next part of a command whose parts are written at once.
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
        let in_time = history.find_request(sized, self.answer_within_ns(), |request| {
            match self.noise_model.gateway(request.size) {
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

    /// Whether a message is on the timer of noise of its size, and the probability of that by chance.
    fn timer_phase(&mut self, flow: u64, message: &ReassembledMessage, known: &ServiceRecords) -> (TimerPhase, f64) {
        let arrival = message.arrival;
        let Some(period_ms) = known.every_ms.or(known.after_silence_ms) else { return (TimerPhase::Unknown, 1.0) };
        let timer = Timer { period_ns: nanoseconds(period_ms), late_ns: nanoseconds(known.jitter_ms) };
        let is_on_timer = if known.every_ms.is_some() {
            let traffic = self.timers.get_or_default((self.endpoints.of(flow), message.size));
            let is_on_timer = traffic.is_on(timer, arrival.time_ns);
            traffic.add(arrival);
            is_on_timer
        } else {
            arrival.silence_ns.map(|silence_ns| timer.is(silence_ns))
        };
        let phase = match is_on_timer {
            Some(true) => TimerPhase::OnTimer,
            Some(false) => TimerPhase::OffTimer,
            None => TimerPhase::Unknown,
        };
        (phase, timer.chance())
    }
}

fn nanoseconds(milliseconds: u64) -> i64 {
    i64::try_from(milliseconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX)
}

/// A record is noise only if that is this much more likely than a command: of nine at the limit, one is a command.
const LIKELIHOOD_RATIO: f64 = 8.0;

/// Commands without a label may be this much more frequent at one size than expected.
const UNLABELLED_RATIO: f64 = 2.0;

/// When a record comes, compared with the timer of noise of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerPhase {
    OnTimer,
    OffTimer,
    /// There is no timer, or its phase is not known.
    Unknown,
}

/// When a record that answers nothing is a command. `chance` is the probability of being on the timer by chance.
pub(crate) fn command_condition(
    noise_model: &NoiseModel,
    size: u32,
    phase: TimerPhase,
    chance: f64,
) -> CommandCondition {
    let Some(records) = noise_model.service(size) else { return CommandCondition::Always };
    let expected = noise_model.expected_commands(size);
    let unlabelled = UNLABELLED_RATIO * expected * noise_model.noise.missing_labels as f64 / 100.0;
    let Some(prior) = noise_prior(records, unlabelled) else { return CommandCondition::Always };
    let (timed_noise, timed_command) = match phase {
        TimerPhase::Unknown => (1.0, 1.0),
        TimerPhase::OnTimer => (share(records.on_beat, records.alone), chance),
        TimerPhase::OffTimer => (1.0 - share(records.on_beat, records.alone), 1.0 - chance),
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
