//! What a gateway and its service usually do, by the lengths of their records.

use std::collections::VecDeque;

use sizeleak_frame::Direction;

use crate::delay::Delays;
use crate::options::TimeLimits;
use crate::periodic::{self, Arrival, PeriodicTraffic};
use sizeleak_runtime::TwoGenerationCache;

/// Lengths remembered of each direction, half of them at least.
const MOST_LENGTHS: usize = 96;

/// Records within this time of each other, in nanoseconds, are taken for one message of several.
const BURST: i64 = 1_000_000_000;

/// Records remembered that nobody had asked for, of whatever length.
const MOST_OWN: usize = 32;

/// What was seen so often is known well enough to be told apart by its share.
const KNOWN: u32 = 3;

/// What is known of it so well that its time matters no more.
const WELL_KNOWN: u32 = 8;

/// The habits of a gateway and a service.
#[derive(Debug)]
pub(crate) struct TrafficProfile {
    pub(crate) service: TwoGenerationCache<u32, ServiceLengthStats>,
    pub(crate) gateway: TwoGenerationCache<u32, GatewayLengthStats>,
    /// The last records of the service's that nobody had asked for, with their lengths.
    own: VecDeque<(u32, Arrival)>,
    walls: [FullLength; 2],
    /// Within what time the service answers, where that was learned.
    answer_within_ns: i64,
}

impl Default for TrafficProfile {
    fn default() -> Self {
        Self {
            service: TwoGenerationCache::new(MOST_LENGTHS),
            gateway: TwoGenerationCache::new(MOST_LENGTHS),
            own: VecDeque::new(),
            walls: Default::default(),
            answer_within_ns: 0,
        }
    }
}

impl TrafficProfile {
    /// Within what time the service answers: as given, or as learned where that is more.
    pub(crate) fn answer_within(&self, times: &TimeLimits) -> i64 {
        times.answer_within.max(self.answer_within_ns)
    }

    /// Learns how much later than the gateway's last record one of the service's came. Where that shows that answers take
    /// longer than was known, what was learned of answers is forgotten.
    pub(crate) fn learn_delay(&mut self, length: u32, delay_ns: i64, times: &TimeLimits) {
        let kind = self.service.get_or_default(length);
        kind.delays.learn(delay_ns);
        // Few of what comes at any time come soon after the gateway's records.
        let is_usual = u64::from(kind.delayed) * 4 >= u64::from(kind.seen);
        kind.delayed = kind.delayed.saturating_add(1);
        let Some(within_ns) = kind.delays.within().filter(|_| is_usual) else { return };
        if within_ns.saturating_sub(within_ns / 4) > self.answer_within(times) {
            *self = Self { walls: std::mem::take(&mut self.walls), answer_within_ns: within_ns, ..Self::default() };
        }
    }

    /// Learns of a record of the service's that nobody had asked for.
    pub(crate) fn learn_own(&mut self, length: u32, occurrence: Arrival) {
        self.service.get_or_default(length).learn_own(occurrence);
        if self.own.len() >= MOST_OWN {
            self.own.pop_front();
        }
        self.own.push_back((length, occurrence));
    }

    /// Whether a record of the service's is a keep-alive: it is on the beat of its length.
    pub(crate) fn is_keep_alive(&self, length: u32, occurrence: Arrival) -> bool {
        let is_on_beat = |kind: &ServiceLengthStats| kind.beat.is_timed(occurrence) || kind.beat.is_idle(occurrence);
        self.service.peek(&length).is_some_and(is_on_beat) && !self.is_scripted()
    }

