//! What was said last on a flow, and which of the gateway's messages wait for an answer.

use std::collections::VecDeque;

use sizeleak_frame::{Direction, Record};

use crate::periodic::Arrival;
use crate::traffic_profile::TrafficProfile;

/// Messages that wait for an answer at once; of more, the oldest waits no longer.
const MOST_ASKS: usize = 32;

/// What TLS adds to a record whose cipher suite was not seen, in bytes: TLS 1.2 with AES-GCM, the most common case.
const USUAL_OVERHEAD: u64 = 24;

/// A record of application data, its size, and whether it is big enough to be more than a keep-alive or an
/// acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizedRecord<'a> {
    pub(crate) record: &'a Record,
    /// Its length, or what the basis of a model makes of that.
    pub(crate) size: u32,
    pub(crate) weight: SizeClass,
}

impl<'a> SizedRecord<'a> {
    /// A record whose size is its length.
    pub(crate) fn new(record: &'a Record, weight: SizeClass) -> Self {
        Self { record, size: record.length, weight }
    }
}

/// Whether a record can be a command or a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SizeClass {
    /// It holds too little.
    Tiny,
    /// It holds enough.
    Full,
}

impl SizeClass {
    /// The weight of a record, if what holds fewer plaintext bytes than `min_size` is tiny.
    pub(crate) fn of(record: &Record, min_size: u64) -> Self {
        let most = record.plaintext.map_or(u64::from(record.length).saturating_sub(USUAL_OVERHEAD), |[_, most]| most);
        if most < min_size { Self::Tiny } else { Self::Full }
    }
}

/// A flow's last words.
#[derive(Debug, Default)]
pub(crate) struct FlowHistory {
    asks: VecDeque<Request>,
    last: Option<Last>,
    /// What the service's records since the gateway last spoke are.
    pub(crate) run: ServiceBurst,
    /// When the service last sent something on its own account, or the gateway last spoke soon after that.
    pub(crate) command_ns: Option<i64>,
}

/// What the service is saying.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ServiceBurst {
    /// Nothing that goes on.
    #[default]
    Nothing,
    /// An answer.
    Answer,
    /// A command.
    Command,
}

/// A message of the gateway's that may be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) time_ns: i64,
    pub(crate) length: u32,
    weight: SizeClass,
    /// The latest time of this one and all before it.
    latest_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    time_ns: i64,
    direction: Direction,
    length: u32,
}

impl FlowHistory {
    /// Remembers the flow's next record, at its end.
    pub(crate) fn remember(&mut self, heard: SizedRecord<'_>) {
        let Record { time_ns, direction, .. } = *heard.record;
        self.last = Some(Last { time_ns, direction, length: heard.size });
        if direction == Direction::FromGateway {
            self.run = ServiceBurst::Nothing;
        }
    }

    /// A message of the gateway's, of this length, that ends with a record waits for its answer.
    pub(crate) fn ask(&mut self, heard: SizedRecord<'_>, length: u32) {
        if self.asks.len() >= MOST_ASKS {
            self.asks.pop_front();
        }
        let time_ns = heard.record.time_ns;
        let latest_ns = self.asks.back().map_or(time_ns, |before| before.latest_ns.max(time_ns));
        self.asks.push_back(Request { time_ns, length, weight: heard.weight, latest_ns });
    }

    /// When a record comes, and after what silence.
    pub(crate) fn occurrence(&self, record: &Record) -> Arrival {
        let silence_ns = self.last.map(|last| record.start_ns.saturating_sub(last.time_ns));
        Arrival { time_ns: record.start_ns, silence_ns }
    }

    /// How long after the flow's last record one comes that goes the other way.
    pub(crate) fn delay(&self, record: &Record) -> Option<i64> {
        let last = self.last.filter(|last| last.direction != record.direction)?;
        Some(record.start_ns.saturating_sub(last.time_ns))
    }