    /// Whether records come at steady times but with one length now, another then: commands by a script, not keep-alives.
    fn is_scripted(&self) -> bool {
        let intervals: Vec<(u32, i64)> = self
            .own
            .iter()
            .zip(self.own.iter().skip(1))
            .map(|((_, before), (length, own))| (*length, own.time_ns.saturating_sub(before.time_ns)))
            .filter(|(_, interval)| *interval >= BURST)
            .collect();
        let Some(period) = periodic::period(intervals.iter().map(|(_, interval)| *interval)) else { return false };
        let steady: Vec<u32> = intervals
            .iter()
            .filter(|(_, interval)| periodic::is_near(interval.unsigned_abs(), period))
            .map(|(length, _)| *length)
            .collect();
        let share = |length: &u32| steady.iter().filter(|other| *other == length).count();
        let usual = steady.iter().map(share).max().unwrap_or_default();
        steady.len() * 5 >= intervals.len() * 3 && usual * 5 < steady.len() * 3
    }

    /// Learns that a record followed one of this length at once, the same way.
    pub(crate) fn learn_followed(&mut self, direction: Direction, length: u32) {
        let [to_gateway, from_gateway] = &mut self.walls;
        match direction {
            Direction::ToGateway => to_gateway.learn(length),
            Direction::FromGateway => from_gateway.learn(length),
        }
    }

    /// Whether a record of this length is as long as records get where messages are cut, so that the next continues it.
    pub(crate) fn is_full(&self, direction: Direction, length: u32) -> bool {
        let [to_gateway, from_gateway] = &self.walls;
        let wall = if direction == Direction::ToGateway { to_gateway } else { from_gateway };
        wall.length == length && wall.followed >= KNOWN
    }
}

/// The greatest length that records had which others followed at once.
#[derive(Debug, Default)]
struct FullLength {
    length: u32,
    followed: u32,
}

impl FullLength {
    fn learn(&mut self, length: u32) {
        if length > self.length {
            *self = Self { length, followed: 0 };
        }
        if length == self.length {
            self.followed = self.followed.saturating_add(1);
        }
    }
}

/// Records of the service's with one length.
#[derive(Debug, Default)]
pub(crate) struct ServiceLengthStats {
    seen: u32,
    asked: u32,
    beat: PeriodicTraffic,
    delays: Delays,
    /// How many delays were learned.
    delayed: u32,
}

/// What records of a length are, as far as the gateway's part in it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthRole {
    /// They come when the gateway has asked.
    Answer,
    /// So surely that one which comes when it has not is a late answer, or one to a question that was not captured.
    AlwaysAnswer,
    /// They come on the service's own account.
    Own,
    /// Not known.
    Unknown,
}

impl ServiceLengthStats {
    /// Learns of a record that the gateway had asked for.
    pub(crate) fn learn_asked(&mut self) {
        self.seen = self.seen.saturating_add(1);
        self.asked = self.asked.saturating_add(1);
    }

    /// Learns of a record nobody had asked for.
    fn learn_own(&mut self, occurrence: Arrival) {
        self.seen = self.seen.saturating_add(1);
        self.beat.learn(occurrence);
    }

    /// What records of this length are.
    pub(crate) fn role(&self) -> LengthRole {
        let (seen, asked) = (u64::from(self.seen), u64::from(self.asked));
        match self.seen {
            ..KNOWN => LengthRole::Unknown,
            WELL_KNOWN.. if asked * 8 >= seen * 7 => LengthRole::AlwaysAnswer,
            _ if asked * 5 >= seen * 4 => LengthRole::Answer,
            // The same length answers the gateway and comes by a timer, as HTTP's empty responses do.
            _ if asked * 2 <= seen && !self.beat.is_steady() => LengthRole::Own,
            _ => LengthRole::Unknown,
        }
    }
}

/// Records of the gateway's with one length.
#[derive(Debug, Default)]
pub(crate) struct GatewayLengthStats {
    seen: u32,
    answered: u32,
    after_command: u32,
    /// The length that most answers have, by the vote of Boyer and Moore.
    partner: u32,
    votes: u32,
}

impl GatewayLengthStats {
    /// Learns of a record.
    pub(crate) fn learn(&mut self) {
        self.seen = self.seen.saturating_add(1);
    }

    /// Learns that it came soon after something the service had sent on its own account.
    pub(crate) fn learn_after_command(&mut self) {
        self.after_command = self.after_command.saturating_add(1);
    }

    /// Learns of its answer.
    pub(crate) fn learn_answered(&mut self, length: u32) {
        self.answered = self.answered.saturating_add(1);
        if length == self.partner {
            self.votes = self.votes.saturating_add(1);
        } else if let Some(votes) = self.votes.checked_sub(1) {
            self.votes = votes;
        } else {
            (self.partner, self.votes) = (length, 1);
        }
    }

    /// Whether such records may be answered: not where hardly one was.
    pub(crate) fn is_answered(&self) -> bool {
        self.seen <= KNOWN || u64::from(self.answered) * 3 >= u64::from(self.seen)
    }

    /// Whether a record of this length can be its answer: not where nearly all were of another.
    pub(crate) fn can_be_answered_by(&self, length: u32) -> bool {
        let is_one_sided = u64::from(self.votes) * 5 >= u64::from(self.answered) * 3;
        self.answered <= KNOWN || !is_one_sided || self.partner == length
    }

    /// Whether it comes at any time, and mostly not after commands.
    pub(crate) fn is_telemetry(&self) -> bool {
        self.seen > KNOWN && u64::from(self.after_command) * 2 < u64::from(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(asked: u32, own: u32) -> ServiceLengthStats {
        let mut kind = ServiceLengthStats::default();
        (0..asked).for_each(|_| kind.learn_asked());
        (0..own).for_each(|_| kind.learn_own(Arrival { time_ns: 0, silence_ns: None }));
        kind
    }

    #[test]
    fn roles_are_shares_of_what_was_seen() {
        assert_eq!(kind(2, 0).role(), LengthRole::Unknown);
        assert_eq!(kind(3, 0).role(), LengthRole::Answer);
        assert_eq!(kind(0, 3).role(), LengthRole::Own);
        assert_eq!(kind(2, 1).role(), LengthRole::Unknown);
        assert_eq!(kind(19, 1).role(), LengthRole::AlwaysAnswer);
        assert_eq!(kind(17, 3).role(), LengthRole::Answer);
    }

    #[test]
    fn what_comes_by_a_timer_may_answer_too() {
        let mut kind = kind(2, 0);
        for minute in 0..8 {
            kind.learn_own(Arrival { time_ns: minute * 60_000_000_000, silence_ns: None });
        }
        assert_eq!(kind.role(), LengthRole::Unknown);
    }

    #[test]
    fn what_answers_a_message_is_learned_with_its_length() {
        let mut kind = GatewayLengthStats::default();
        (0..4).for_each(|_| kind.learn());
        assert!(!kind.is_answered());
        for length in [64, 64, 80, 64] {
            kind.learn_answered(length);
        }
        assert!(kind.is_answered() && kind.can_be_answered_by(80), "one in four has another length");
        (0..6).for_each(|_| kind.learn_answered(64));
        assert!(kind.can_be_answered_by(64) && !kind.can_be_answered_by(80));
    }

    #[test]
    fn telemetry_comes_at_any_time() {
        let mut kind = GatewayLengthStats::default();
        (0..10).for_each(|_| kind.learn());
        assert!(kind.is_telemetry());
        (0..5).for_each(|_| kind.learn_after_command());
        assert!(!kind.is_telemetry());
    }

    #[test]
    fn the_longest_records_that_are_followed_are_full() {
        let mut habits = TrafficProfile::default();
        for length in [90, 124, 100, 124, 124] {
            habits.learn_followed(Direction::ToGateway, length);
        }
        assert!(habits.is_full(Direction::ToGateway, 124));
        assert!(!habits.is_full(Direction::ToGateway, 90) && !habits.is_full(Direction::FromGateway, 124));
    }
}