    /// The length of the last record, if a record follows it the same way within a time.
    pub(crate) fn followed(&self, record: &Record, within_ns: i64) -> Option<u32> {
        let last = self.last.filter(|last| last.direction == record.direction)?;
        (record.start_ns.saturating_sub(last.time_ns) <= within_ns).then_some(last.length)
    }

    /// Whether a record continues the last one, which is as long as records get.
    pub(crate) fn is_cut(&self, record: &Record, within_ns: i64, habits: &TrafficProfile) -> bool {
        let followed = self.followed(record, within_ns);
        followed.is_some_and(|length| record.length <= length && habits.is_full(record.direction, length))
    }

    /// The oldest message of the last `within_ns` that the service's record may be the answer to. What is tiny has no
    /// answer but a tiny one, and that first of all.
    pub(crate) fn asked(
        &self,
        heard: SizedRecord<'_>,
        within_ns: i64,
        is_possible: impl Fn(&Request) -> bool,
    ) -> Option<(usize, Request)> {
        let is_within = |asked_ns: i64| heard.record.start_ns.saturating_sub(asked_ns) <= within_ns;
        // Most records come long after most messages, if not all: those are not looked at.
        let lately = self.asks.iter().rev().take_while(|ask| is_within(ask.latest_ns)).count();
        if lately == 0 {
            return None;
        }
        let from = self.asks.len() - lately;
        let possible = (from..).zip(self.asks.range(from..).copied()).filter(|(_, ask)| {
            is_within(ask.time_ns)
                && (heard.weight == SizeClass::Tiny || ask.weight == SizeClass::Full)
                && is_possible(ask)
        });
        let mut possible = possible.peekable();
        let first = possible.peek().copied();
        possible.find(|(_, ask)| ask.weight == heard.weight).or(first)
    }

    /// The message at this place has its answer.
    pub(crate) fn answer(&mut self, at: usize) {
        self.asks.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{from, to};

    /// A message or an answer: its time in milliseconds, its length, and whether it is tiny.
    fn said() -> impl Strategy<Value = (bool, i64, u32, bool)> {
        (any::<bool>(), 0i64..400, 0u32..3, any::<bool>())
    }

    proptest! {
        /// It is that found by looking at every message, also where times go back.
        #[test]
        fn what_is_asked_is_found(said in prop::collection::vec(said(), 0..120), within in 0i64..200) {
            let (mut exchange, mut waiting) = (FlowHistory::default(), VecDeque::new());
            for (is_asked, time, length, is_tiny) in said {
                let weight = if is_tiny { SizeClass::Tiny } else { SizeClass::Full };
                if is_asked {
                    let record = from(time, 0);
                    exchange.ask(SizedRecord::new(&record, weight), length);
                    if waiting.len() >= MOST_ASKS {
                        waiting.pop_front();
                    }
                    waiting.push_back((record.time_ns, length, weight));
                    continue;
                }
                let record = to(time, 0);
                let within_ns = within * crate::testing::MS;
                let is_possible = |(time_ns, asked, asked_weight): &(i64, u32, SizeClass)| {
                    let is_big_enough = weight == SizeClass::Tiny || *asked_weight == SizeClass::Full;
                    record.start_ns - time_ns <= within_ns && is_big_enough && *asked != length
                };
                let alike = |of: &(i64, u32, SizeClass)| is_possible(of) && of.2 == weight;
                let expected = waiting.iter().position(alike).or_else(|| waiting.iter().position(is_possible));
                let asked = exchange.asked(SizedRecord::new(&record, weight), within_ns, |ask| ask.length != length);
                prop_assert_eq!(asked.map(|(at, _)| at), expected);
                if let Some((at, ask)) = asked {
                    prop_assert_eq!(waiting.remove(at), Some((ask.time_ns, ask.length, ask.weight)));
                    exchange.answer(at);
                }
            }
        }
    }
}
